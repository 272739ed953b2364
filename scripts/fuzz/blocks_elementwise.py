"""Blocks of elementwise ops: activations, arithmetic, comparisons, rounding."""
import numpy as np
from onnx import TensorProto

from fuzz.net import broadcasts, shuffled
from fuzz.oracle import Rejected, type_of


def activation(net, x):
    rng = net.rng
    kind = rng.randrange(17)
    if kind == 0:
        return net.op("Relu", [x])
    if kind == 1:
        return net.op("Sigmoid", [x])
    if kind == 2:
        return net.op("Tanh", [x])
    if kind == 3:
        return net.op("LeakyRelu", [x], alpha=rng.choice([0.01, 0.1, -0.5, 1.5]))
    if kind == 4:
        return net.op("HardSigmoid", [x], **rng.choice([{}, {"alpha": 1 / 6, "beta": 0.5}, {"alpha": 0.3}]))
    if kind == 5:
        return net.op("HardSwish", [x])
    if kind == 6:
        return clip(net, x, *rng.choice([(0.0, 6.0), (-1.0, 1.0), (None, 0.5), (-0.25, None), (None, None), (0.5, -0.5)]))
    if kind == 7:  # x * clip(x + 3, 0, 6) / 6, every order of it
        three = net.op("Add", shuffled(rng, [x, net.scalar(3.0)]))
        gate = clip(net, three, 0.0, 6.0)
        style = rng.randrange(6)
        if style == 0:
            return net.op("Div", [net.op("Mul", shuffled(rng, [x, gate])), net.scalar(6.0)])
        if style == 1:
            return net.op("Mul", shuffled(rng, [x, net.op("Div", [gate, net.scalar(6.0)])]))
        if style == 2:
            return net.op("Mul", shuffled(rng, [x, net.op("Mul", shuffled(rng, [gate, net.scalar(1 / 6)]))]))
        if style == 3:
            return net.op("Div", [gate, net.scalar(6.0)])
        if style == 4:
            return net.op("Div", [net.op("Mul", shuffled(rng, [x, gate])), net.scalar(5.0)])
        return net.op("Mul", shuffled(rng, [x, gate]))
    if kind == 8:
        return net.op("Mul", shuffled(rng, [x, net.op("Sigmoid", [x])]))
    if kind == 9:
        return net.op("Mul", shuffled(rng, [x, net.op("HardSigmoid", [x], **rng.choice([{"alpha": 1 / 6, "beta": 0.5}, {}]))]))
    if kind == 10:
        slopes = [(1,), ()] if net.rank(x) else [()]
        if net.rank(x) >= 2:
            slopes += [(net.shape(x)[1],) + (1,) * (net.rank(x) - 2), (1, net.shape(x)[1]) + (1,) * (net.rank(x) - 2), (net.shape(x)[-1],),
                       net.shape(x)[1:]]
        return net.op("PRelu", [x, net.floats(rng.choice(slopes))])
    if kind == 11:
        half = net.op("Mul", shuffled(rng, [x, net.scalar(0.5)]))
        erf = net.op("Erf", [net.op("Div", [x, net.scalar(1.4142135)])])
        return net.op("Mul", shuffled(rng, [half, net.op("Add", shuffled(rng, [erf, net.scalar(1.0)]))]))
    if kind == 12:
        return net.op("Softplus", [x])
    if kind == 13:
        return net.op(rng.choice(["Neg", "Abs", "Identity"]), [x], exact=True)
    if kind == 14:
        return net.op("Exp", [clip(net, x, -3.0, 3.0)])
    if kind == 15:
        return net.op("Sqrt", [net.op("Abs", [x])])
    positive = net.op("Add", [net.op("Abs", [x]), net.scalar(0.5)])
    return net.op(rng.choice(["Log", "Reciprocal"]), [positive])


def clip(net, x, low, high):
    if net.opset < 11:
        bounds = {k: v for k, v in (("min", low), ("max", high)) if v is not None}
        return net.op("Clip", [x], **bounds)
    inputs = [x] + ["" if b is None else net.const(np.array(b, net.dtype)) for b in (low, high)]
    while inputs[-1] == "" and net.rng.random() < 0.7:
        inputs.pop()
    return net.op("Clip", inputs)


def emit_activation(net):
    return activation(net, net.pick())


def emit_binary(net):
    rng = net.rng
    x = net.pick()
    kind = rng.choice(["Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min", "Pow", "Sum"])
    if rng.random() < 0.5:
        shape = net.shape(x)
        other = net.pick(lambda a: broadcasts(a.shape, shape))
    else:
        shape = [d if rng.random() < 0.5 else 1 for d in net.shape(x)]
        other = net.floats(shape[rng.randint(0, len(shape)):] if rng.random() < 0.8 else [1] + shape)
    if kind == "Div":
        other = net.op("Add", [net.op("Abs", [other]), net.scalar(0.5)]) if other not in net.constants else net.const(np.abs(net[other]) + net.dtype.type(0.5))
    if kind == "Pow":
        x = net.op("Add", [net.op("Abs", [x]), net.scalar(0.1)])
        other = net.scalar(rng.choice([2.0, 0.5, 3.0, -1.0, 1.0]))
    if kind in ("Max", "Min", "Sum") and rng.random() < 0.4:
        return net.op(kind, rng.choice([[x], [x, other, x], [other, x, net.scalar(0.25)]]))
    pair = [x, other]
    return net.op(kind, shuffled(rng, pair) if kind not in ("Div", "Pow") else pair)


