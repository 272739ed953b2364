"""Blocks that move values or compute shapes."""
import numpy as np
from onnx import numpy_helper

from fuzz.net import shuffled
from fuzz.oracle import Rejected, type_of


def emit_move(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim >= 1)
    rank, shape = net.rank(x), net.shape(x)
    kind = rng.randrange(13)
    if kind in (0, 11):
        if rank == 4 and rng.random() < 0.6:
            return net.op("Transpose", [x], perm=rng.choice([[0, 2, 3, 1], [0, 3, 1, 2]]), exact=True)
        if rank == 3 and rng.random() < 0.5:
            return net.op("Transpose", [x], perm=[0, 2, 1], exact=True)
        perm = list(range(rank))
        rng.shuffle(perm)
        return net.op("Transpose", [x], exact=True, **({"perm": perm} if rng.random() < 0.8 else {}))
    if kind == 1:
        total = int(np.prod(shape))
        target = rng.choice([[-1], [0, -1], [shape[0], -1], [1, -1, 1], [-1, shape[-1]], [1] + list(shape), list(shape[:1]) + [1] + list(shape[1:])])
        for p in (2, 3, 4):
            if total % p == 0 and rng.random() < 0.3:
                target = [p, -1]
        if len(shape) == 3 and rng.random() < 0.4:
            target = [0, 0, 1, -1]
        return net.op("Reshape", [x, net.ints(*target)], exact=True)
    if kind == 2:
        return net.op("Flatten", [x], exact=True, axis=rng.randint(0 if net.opset < 11 else -rank, rank))
    if kind == 3:
        axis = rng.randrange(rank)
        others = [x]
        for _ in range(rng.randint(1, 3)):
            wanted = shape[:axis] + shape[axis + 1:]
            others.append(rng.choice([x, net.pick(lambda a: a.ndim == rank and a.shape[:axis] + a.shape[axis + 1:] == wanted),
                                      net.floats(shape[:axis] + (2,) + shape[axis + 1:])]))
        return net.op("Concat", shuffled(rng, others), exact=True, axis=axis - rank if net.opset >= 11 and rng.random() < 0.3 else axis)
    if kind == 4:
        axis = rng.randrange(rank)
        size = shape[axis]
        parts = rng.randint(1, min(3, size)) if size else 1
        cuts = sorted(rng.randint(0, size) for _ in range(parts - 1))
        sizes = [b - a for a, b in zip([0] + cuts, cuts + [size])]
        if size % parts == 0 and rng.random() < 0.4:
            extra = {"num_outputs": parts} if net.opset >= 18 else {}
            return net.op("Split", [x], outputs=parts, exact=True, axis=axis, **extra)
        if net.opset >= 13:
            return net.op("Split", [x, net.ints(*sizes)], outputs=parts, exact=True, axis=axis)
        return net.op("Split", [x], outputs=parts, exact=True, axis=axis, split=sizes)
    if kind == 5:
        axes = rng.sample(range(rank), rng.randint(1, rank))
        starts, ends, steps = [], [], []
        for a in axes:
            step = rng.choice([1, 1, 1, 2, 3, -1, -2]) if net.opset >= 10 else 1
            begin, end = rng.randint(-shape[a] - 1, shape[a]), rng.choice([shape[a], 2**31 - 1, rng.randint(-shape[a], shape[a])])
            if step < 0:
                begin, end = rng.choice([-1, shape[a]]), rng.choice([-(2**31) + 1, 0, -shape[a] - 1])
            starts.append(begin), ends.append(end), steps.append(step)
        if net.opset < 10:
            return net.op("Slice", [x], exact=True, axes=axes, starts=starts, ends=ends)
        inputs = [x, net.ints(*starts), net.ints(*ends), net.ints(*axes)]
        return net.op("Slice", inputs + ([net.ints(*steps)] if any(s != 1 for s in steps) or rng.random() < 0.3 else []), exact=True)
    if kind == 6:
        mode = rng.choice(["constant", "constant", "reflect", "edge"] + (["wrap"] if net.opset >= 19 else []))
        low = -1 if mode == "constant" else 0
        pads = [rng.randint(low, min(2, max(shape[i % rank] - 1, 0))) if rng.random() < 0.6 else 0 for i in range(2 * rank)]
        if net.opset < 11:
            return net.op("Pad", [x], exact=True, mode=mode, pads=pads, **({"value": 0.5} if mode == "constant" else {}))
        value = [net.const(np.array(rng.choice([0.5, -2]), net.dtype))] if mode == "constant" and rng.random() < 0.5 else []
        return net.op("Pad", [x, net.ints(*pads)] + value, exact=True, mode=mode)
    if kind == 7 and net.opset >= 8:
        target = [rng.choice([1, 2, d]) if d == 1 else rng.choice([1, d]) for d in shape]
        return net.op("Expand", [x, net.ints(*([2] * rng.randrange(2) + target))], exact=True)
    if kind == 8:
        return net.op("Tile", [x, net.ints(*[rng.choice([1, 1, 2, 3]) for _ in shape])], exact=True)
    if kind == 9:
        axis = rng.randrange(rank)
        index = net.np.integers(-shape[axis] if net.opset >= 11 else 0, shape[axis], rng.choice([(), (1,), (3,), (2, 2)])) if shape[axis] else np.zeros((0,))
        return net.op("Gather", [x, net.const(np.asarray(index).astype(rng.choice([np.int64, np.int32])))], exact=True, axis=axis)
    if kind == 10:
        if 1 in shape and rng.random() < 0.5:
            axes = [i for i, d in enumerate(shape) if d == 1][:rng.randint(1, 2)]
            return net.op("Squeeze", [x, net.ints(*axes)], exact=True) if net.opset >= 13 else net.op("Squeeze", [x], exact=True, axes=axes)
        axes = sorted({rng.randint(0, rank), rank + 1})[:rng.randint(1, 2)]
        axes = axes if len(axes) > 1 else [rng.randint(0, rank)]
        return net.op("Unsqueeze", [x, net.ints(*axes)], exact=True) if net.opset >= 13 else net.op("Unsqueeze", [x], exact=True, axes=axes)
    if net.opset >= 11 and rank >= 2:
        depth = rng.randint(1, rank)
        index = np.stack([net.np.integers(0, max(d, 1), (2, 3)) for d in shape[:depth]], -1)
        return net.op("GatherND", [x, net.const(index.astype(np.int64))], exact=True)
    raise Rejected("kind")


