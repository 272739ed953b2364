"""Blocks that nets rarely hold: corners of single ops, rarer norms, large sizes."""
import numpy as np

from fuzz.blocks_conv import batch_norm, conv_tail, emit_pool, emit_resize, emit_se_block, window
from fuzz.blocks_elementwise import activation, emit_chain
from fuzz.blocks_reduce import emit_layer_norm, emit_reduce, emit_softmax
from fuzz.blocks_shape import emit_move
from fuzz.net import retried, shuffled
from fuzz.oracle import Rejected


@retried
def emit_odd(net):
    """Corners of single ops that nets rarely use."""
    rng = net.rng
    kind = rng.randrange(16)
    x = net.pick(lambda a: a.ndim >= 1)
    rank, shape = net.rank(x), net.shape(x)
    if kind == 0 and net.opset >= 15:
        a = {"start": rng.randint(-rank - 1, rank)}
        if rng.random() < 0.6:
            a["end"] = rng.randint(-rank - 1, rank + 1)
        return net.op("Shape", [x], exact=True, **a)
    if kind == 1:
        return net.op("Size", [x], exact=True)
    if kind == 2 and net.opset >= 14:
        return net.op("Reshape", [x, net.ints(*shape[::-1])], exact=True, allowzero=1)
    if kind == 3 and net.opset >= 12 and rank >= 3 and not net.rows_vary:
        index = net.np.integers(0, max(1, shape[1]), (shape[0], 2, 1))
        return net.op("GatherND", [x, net.const(index.astype(np.int64))], exact=True, batch_dims=1)
    if kind == 4 and net.opset >= 18:
        axis = rng.randrange(rank)
        parts = rng.randint(1, max(1, shape[axis]))
        return net.op("Split", [x], outputs=parts, exact=True, axis=axis - rank, num_outputs=parts)
    if kind == 5 and net.opset >= 13:
        axes = net.const(np.zeros(0, np.int64))
        return net.op("ReduceSum", [x, axes], noop_with_empty_axes=rng.randrange(2), keepdims=rng.randrange(2))
    if kind == 6 and net.opset >= 11:
        start, limit, delta = rng.choice([(0.0, 3.0, 0.5), (5.0, 0.0, -1.5), (1.0, 1.0, 1.0), (2.0, 3.1, 0.25)])
        dtype = rng.choice([np.float32, np.int32, np.int64])
        if dtype != np.float32:
            start, limit, delta = int(start), int(limit), rng.choice([1, 2, -1])
        return net.op("Range", [net.const(np.array(v, dtype)) for v in (start, limit, delta)], exact=True)
    if kind == 7 and rank >= 2:
        y = batch_norm(net, x)
        return activation(net, y) if rng.random() < 0.5 else y
    if kind == 8 and net.opset >= 10:
        a = rng.randrange(rank)
        kind = rng.choice([np.int32, np.int64])
        parts = [net.const(np.array([v], kind)) for v in (rng.randint(-9, 9), rng.randint(-9, 9), a, rng.choice([1, 2, 3, -1, -2, -7]))]
        return net.op("Slice", [x] + parts, exact=True)
    if kind == 9 and not net.rows_vary:
        empty = net.const(np.zeros(shape[:-1] + (0,), net.dtype))
        return net.op("Concat", shuffled(rng, [x, empty, x]), axis=rank - 1, exact=True)
    if kind == 10 and net.opset >= 18:
        axes = sorted(rng.sample(range(rank), rng.randint(1, rank)))
        pads = [rng.randint(-1, 2) for _ in range(2 * len(axes))]
        return net.op("Pad", [x, net.ints(*pads), net.const(np.array(1.5, net.dtype)), net.ints(*axes)], exact=True)
    if kind == 11 and net.opset >= 8:
        return net.op("Expand", [net.floats(()), net.op("Shape", [x], exact=True)], exact=True)
    if kind == 12:
        return net.op("Identity", [net.op("Identity", [x], exact=True)], exact=True)
    if kind == 13:
        return net.op(rng.choice(["Max", "Min", "Add", "Mul", "Sub"]), [x, x])
    if kind == 14 and net.opset >= 9:
        mask = net.const(net.np.random(shape[-1:]) < 0.5)
        return net.op("Where", [mask] + shuffled(rng, [x, net.floats(shape[:1] + (1,) * (rank - 1))]))
    if kind == 15 and net.opset >= 11 and rank >= 2:
        return net.op("Softmax", [net.op("Transpose", [x], exact=True)], axis=rng.randint(-rank, rank - 1))
    raise Rejected("kind")


def emit_norm(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim >= 3 and a.size)
    c = net.shape(x)[1]
    kind = rng.choice(["InstanceNormalization", "GroupNormalization", "LRN", "LpPool", "GlobalLpPool"])
    if kind == "InstanceNormalization":
        return net.op(kind, [x, net.floats((c,)), net.floats((c,))], epsilon=1e-2)
    if kind == "GroupNormalization" and net.opset >= 18:
        groups = rng.choice([g for g in range(1, c + 1) if c % g == 0])
        size = (groups,) if net.opset < 21 else (c,)
        return net.op(kind, [x, net.floats(size), net.floats(size)], num_groups=groups, epsilon=1e-2)
    if kind == "LRN":
        return net.op(kind, [x], size=rng.choice([1, 3, 5]), alpha=0.1)
    if kind == "LpPool":
        return net.op(kind, [x], kernel_shape=window(rng, net.shape(x)[2:], 3), p=rng.choice([1, 2, 3]))
    return net.op("GlobalLpPool", [x], p=rng.choice([1, 2, 3]))


def emit_large(net):
    """Sizes at which kernels block and threads share."""
    rng = net.rng
    kind = rng.randrange(4)
    if kind == 0:
        c = rng.choice([32, 64, 48])
        x = net.add_input(net.np.standard_normal((1, c, 20, 20)).astype(net.dtype))
        y = conv_tail(net, net.op("Conv", [x, net.floats((rng.choice([32, 64, 40]), c, 3, 3), (9 * c) ** -0.5)], pads=[1, 1, 1, 1], strides=[rng.choice([1, 2])] * 2))
        return conv_tail(net, net.op("Conv", [y, net.floats((net.shape(y)[1], 1, 5, 5), 0.2)], group=net.shape(y)[1], pads=[2, 2, 2, 2]))
    if kind == 1:
        x = net.add_input(net.np.standard_normal((rng.choice([1, 65, 130]), 256)).astype(net.dtype))
        y = net.op("MatMul", [x, net.floats((256, 200), 1 / 16)])
        return activation(net, net.op("Add", [y, net.floats((200,))]))
    if kind == 2:
        x = net.add_input(net.np.standard_normal(rng.choice([(3, 17001), (9000, 5), (2, 100, 200), (60000,)])).astype(net.dtype))
        return rng.choice([emit_reduce, emit_softmax, emit_chain, emit_layer_norm, emit_move])(net) or x
    x = net.add_input(net.np.standard_normal((2, 24, 30, 31)).astype(net.dtype))
    return rng.choice([emit_pool, emit_se_block, emit_resize, emit_move, emit_chain])(net) or x