def emit_chain(net):
    """A run of elementwise nodes, the chain pass's food."""
    rng = net.rng
    x = start = net.pick()
    for _ in range(rng.randint(2, 8)):
        if rng.random() < 0.5:
            x = activation(net, x)
            continue
        other = rng.choice([start, x, net.scalar(round(rng.uniform(-2, 2), 3)), net.floats(net.shape(x)[-1:]), net.floats(net.shape(x))])
        pair = [x, other]
        rng.shuffle(pair)
        kind = rng.choice(["Add", "Sub", "Mul", "Max", "Min"])
        x = net.op(kind, pair)
    return x


def emit_compare(net):
    rng = net.rng
    x = net.pick(lambda a: a.size)
    limit = round(rng.uniform(-1, 1), 3)
    if x not in net.exact and np.abs(net[x].astype(np.float64) - limit).min() < 1e-2 * max(1.0, float(np.abs(net[x]).max())) * (1 if net.dtype != np.float16 else 5):
        raise Rejected("too close to call")
    kinds = ["Greater", "Less"] + (["GreaterOrEqual", "LessOrEqual"] if net.opset >= 12 else [])
    mask = net.op(rng.choice(kinds), [x, net.scalar(limit)], exact=True)
    if rng.random() < 0.4:
        mask = net.op("Not", [mask], exact=True)
    if rng.random() < 0.3:
        mask = net.op(rng.choice(["And", "Or"]), [mask, net.const(net.np.random(net.shape(x)[-1:]) < 0.5)], exact=True)
    if net.opset >= 9 and rng.random() < 0.6:
        shape = net.shape(mask)
        return net.op("Where", [mask, net.pick(lambda a: broadcasts(a.shape, shape)), net.scalar(0.5)])
    return net.op("Cast", [mask], to=type_of(net[x]), exact=True)


def emit_round(net):
    rng = net.rng
    x = net.pick(lambda a: a.size)
    if x not in net.exact:
        scaled = net[x].astype(np.float64)
        if np.abs(scaled - np.round(scaled)).min() < 1e-2 * max(1.0, np.abs(scaled).max()):
            raise Rejected("too close to call")
    kind = rng.randrange(3)
    if kind == 0:
        return net.op(rng.choice(["Floor", "Ceil"]), [x], exact=True)
    if kind == 1:
        number = net.op("Cast", [x], to=rng.choice([TensorProto.INT32, TensorProto.INT64, TensorProto.INT8]), exact=True)
        for _ in range(rng.randrange(3)):
            number = net.op(rng.choice(["Add", "Mul", "Sub", "Max", "Min"]), [number, net.const(net.np.integers(-3, 4, (1,)).astype(net[number].dtype))], exact=True)
        return net.op("Cast", [number], to=type_of(net[x]), exact=True)
    half = net.op("Cast", [x], to=rng.choice([TensorProto.FLOAT, TensorProto.DOUBLE]))
    return net.op("Cast", [net.op("Tanh", [half])], to=type_of(net[x]))


def emit_unary(net):
    rng = net.rng
    x = net.pick()
    kind = rng.choice(["Sin", "Cos", "Atan", "Asinh", "Sinh", "Cosh", "Elu", "Selu", "Celu", "Softsign", "ThresholdedRelu", "Sign", "Round", "Gelu", "Mish", "Shrink",
                       "Acos", "Asin", "Atanh", "Acosh", "Hardmax", "LpNormalization", "MeanVarianceNormalization", "CumSum", "Trilu", "Mean", "IsNaN", "IsInf"])
    if kind in ("Sinh", "Cosh"):
        x = clip(net, x, -3.0, 3.0)
    if kind in ("Acos", "Asin", "Atanh"):
        x = net.op("Mul", [net.op("Tanh", [x]), net.scalar(0.9)])
    if kind == "Acosh":
        x = net.op("Add", [net.op("Abs", [x]), net.scalar(1.1)])
    if kind in ("Sign", "Round", "ThresholdedRelu", "Shrink", "Hardmax") and x not in net.exact:
        raise Rejected("too close to call")
    if kind in ("Elu", "Celu", "ThresholdedRelu"):
        return net.op(kind, [x], alpha=rng.choice([0.5, 1.0, 2.0]))
    if kind == "Gelu":
        return net.op(kind, [x], approximate=rng.choice(["none", "tanh"]))
    if kind == "Shrink":
        return net.op(kind, [x], lambd=0.5, bias=rng.choice([0.0, 0.25]))
    if kind in ("Hardmax", "LpNormalization"):
        return net.op(kind, [x], axis=rng.randrange(net.rank(x)) if net.rank(x) else 0)
    if kind == "MeanVarianceNormalization":
        return net.op(kind, [x], axes=rng.choice([[0, 2, 3] if net.rank(x) == 4 else [0], [-1]]))
    if kind == "CumSum":
        return net.op(kind, [x, net.const(np.array(rng.randint(-net.rank(x), net.rank(x) - 1) if net.rank(x) else 0, rng.choice([np.int32, np.int64])))],
                      exclusive=rng.randrange(2), reverse=rng.randrange(2))
    if kind == "Trilu":
        return net.op(kind, [x] + rng.choice([[], [net.const(np.array(rng.randint(-3, 3), np.int64))]]), upper=rng.randrange(2))
    if kind == "Mean":
        return net.op(kind, [x, net.floats(net.shape(x)[-1:]), x][: rng.randint(1, 3)])
    if kind in ("IsNaN", "IsInf"):
        return net.op("Cast", [net.op(kind, [x], exact=True)], to=type_of(net[x]), exact=True)
    return net.op(kind, [x])