def emit_shape_arithmetic(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim >= 2 and a.size)
    rank = net.rank(x)
    shape = net.op("Shape", [x], exact=True)

    def gather(axis):
        return net.op("Gather", [shape, net.const(np.array(axis, np.int64))], exact=True)

    def unsqueeze(v):
        return net.op("Unsqueeze", [v, net.ints(0)], exact=True) if net.opset >= 13 else net.op("Unsqueeze", [v], axes=[0], exact=True)

    kind = rng.randrange(5)
    if kind == 0:
        target = net.op("Concat", [unsqueeze(gather(0)), net.ints(-1)], axis=0, exact=True)
        return net.op("Reshape", [x, target], exact=True)
    if kind == 1:
        product = net.op("Mul", [gather(0), gather(1)], exact=True)
        target = net.op("Concat", [unsqueeze(product)] + [unsqueeze(gather(i)) for i in range(2, rank)], axis=0, exact=True)
        return net.op("Reshape", [x, target], exact=True)
    if kind == 2 and net.opset >= 10:
        half = net.op("Div", [unsqueeze(gather(1)), net.ints(2)], exact=True)
        first = net.op("Slice", [x, net.ints(0), half, net.ints(1)], exact=True)
        second = net.op("Slice", [x, half, net.ints(2**31 - 1), net.ints(1)], exact=True)
        return net.op("Concat", [second, first], axis=1, exact=True)
    if kind == 3 and net.opset >= 9:
        zeros = net.op("ConstantOfShape", [shape], exact=True, value=numpy_helper.from_array(np.array([0.25], net.dtype)))
        return net.op("Add", [x, zeros])
    if net.opset >= 11:
        steps = net.op("Range", [net.const(np.array(0, np.int64)), gather(rank - 1), net.const(np.array(1, np.int64))], exact=True)
        return net.op("Add", [x, net.op("Mul", [net.op("Cast", [steps], to=type_of(net[x]), exact=True), net.scalar(0.01)])])
    raise Rejected("kind")
