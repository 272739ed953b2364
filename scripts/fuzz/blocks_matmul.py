"""Blocks around matrix products: MatMul, Gemm, attention."""
import numpy as np

from fuzz.blocks_elementwise import activation
from fuzz.net import shuffled


def emit_matmul(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim >= 1 and a.size)
    k = net.shape(x)[-1]
    n = rng.choice([1, 2, 5, 8, 16, 33])
    rank = net.rank(x)
    style = rng.random()
    if style < 0.5:
        shape = (k, n)
    elif style < 0.6:
        shape = (k,)
    elif style < 0.7 and rank > 2:
        shape = net.shape(x)[:-2] + (k, n)
    elif style < 0.8 and rank > 2:
        shape = tuple(1 if rng.random() < 0.5 else d for d in net.shape(x)[:-2]) + (k, n)
    else:
        shape = (2, k, n)
    if rng.random() < 0.2 and rank >= 2:
        w = net.op("Transpose", [x], perm=list(range(rank - 2)) + [rank - 1, rank - 2], exact=True)
    elif rng.random() < 0.2 and len(shape) == 2:
        w = net.op("Transpose", [net.floats((n, k), k**-0.5)], perm=[1, 0])
    else:
        w = net.floats(shape, k**-0.5)
    if rng.random() < 0.15 and rank >= 2 and net.shape(x)[-2] == k:
        x = net.op("Transpose", [x], perm=list(range(rank - 2)) + [rank - 1, rank - 2], exact=True)
    pair = [x, w]
    if rng.random() < 0.1:
        pair = [net.floats((3, net.shape(x)[-2] if rank >= 2 else k), k**-0.5), x]
    y = net.op("MatMul", pair)
    if rng.random() < 0.6 and net.rank(y):
        last = net.shape(y)[-1]
        shapes = [(last,), (1, last), (1,), (), net.shape(y), (1,) * net.rank(y) + (last,)]
        if net.rank(y) >= 2:
            shapes.append((net.shape(y)[-2], 1))
        y = net.op(rng.choice(["Add", "Add", "Add", "Sub", "Mul"]), shuffled(rng, [y, net.floats(rng.choice(shapes))]))
    if rng.random() < 0.3:
        shape = net.shape(y)
        y = net.op("Add", shuffled(rng, [y, net.pick(lambda a: a.shape == shape)]))
    if rng.random() < 0.5:
        y = activation(net, y)
    return y


def emit_gemm(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim == 2 and a.size, (rng.randint(1, 9), rng.choice([1, 7, 16, 31])))
    trans_a, trans_b = rng.random() < 0.2, rng.random() < 0.5
    m, k = net.shape(x)[::-1] if trans_a else net.shape(x)
    n = rng.choice([1, 3, 8, 17, 32])
    w = net.floats((n, k) if trans_b else (k, n), k**-0.5)
    inputs = [x, w]
    if net.opset < 11 or rng.random() < 0.8:
        if rng.random() < 0.2:
            inputs.append(net.pick(lambda a: a.shape in ((m, n), (n,), (1, n), (m, 1))))
        else:
            inputs.append(net.floats(rng.choice([(n,), (1, n), (m, 1), (1,), (), (m, n)])))
    a = {}
    if trans_a:
        a["transA"] = 1
    if trans_b:
        a["transB"] = 1
    if rng.random() < 0.3:
        a["alpha"] = rng.choice([0.5, 2.0, -1.0, 0.0])
    if rng.random() < 0.3:
        a["beta"] = rng.choice([0.5, 2.0, 0.0])
    y = net.op("Gemm", inputs, **a)
    return activation(net, y) if rng.random() < 0.5 else y


def emit_attention(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim == 3 and a.size and a.shape[1] * a.shape[2] < 2000, (rng.randint(1, 2), rng.randint(1, 12), rng.choice([8, 12])))
    b, t, d = net.shape(x)
    heads, size = rng.choice([(1, 4), (2, 4), (2, 8), (3, 5)])

    def project(perm):
        y = net.op("MatMul", [x, net.floats((d, heads * size), d**-0.5)])
        if rng.random() < 0.7:
            y = net.op("Add", shuffled(rng, [y, net.floats((heads * size,))]))
        y = net.op("Reshape", [y, net.ints(0, 0 if rng.random() < 0.5 else -1, heads, size)])
        return net.op("Transpose", [y], perm=perm)

    q, k, v = project([0, 2, 1, 3]), project([0, 2, 3, 1]), project([0, 2, 1, 3])
    score = net.op("MatMul", [q, k])
    score = net.op(rng.choice(["Mul", "Div"]), [score, net.scalar(size**0.5)])
    if net.opset >= 9 and rng.random() < 0.4:
        mask = net.const(np.tril(np.ones((t, t), bool)))
        score = net.op("Where", [mask, score, net.scalar(-1e4 / 2 if net.dtype != np.float16 else -1e3)])
    elif rng.random() < 0.4:
        score = net.op("Add", [score, net.const((np.triu(np.ones((1, 1, t, t)), 1) * -1e3).astype(net.dtype))])
    weights = net.op("Softmax", [score], axis=3 if net.opset < 11 else -1)
    y = net.op("Transpose", [net.op("MatMul", [weights, v])], perm=[0, 2, 1, 3])
    y = net.op("Reshape", [y, net.ints(0, 0, heads * size)])
    y = net.op("MatMul", [y, net.floats((heads * size, d), (heads * size) ** -0.5)])
    if rng.random() < 0.7:
        y = net.op("Add", shuffled(rng, [y, net.floats((d,))]))
    return net.op("Add", shuffled(rng, [x, y]))
