"""Blocks of integer arithmetic."""
import numpy as np
from onnx import helper

from fuzz.blocks_reduce import reduce, some_axes
from fuzz.net import shuffled
from fuzz.oracle import Rejected


def emit_ints(net):
    """Integer arithmetic of any width."""
    rng = net.rng
    dtype = rng.choice([np.int32, np.int64, np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64])
    low = 0 if np.dtype(dtype).kind == "u" else -9
    shape = rng.choice([(3,), (2, 5), (2, 1, 4), (1,), (), (17,)])
    x = net.add_input(net.np.integers(low, 10, shape).astype(dtype))
    for _ in range(rng.randint(1, 4)):
        try:
            x = int_step(net, x)
        except Rejected:
            pass
    return x


def int_step(net, x):
    rng = net.rng
    kind = rng.choice(["Add", "Sub", "Mul", "Div", "Max", "Min", "Abs", "Neg", "Pow", "reduce", "arg", "move", "compare", "cast", "clip", "relu", "bits", "Mod"])
    other = net.const(net.np.integers(1, 5, rng.choice([(), (1,), net.shape(x)[-1:], net.shape(x)])).astype(net[x].dtype))
    if kind in ("Add", "Sub", "Mul", "Max", "Min"):
        x = net.op(kind, shuffled(rng, [x, other]), exact=True)
    elif kind == "bits":
        x = net.op(rng.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [x, other], exact=True)
    elif kind == "Mod":
        x = net.op("Mod", [x, other], exact=True, fmod=rng.randrange(2))
    elif kind == "Div":
        x = net.op("Div", [x, other], exact=True)
    elif kind == "Pow":
        x = net.op("Pow", [x, net.const(np.array(rng.choice([2, 3, 0, 1]), rng.choice([np.float32, np.int64, net[x].dtype])))], exact=True)
    elif kind in ("Abs", "Neg"):
        x = net.op(kind, [x], exact=True)
    elif kind == "relu":
        x = net.op("Relu", [x], exact=True)
    elif kind == "clip" and net.opset >= 12:
        x = net.op("Clip", [x, net.const(np.array(1, net[x].dtype)), rng.choice(["", net.const(np.array(4, net[x].dtype))])], exact=True)
    elif kind == "reduce" and net.rank(x):
        x = reduce(net, rng.choice(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceSumSquare"]), x, some_axes(net, x), rng.randrange(2))
    elif kind == "arg" and net.rank(x):
        x = net.op(rng.choice(["ArgMax", "ArgMin"]), [x], exact=True, axis=rng.randrange(net.rank(x)), keepdims=rng.randrange(2))
    elif kind == "compare":
        mask = net.op(rng.choice(["Equal", "Greater", "Less"]), [x, other], exact=True)
        x = net.op("Where", [mask, x, other], exact=True) if net.opset >= 9 else mask
    elif kind == "cast":
        x = net.op("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(rng.choice([np.int64, np.int32, np.uint8, np.int8, np.float32, np.bool_, np.float16, np.float64]))), exact=True)
    elif kind == "move" and net.rank(x):
        x = rng.choice([lambda: net.op("Transpose", [x], exact=True), lambda: net.op("Concat", [x, other, x], axis=0, exact=True),
                        lambda: net.op("Gather", [x, net.ints(0, -1)], axis=0, exact=True), lambda: net.op("Reshape", [x, net.ints(-1)], exact=True),
                        lambda: net.op("Tile", [x, net.ints(*[2] * net.rank(x))], exact=True)])()
    return x
