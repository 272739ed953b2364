"""Blocks that reduce along axes: sums, softmax, arg, layer normalisation."""
import numpy as np

from fuzz.oracle import Rejected


def reduce(net, kind, x, axes, keepdims, **extra):
    as_input = net.opset >= (13 if kind == "ReduceSum" else 18)
    if axes is None:
        return net.op(kind, [x], keepdims=keepdims, **extra)
    if as_input:
        return net.op(kind, [x, net.ints(*axes)], keepdims=keepdims, **extra)
    return net.op(kind, [x], axes=axes, keepdims=keepdims, **extra)


def some_axes(net, x):
    rank = net.rank(x)
    axes = net.rng.sample(range(rank), net.rng.randint(1, rank)) if rank else []
    if net.opset >= 11:
        axes = [a - rank if net.rng.random() < 0.3 else a for a in axes]
    return axes


def emit_reduce(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim >= 1)
    kind = rng.choice(["ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceSumSquare"])
    return reduce(net, kind, x, None if rng.random() < 0.15 else some_axes(net, x), rng.randrange(2))


def emit_softmax(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim >= 1)
    a = {}
    if rng.random() < 0.8:
        low = -net.rank(x) if net.opset >= 11 else 0
        a["axis"] = rng.randint(low, net.rank(x) - 1)
    return net.op(rng.choice(["Softmax", "Softmax", "LogSoftmax"]), [x], **a)


def emit_layer_norm(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim >= 2 and a.shape[-1] > 2)
    d = net.shape(x)[-1]
    if net.opset >= 17 and rng.random() < 0.5:
        axis = rng.choice([-1, -1, 1, net.rank(x) - 1])
        shape = net.shape(x)[axis:]
        return net.op("LayerNormalization", [x, net.floats(shape)] + ([net.floats(shape)] if rng.random() < 0.7 else []), axis=axis, epsilon=1e-3)
    mean = reduce(net, "ReduceMean", x, [net.rank(x) - 1], 1)
    centred = net.op("Sub", [x, mean])
    square = net.op("Pow", [centred, net.scalar(2.0)]) if rng.random() < 0.5 else net.op("Mul", [centred, centred])
    variance = reduce(net, "ReduceMean", square, [net.rank(x) - 1], 1)
    root = net.op("Sqrt", [net.op("Add", [variance, net.scalar(1e-2)])])
    y = net.op("Div", [centred, root])
    return net.op("Add", [net.op("Mul", [y, net.floats((d,))]), net.floats((d,))])


def emit_arg(net):
    x = net.pick(lambda a: a.ndim and a.size)
    axis = net.rng.randrange(net.rank(x))
    if x not in net.exact:
        if net.rows_vary and axis == 0:
            raise Rejected("repeated rows tie, to the last bit or not")
        ordered = np.sort(net[x].astype(np.float64), axis)
        if ordered.shape[axis] > 1 and np.abs(np.diff(ordered, axis=axis)).min() < 1e-2:
            raise Rejected("too close to call")
    a = {"select_last_index": 1} if net.opset >= 12 and net.rng.random() < 0.4 else {}
    return net.op(net.rng.choice(["ArgMax", "ArgMin"]), [x], exact=True, axis=axis, keepdims=net.rng.randrange(2), **a)
