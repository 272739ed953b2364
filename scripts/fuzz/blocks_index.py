"""Blocks that pick by index: TopK, scatters, gathers, boxes."""
import numpy as np

from fuzz.net import retried
from fuzz.oracle import Rejected


@retried
def emit_index(net):
    """TopK, scatters, gathers by element, one-hot, compress, unique and their like."""
    rng = net.rng
    x = net.pick(lambda a: a.ndim >= 1 and a.size)
    rank, shape = net.rank(x), net.shape(x)
    axis = rng.randrange(rank)
    kind = rng.choice(["TopK", "TopK", "GatherElements", "ScatterElements", "ScatterND", "OneHot", "Compress", "NonZero", "ReverseSequence", "DepthToSpace",
                       "SpaceToDepth", "Unique", "EyeLike", "Mod", "Einsum"])
    if kind == "TopK" and net.opset >= 10:
        if x not in net.exact:
            ordered = np.sort(net[x].astype(np.float64), axis)
            if (net.rows_vary and axis == 0) or ordered.shape[axis] > 1 and np.abs(np.diff(ordered, axis=axis)).min() < 1e-3:
                raise Rejected("too close to call")
        a = {"largest": rng.randrange(2)} if net.opset >= 11 else {}
        return net.op(kind, [x, net.ints(rng.randint(1, shape[axis]))], outputs=2, exact=True, axis=axis, **a)[rng.randrange(2)]
    if kind == "GatherElements":
        index = net.np.integers(-shape[axis], shape[axis], shape[:axis] + (rng.randint(1, 4),) + shape[axis + 1:])
        return net.op(kind, [x, net.const(index.astype(rng.choice([np.int32, np.int64])))], exact=True, axis=axis)
    if kind == "ScatterElements":
        count = rng.randint(1, shape[axis])
        index = np.broadcast_to(net.np.permutation(shape[axis])[:count].reshape((count,) + (1,) * (rank - axis - 1)), shape[:axis] + (count,) + shape[axis + 1:])
        a = {"reduction": rng.choice(["none", "add", "mul", "max", "min"])} if net.opset >= 18 else {}
        return net.op(kind, [x, net.const(np.ascontiguousarray(index).astype(np.int64)), net.floats(index.shape)], axis=axis, **a)
    if kind == "ScatterND":
        index = net.np.permutation(shape[0])[: rng.randint(1, shape[0])].reshape(-1, 1)
        return net.op(kind, [x, net.const(index.astype(np.int64)), net.floats((len(index),) + shape[1:])])
    if kind == "OneHot":
        index = net.const(net.np.integers(-4, 4, rng.choice([(3,), (2, 2), ()])).astype(np.int64))
        return net.op(kind, [index, net.const(np.array(4, np.int64)), net.const(np.array([0.25, 2], net.dtype))], exact=True, axis=rng.choice([-1, 0]))
    if kind == "Compress":
        return net.op(kind, [x, net.const(net.np.random(shape[axis]) < 0.6)], exact=True, axis=axis)
    if kind in ("NonZero", "Unique"):
        if x not in net.exact:
            raise Rejected("too close to call")
        return net.op(kind, [x], outputs=1 if kind == "NonZero" else 4, exact=True)
    if kind == "ReverseSequence" and rank >= 2:
        return net.op(kind, [x, net.const(net.np.integers(1, shape[0] + 1, (shape[1],)).astype(np.int64))], exact=True)
    if kind == "DepthToSpace" and rank == 4 and shape[1] % 4 == 0:
        return net.op(kind, [x], exact=True, blocksize=2, **({"mode": rng.choice(["DCR", "CRD"])} if net.opset >= 11 else {}))
    if kind == "SpaceToDepth" and rank == 4:
        return net.op(kind, [x], exact=True, blocksize=2)
    if kind == "EyeLike" and rank == 2:
        return net.op(kind, [x], exact=True, k=rng.randint(-2, 2))
    if kind == "Mod" and x in net.exact:
        return net.op(kind, [x, net.scalar(0.75)], exact=True, fmod=1)
    if kind == "Einsum" and rank in (2, 3):
        b = "b" if rank == 3 else ""
        return net.op(kind, [x, net.floats((shape[-1], 3))], equation=rng.choice([f"{b}ij,jk->{b}ik", f"{b}ij,jk->{b}k", f"{b}ij,jk", "...j,jk->k..."]))
    raise Rejected("kind")


def emit_nms(net):
    rng = net.rng
    n = rng.choice([1, 7, 20])
    base = net.np.random((1, n, 2)) * 4
    boxes = net.add_input(np.concatenate([base, base + 0.5 + net.np.random((1, n, 2))], -1).astype(np.float32))
    scores = net.add_input(net.np.random((1, rng.choice([1, 3]), n)).astype(np.float32))
    inputs = [boxes, scores, net.ints(rng.choice([1, 5, 100])), net.const(np.array([0.3], np.float32)), net.const(np.array([rng.choice([0.1, 0.5, 0.9])], np.float32))]
    picked = net.op("NonMaxSuppression", inputs, exact=True, **({"center_point_box": 1} if rng.random() < 0.3 else {}))
    if rng.random() < 0.6:
        last = net.op("Gather", [picked, net.const(np.array(2, np.int64))], axis=1, exact=True)
        rows = net.op("Gather", [boxes, last], axis=1, exact=True)
        if net.dtype == np.float32:
            tail = net.op("Mul", [net.op("Add", [rows, net.scalar(1.0)]), net.floats((4,))])
            return net.op(rng.choice(["Relu", "Identity"]), [tail])
    return picked
