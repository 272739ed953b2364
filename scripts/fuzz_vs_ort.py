#!/usr/bin/env python3
"""Random ONNX models: whimbrel's answers, in every way it can run, against ONNX Runtime's.

usage: fuzz_vs_ort.py [--seconds 60] [--seed 0] [--batch 60] [--modes NAME ...] [--out DIR] [--keep-going]

A model grows node by node: each node runs alone in ONNX Runtime with optimisations off, and is kept when it
accepts the node and the values stay finite, so the expectation owes nothing to anybody's fusions. Batches of models then
run in build/bin/onnx_backend_runner --write, one process per mode: instruction set, threads, each fusion
pass off, all off, reference kernels. Every set runs twice and must repeat its bits. Models with an open first
dimension also run on single rows. A difference beyond rtol 1e-3 / atol 1e-4 (f16: 1e-2), scaled by the
expectation's magnitude, gets a second look: the inputs are nudged by 1e-6 (f16: 1e-3), and an output that
moves as far by itself is ill-conditioned, no fault.

Exit 1 on a difference; each one's folder (ONNX backend layout, with report.txt) is kept under --out.
The same --seed gives the same models in the same order (folders sSEED_NUMBER).

Left out, because the runtime is wrong or the standard is silent: LSTM sequences of length 0, pools with
SAME_* and dilations, align_corners with fractional lengths, nearest Resize at halves, NaN in pools and maxima.
Needs onnx, onnxruntime and numpy.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSES = ["ConvBnAct", "MatMulBiasAct", "BroadcastRank", "ElementwiseChain"]
CANCELLING = ("ReduceMean", "ReduceSum", "Sub", "Add", "Sum", "Conv", "ConvTranspose", "MatMul", "Gemm", "GlobalAveragePool", "AveragePool")
# What we refuse and the runtime takes: it reduces a scalar over any axis.
LENIENT = ("outside [0, 0) of a tensor of rank 0",)
MAX_ELEMENTS = 60000
MAX_MAGNITUDE = 1e4


class Rejected(Exception):
    """ONNX Runtime does not take the node, or its values are of no use."""


def session(model):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def type_of(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


class Net:
    """A model under construction, with the value of everything in it."""

    def __init__(self, rng, dtype, opset):
        self.rng = rng
        self.np = np.random.default_rng(rng.getrandbits(32))
        self.dtype = np.dtype(dtype)
        self.opset = opset
        self.nodes = []
        self.initializers = []
        self.inputs = []
        self.values = {}
        self.constants = set()
        self.depth = 0  # of branches
        self.rows_vary = False  # some input's first dimension is open
        self.wild = False  # NaN, infinities and zeros among the inputs
        self.exact = set()  # no arithmetic on the way: ties and edges are the same everywhere
        self.counter = 0

    def name(self, stem="v"):
        self.counter += 1
        return f"{stem}{self.counter}"

    def add_input(self, array, open_first=False):
        if self.depth:
            raise Rejected("a branch has no inputs")
        name = self.name("x")
        self.inputs.append((name, array, open_first))
        self.rows_vary = self.rows_vary or open_first
        self.values[name] = array
        self.exact.add(name)
        return name

    def const(self, array):
        array = np.asarray(array)
        name = self.name("c")
        if self.rng.random() < 0.2:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name)))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        self.values[name] = array
        self.constants.add(name)
        self.exact.add(name)
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def floats(self, shape, scale=1.0, positive=False):
        array = self.np.standard_normal(shape) * scale
        if positive:
            array = np.abs(array) + 0.3
        return self.const(array.astype(self.dtype))

    def scalar(self, value):
        shape = self.rng.choice([(), (), (1,)])
        return self.const(np.full(shape, value, self.dtype))

    def __getitem__(self, name):
        return self.values[name]

    def shape(self, name):
        return self.values[name].shape

    def rank(self, name):
        return self.values[name].ndim

    def op(self, kind, inputs, outputs=1, exact=False, **attributes):
        """One node; its output's name (a list when there are several)."""
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(kind, inputs, names, name=self.name("n"), **attributes)
        return self.add(node, names, exact)

    def add(self, node, names, exact=False, used=None):
        used = [i for i in dict.fromkeys(used if used is not None else node.input) if i]
        # The runtime forgets a NaN here when a number follows it, and its largest of -inf is the lowest float.
        forgets = ("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin") + (("Softmax", "LogSoftmax") if self.dtype == np.float64 else ())
        if self.wild and node.op_type in forgets and any((np.isnan(self.values[i]) | np.isneginf(self.values[i])).any() for i in used if self.values[i].dtype.kind == "f"):
            raise Rejected("NaN")
        infos = [helper.make_tensor_value_info(i, type_of(self.values[i]), self.values[i].shape) for i in used]
        wanted = [n for n in names if n]
        graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=n) for n in wanted])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        try:
            results = session(model).run(None, {i: self.values[i] for i in used})
        except Exception as e:  # whatever the runtime says, the node is not for us
            raise Rejected(str(e)) from e
        for array in results:
            if array.size > MAX_ELEMENTS or (array.size == 0 and self.rng.random() < 0.9):
                raise Rejected("size")
            if not self.wild and array.dtype.kind == "f" and array.size and not np.abs(array.astype(np.float64)).max() < MAX_MAGNITUDE:
                raise Rejected("magnitude")
            # What a sum leaves after cancelling is rounding noise.
            if node.op_type in CANCELLING and not self.wild and array.size and array.dtype.kind == "f":
                largest = max(np.abs(self.values[i].astype(np.float64)).max(initial=0) for i in used if self.values[i].dtype == array.dtype)
                if 0 < np.abs(array.astype(np.float64)).max() < largest * 1e-3:
                    raise Rejected("cancels")
        self.nodes.append(node)
        for name, array in zip(wanted, results):
            self.values[name] = array
            if exact and all(i in self.exact for i in used):
                self.exact.add(name)
        return names[0] if len(names) == 1 else names

    def pick(self, test=lambda a: True, otherwise=None):
        """A computed value, the latest most likely; a new input of the shape `otherwise` when there is none."""
        names = [n for n in self.values if n not in self.constants and self.values[n].dtype == self.dtype and test(self.values[n])]
        if not names or (otherwise and self.rng.random() < 0.1):
            if otherwise is None:
                raise Rejected("no such value")
            return self.add_input(self.np.standard_normal(otherwise).astype(self.dtype))
        if self.rng.random() < 0.7:
            return names[-1 - min(len(names) - 1, int(self.rng.expovariate(1.0)))]
        return self.rng.choice(names)


# Each emitter adds a few nodes to the net, or raises Rejected.

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


def shuffled(rng, items):
    rng.shuffle(items)
    return items


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


def channel_constant(net, x, positive=False):
    rank, channels = net.rank(x), net.shape(x)[1]
    shapes = [(channels,) + (1,) * (rank - 2), (1, channels) + (1,) * (rank - 2), (), (1,), (net.shape(x)[-1],), (1,) * rank]
    if rank == 4:
        shapes.append((1, 1, net.shape(x)[2], 1))
    return net.floats(net.rng.choice(shapes), 0.7, positive)


def batch_norm(net, x):
    c = net.shape(x)[1]
    inputs = [x, net.floats((c,)), net.floats((c,)), net.floats((c,)), net.floats((c,), positive=True)]
    return net.op("BatchNormalization", inputs, epsilon=net.rng.choice([1e-5, 1e-3, 0.1]))


def window(rng, spatial, most=5):
    return [min(rng.randint(1, most), s) for s in spatial]


def emit_conv(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim in (3, 4) and a.size)
    c, spatial = net.shape(x)[1], net.shape(x)[2:]
    group = rng.choice([1, 1, 1, c, c] + [g for g in (2, 3, 4) if c % g == 0])
    out = group * rng.choice([1, 1, 2, 3, 4]) if group > 1 else rng.choice([1, 3, 4, 8, 16, 17])
    kernel = rng.choice([window(rng, spatial), [min(3, s) for s in spatial], [1] * len(spatial)])
    a = {"group": group} if group > 1 or rng.random() < 0.3 else {}
    if rng.random() < 0.8:
        a["kernel_shape"] = kernel
    if rng.random() < 0.5:
        a["strides"] = [rng.randint(1, 3) for _ in spatial]
    if rng.random() < 0.3:
        a["dilations"] = [rng.randint(1, 3) for _ in spatial]
    pad = rng.random()
    if pad < 0.35:
        a["pads"] = [k // 2 for k in kernel] * 2
    elif pad < 0.55:
        a["pads"] = [rng.randint(0, 2) for _ in range(2 * len(spatial))]
    elif pad < 0.75:
        a["auto_pad"] = rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    fan = c // group * int(np.prod(kernel))
    weight = net.floats((out, c // group, *kernel), fan**-0.5)
    if rng.random() < 0.05:
        weight = net.op("Mul", [weight, net.op("ReduceMean", [x], keepdims=0)]) if net.opset < 18 else weight
    inputs = [x, weight] + ([net.floats((out,), 0.5)] if rng.random() < 0.5 else [])
    y = net.op("Conv", inputs, **a)
    return conv_tail(net, y)


def conv_tail(net, y):
    rng = net.rng
    if rng.random() < 0.4:
        y = batch_norm(net, y)
    while rng.random() < 0.3:
        kind = rng.choice(["Mul", "Add", "Sub", "Div", "Add"])
        pair = [y, channel_constant(net, y, positive=kind == "Div")]
        if rng.random() < 0.3 and kind != "Div":
            pair.reverse()
        y = net.op(kind, pair)
    if rng.random() < 0.35:
        shape = net.shape(y)
        other = net.pick(lambda a: a.shape == shape) if rng.random() < 0.7 else net.pick(lambda a: broadcasts(a.shape, shape))
        y = net.op(rng.choice(["Add", "Add", "Add", "Mul", "Sub"]), shuffled(rng, [y, other]))
    if rng.random() < 0.6:
        y = activation(net, y)
    return y


def broadcasts(a, b):
    try:
        np.broadcast_shapes(a, b)
        return True
    except ValueError:
        return False


def emit_conv_transpose(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim in (3, 4) and 0 < a.size < 8000)
    c, spatial = net.shape(x)[1], net.shape(x)[2:]
    group = rng.choice([1, 1, c] + [g for g in (2, 3) if c % g == 0])
    out = rng.choice([1, 2, 3, 8])
    kernel = [rng.randint(1, 4) for _ in spatial]
    strides = [rng.randint(1, 3) for _ in spatial]
    a = {"strides": strides}
    if group > 1:
        a["group"] = group
    if rng.random() < 0.5:
        a["kernel_shape"] = kernel
    if rng.random() < 0.2:
        a["dilations"] = [rng.randint(1, 2) for _ in spatial]
    pad = rng.random()
    if pad < 0.4:
        a["pads"] = [rng.randint(0, 1) for _ in range(2 * len(spatial))]
    elif pad < 0.6:
        a["auto_pad"] = rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif pad < 0.7:
        a["output_shape"] = [s * t for s, t in zip(spatial, strides)]
    if rng.random() < 0.3:
        a["output_padding"] = [rng.randrange(s) for s in strides]
    inputs = [x, net.floats((c, out, *kernel), (c // group * int(np.prod(kernel))) ** -0.5)] + ([net.floats((out * group,))] if rng.random() < 0.5 else [])
    return conv_tail(net, net.op("ConvTranspose", inputs, **a))


def emit_pool(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim in (3, 4) and a.size)
    spatial = net.shape(x)[2:]
    kind = rng.choice(["MaxPool", "AveragePool"])
    kernel = window(rng, spatial, 4)
    a = {"kernel_shape": kernel}
    if rng.random() < 0.7:
        a["strides"] = [rng.randint(1, 3) for _ in spatial]
    pad = rng.random()
    if pad < 0.4:
        a["pads"] = [rng.randint(0, k - 1) for k in kernel] * 2
    elif pad < 0.6:
        a["auto_pad"] = rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if net.opset >= 10 and rng.random() < 0.3 and "auto_pad" not in a:
        a["ceil_mode"] = 1
    if kind == "AveragePool" and rng.random() < 0.4:
        a["count_include_pad"] = 1
    # With SAME_* the runtime forgets the dilation when it chooses the padding.
    if rng.random() < 0.2 and "auto_pad" not in a and net.opset >= (19 if kind == "AveragePool" else 10):
        a["dilations"] = [rng.randint(1, 2) if k * 2 - 1 <= s else 1 for k, s in zip(kernel, spatial)]
    if kind == "MaxPool" and rng.random() < 0.2 and net.opset >= 8 and x in net.exact:
        return net.op("MaxPool", [x], outputs=2, exact=True, **a)[0]
    return net.op(kind, [x], exact=kind == "MaxPool", **a)


def emit_se_block(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim == 4 and a.size)
    c = net.shape(x)[1]
    y = net.op(rng.choice(["GlobalAveragePool", "GlobalMaxPool"]), [x]) if rng.random() < 0.7 else reduce(net, "ReduceMean", x, [2, 3], 1)
    mid = rng.choice([1, 2, 4])
    y = net.op("Relu", [net.op("Conv", [y, net.floats((mid, c, 1, 1), c**-0.5), net.floats((mid,))])])
    y = net.op("Conv", [y, net.floats((c, mid, 1, 1)), net.floats((c,))])
    y = activation(net, y)
    return net.op("Mul", shuffled(rng, [x, y]))


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


def emit_resize(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim in (3, 4) and 0 < a.size < 5000)
    rank, shape = net.rank(x), net.shape(x)
    mode = rng.choice(["nearest", "linear", "cubic"])
    scales = [1.0, 1.0] + [rng.choice([2.0, 2.0, 3.0, 0.5, 1.5, 1.0]) for _ in range(rank - 2)]
    if net.opset < 11 and mode == "cubic":
        raise Rejected("the runtime takes it, the standard does not")
    if net.opset < 9:
        return net.op("Upsample", [x], mode=mode, scales=[max(s, 1.0) for s in scales])
    if net.opset == 9:
        return net.op("Upsample", [x, net.const(np.array([max(s, 1.0) for s in scales], np.float32))], mode=mode)
    if net.opset == 10:
        return net.op("Resize", [x, net.const(np.array(scales, np.float32))], mode=mode)
    a = {"mode": mode, "coordinate_transformation_mode": rng.choice(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])}
    if mode == "nearest":  # other scales put coordinates on halves, where the runtime's float arithmetic decides
        a["coordinate_transformation_mode"] = "asymmetric"
        a["nearest_mode"] = "floor"
        scales = [1.0, 1.0] + [rng.choice([2.0, 3.0, 4.0, 1.0, 0.5]) for _ in range(rank - 2)]
    if mode == "cubic":
        a["cubic_coeff_a"] = rng.choice([-0.75, -0.5])
        if rng.random() < 0.3:
            a["exclude_outside"] = 1
    if net.opset >= 18 and rng.random() < 0.3 and mode != "nearest":
        a["antialias"] = 1
    # align_corners of a fractional length: the node tests take the fraction, the runtime drops it.
    whole = all(d * s == int(d * s) for d, s in zip(shape, scales))
    if rng.random() < 0.5 and (whole or a["coordinate_transformation_mode"] != "align_corners"):
        return net.op("Resize", [x, "", net.const(np.array(scales, np.float32))], **a)
    sizes = [max(1, int(d * s)) for d, s in zip(shape, scales)]
    return net.op("Resize", [x, "" if net.opset >= 13 else net.const(np.zeros(0, np.float32)), net.const(np.zeros(0, np.float32)) if net.opset < 13 else "",
                             net.ints(*sizes)], **a)


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


def branch(net, captured, outputs):
    """A branch's graph over captured values: a small net of its own, which may hold branches again."""
    rng = net.rng
    child = Net(rng, net.dtype, net.opset)
    child.counter, child.depth, child.wild, child.rows_vary = net.counter, net.depth + 1, net.wild, net.rows_vary
    child.values = {c: net[c] for c in captured}
    child.exact = {c for c in captured if c in net.exact}
    child.constants = {c for c in captured if c in net.constants}
    emitters = CONV_NET + SEQUENCE_NET if rng.random() < 0.6 else [(emit_activation, 1), (emit_binary, 1), (emit_chain, 1)]
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        try:
            rng.choices([e for e, _ in emitters], [w for _, w in emitters])[0](child)
        except Rejected:
            pass
    made = [n for n in child.values if n not in captured and n not in child.constants and child[n].dtype == net.dtype]
    while len(made) < outputs:
        made.append(child.op("Identity", [captured[0]], exact=True))
    net.counter = child.counter
    return helper.make_graph(child.nodes, net.name("b"), [], [helper.make_tensor_value_info(n, type_of(child[n]), None) for n in made[-outputs:]], child.initializers)


def emit_if(net):
    rng = net.rng
    if net.depth >= 3:
        raise Rejected("deep enough")
    x = net.pick(lambda a: a.ndim and a.size)
    y = net.pick(lambda a: a.size)
    style = rng.random()
    if style < 0.3:
        cond = net.const(np.array(rng.random() < 0.5))
    else:
        probe = net.pick(lambda a: a.ndim and a.size)
        mean = net.op("ReduceMean", [probe], keepdims=0)
        if not abs(float(net[mean]) - 0.05) > 1e-2:
            raise Rejected("too close to call")
        cond = net.op(rng.choice(["Greater", "Less"]), [mean, net.const(np.array(0.05, net.dtype))], exact=True)
    captured = list(dict.fromkeys([x, y] + rng.sample(sorted(net.constants), min(len(net.constants), rng.randrange(3)))))
    count = rng.choice([1, 1, 2])
    outs = [net.name() for _ in range(count)]
    node = helper.make_node("If", [cond], outs, name=net.name("n"), then_branch=branch(net, captured, count), else_branch=branch(net, captured, count))
    return net.add(node, outs, used=[cond] + captured)


def emit_lstm(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim == 3 and a.size and a.shape[0] <= 16 and a.shape[2] <= 64, (rng.randint(1, 8), rng.randint(1, 3), rng.choice([1, 4, 10])))
    t, b, d = net.shape(x)
    h = rng.choice([1, 3, 8])
    direction = rng.choice(["forward", "reverse", "bidirectional"])
    dirs = 2 if direction == "bidirectional" else 1
    inputs = [x, net.floats((dirs, 4 * h, d), d**-0.5), net.floats((dirs, 4 * h, h), h**-0.5)]
    extra = [net.floats((dirs, 8 * h)) if rng.random() < 0.6 else "",
             net.const(net.np.integers(1, t + 1, (b,)).astype(np.int32)) if rng.random() < 0.3 else "",
             net.floats((dirs, b, h)) if rng.random() < 0.4 else "",
             net.floats((dirs, b, h)) if rng.random() < 0.4 else "",
             net.floats((dirs, 3 * h)) if rng.random() < 0.2 else ""]
    inputs += extra
    while inputs[-1] == "":
        inputs.pop()
    a = {"hidden_size": h, "direction": direction}
    if rng.random() < 0.15:
        a["activations"] = ["Sigmoid", "Relu", "Tanh"] * dirs
    if rng.random() < 0.15:
        a["clip"] = 0.5
    if rng.random() < 0.1:
        a["input_forget"] = 1
    y = net.op("LSTM", inputs, outputs=3, **a)[0]
    if rng.random() < 0.7:
        return net.op("Squeeze", [y, net.ints(1)]) if net.opset >= 13 else net.op("Squeeze", [y], axes=[1])
    return y


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


def retried(emitter):
    """The emitter with a few more draws when a kind does not fit."""
    def attempt(net):
        for _ in range(4):
            try:
                return emitter(net)
            except Rejected:
                pass
        return emitter(net)
    return attempt


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
        return net.op(kind, [x, net.floats((shape[-1], 3))], equation=rng.choice([f"{b}ij,jk->{b}ik", f"{b}ij,jk->{b}k", f"{b}ij,jk", f"...j,jk->k..."]))
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


def emit_recurrent(net):
    rng = net.rng
    x = net.pick(lambda a: a.ndim == 3 and a.size and a.shape[0] <= 16 and a.shape[2] <= 64, (rng.randint(1, 8), rng.randint(1, 3), rng.choice([1, 4, 10])))
    t, b, d = net.shape(x)
    h = rng.choice([1, 3, 8])
    kind, gates = rng.choice([("GRU", 3), ("RNN", 1)])
    direction = rng.choice(["forward", "reverse", "bidirectional"])
    dirs = 2 if direction == "bidirectional" else 1
    inputs = [x, net.floats((dirs, gates * h, d), d**-0.5), net.floats((dirs, gates * h, h), h**-0.5),
              net.floats((dirs, 2 * gates * h)) if rng.random() < 0.6 else "",
              net.const(net.np.integers(1, t + 1, (b,)).astype(np.int32)) if rng.random() < 0.3 else "",
              net.floats((dirs, b, h)) if rng.random() < 0.4 else ""]
    while inputs[-1] == "":
        inputs.pop()
    a = {"linear_before_reset": 1} if kind == "GRU" and rng.random() < 0.5 else {}
    return net.op(kind, inputs, outputs=2, hidden_size=h, direction=direction, **a)[rng.randrange(2)]


def emit_volume(net):
    """Convolution and pooling in three dimensions."""
    rng = net.rng
    c = rng.choice([1, 2, 4])
    x = net.add_input(net.np.standard_normal((rng.choice([1, 2]), c, *[rng.randint(2, 6) for _ in range(3)])).astype(net.dtype))
    kernel = [rng.randint(1, 2) for _ in range(3)]
    kind = rng.randrange(4)
    if kind == 0:
        return net.op(rng.choice(["MaxPool", "AveragePool"]), [x], kernel_shape=kernel, strides=[rng.randint(1, 2) for _ in kernel])
    if kind == 1:
        return conv_tail(net, net.op("ConvTranspose", [x, net.floats((c, 3, *kernel), 0.5)], strides=[rng.randint(1, 2) for _ in kernel]))
    if kind == 2:
        return conv_tail(net, net.op("GlobalAveragePool", [x]))
    return conv_tail(net, net.op("Conv", [x, net.floats((5, c, *kernel), 0.5)], pads=[rng.randint(0, 1) for _ in range(6)]))


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


CONV_NET = [(emit_conv, 8), (emit_pool, 3), (emit_se_block, 2), (emit_conv_transpose, 2), (emit_resize, 2), (emit_move, 4), (emit_activation, 2), (emit_binary, 3),
            (emit_reduce, 1), (emit_softmax, 1), (emit_chain, 1), (emit_shape_arithmetic, 1), (emit_if, 1.5), (emit_compare, 0.5), (emit_arg, 0.3), (emit_odd, 2), (emit_volume, 0.5), (emit_large, 0.5), (emit_unary, 1), (emit_index, 1),
            (emit_norm, 1.5)]
WILD_NET = [(emit_activation, 5), (emit_pool, 4), (emit_softmax, 3), (emit_reduce, 5), (emit_binary, 5), (emit_chain, 5), (emit_move, 3), (emit_conv, 1), (emit_matmul, 1),
            (emit_layer_norm, 1), (emit_odd, 2)]
SEQUENCE_NET = [(emit_matmul, 6), (emit_gemm, 3), (emit_softmax, 2), (emit_layer_norm, 3), (emit_attention, 3), (emit_move, 6), (emit_binary, 3), (emit_chain, 3),
                (emit_reduce, 2), (emit_shape_arithmetic, 3), (emit_if, 4), (emit_lstm, 1.5), (emit_compare, 2), (emit_arg, 1), (emit_round, 1.5), (emit_activation, 3),
                (emit_nms, 0.4), (emit_ints, 1.5), (emit_odd, 4), (emit_unary, 3), (emit_index, 4),
                (emit_recurrent, 1)]


def make_net(rng):
    dtype = rng.choices([np.float32, np.float16, np.float64], [88, 6, 6])[0]
    net = Net(rng, dtype, rng.choice([7, 8, 9, 10, 11, 11, 12, 13, 13, 14, 15, 16, 17, 18, 19, 20, 21]))
    picture = rng.random() < 0.55
    batch = rng.choice([1, 1, 2, 3])
    open_first = rng.random() < 0.4
    if picture:
        channels = rng.choice([1, 2, 3, 4, 6, 8, 16])
        spatial = [rng.randint(1, 14) for _ in range(rng.choice([1, 2, 2, 2]))]
        shape = (batch, channels, *spatial)
    else:
        shape = rng.choice([(batch, rng.choice([4, 7, 16, 33])), (batch, rng.randint(1, 9), rng.choice([4, 8, 12, 17])), (batch, 2, 5, 6), (rng.randint(1, 40),)])
    for _ in range(rng.choice([1, 1, 2])):
        values = net.np.standard_normal(shape)
        if rng.random() < 0.15:
            values = np.round(values * 2) / 2  # ties
        if rng.random() < 0.06:
            net.wild = True
            odd = rng.choice([[np.nan], [np.inf], [-np.inf], [0.0, -0.0], [np.nan, np.inf, -np.inf, 0.0]])
            values = np.where(net.np.random(shape) < 0.15, net.np.choice(odd, shape), values)
        net.add_input(values.astype(dtype), open_first)
    emitters = CONV_NET if picture else SEQUENCE_NET
    if rng.random() < 0.25:
        emitters = CONV_NET + SEQUENCE_NET
    if net.wild:
        emitters = WILD_NET
    for _ in range(rng.randint(1, 9)):
        for _ in range(4):
            count = len(net.nodes)
            try:
                rng.choices([e for e, _ in emitters], [w for _, w in emitters])[0](net)
                break
            except Rejected:
                if len(net.nodes) > count + 3:
                    break
    return net


def outputs_of(net):
    """Everything nobody reads, sometimes without one; values in the middle; an input; one twice through Identity."""
    rng = net.rng
    used = set()

    def collect(nodes):
        for node in nodes:
            used.update(node.input)
            for a in node.attribute:
                if a.HasField("g"):
                    collect(a.g.node)
                    used.update(o.name for o in a.g.output)

    collect(net.nodes)
    made = [o for n in net.nodes for o in n.output if o in net.values and o not in net.constants]
    outputs = [o for o in made if o not in used]
    if len(outputs) > 1 and rng.random() < 0.3:
        outputs.remove(rng.choice(outputs))
    for chance, names in ((0.3, made), (0.3, made), (0.07, [i[0] for i in net.inputs]), (0.05, sorted(net.constants))):
        if names and rng.random() < chance:
            outputs.append(rng.choice(names))
    outputs = list(dict.fromkeys(outputs))
    rng.shuffle(outputs)
    return outputs


def model_of(net, outputs):
    infos = []
    for name, array, open_first in net.inputs:
        dims = list(array.shape)
        if open_first and dims:
            dims[0] = "N"
        infos.append(helper.make_tensor_value_info(name, type_of(array), dims))
    results = [helper.make_tensor_value_info(o, type_of(net[o]), [None] * net[o].ndim) for o in outputs]
    graph = helper.make_graph(net.nodes, "fuzz", infos, results, net.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", net.opset)], ir_version=8 if net.opset < 21 else 10)


class Case:
    """A model, its input sets, and what ONNX Runtime answers."""

    def __init__(self, name, rng):
        self.name = name
        self.net = make_net(rng)
        self.outputs = outputs_of(self.net)
        if not self.outputs:
            raise Rejected("no outputs")
        self.model = model_of(self.net, self.outputs)
        try:
            self.session = session(self.model)
        except Exception as e:
            raise Rejected(str(e)) from e
        self.sets = []
        whole = {name: array for name, array, _ in self.net.inputs}
        self.add_set(whole, [self.net[o] for o in self.outputs])
        if any(n.op_type == "If" for n in self.net.nodes):  # most conditions are on means: take the other branch
            feed = {n: -a if a.dtype.kind == "f" else a for n, a, _ in self.net.inputs}
            try:
                self.add_set(feed, self.session.run(None, feed))
            except Exception:
                pass
        first = self.net.inputs[0]
        if first[2] and first[1].ndim and self.net.rng.random() < 0.7:
            rows = first[1].shape[0]
            for picked in ([0], [rows - 1], list(range(rows)) * 2):
                feed = {n: (a[picked] if is_open and a.ndim else a) for n, a, is_open in self.net.inputs}
                try:
                    self.add_set(feed, self.session.run(None, feed))
                except Exception:
                    pass  # the model's constants hold the batch

    def add_set(self, feed, expected):
        self.sets.append((feed, expected))

    def write(self, folder):
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(self.model.SerializeToString())
        for k, (feed, expected) in enumerate(self.sets):
            place = folder / f"test_data_set_{k}"
            place.mkdir()
            for kind, arrays in (("input", feed.values()), ("output", expected)):
                for j, array in enumerate(arrays):
                    (place / f"{kind}_{j}.pb").write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())

    def write_empty(self, folder):
        """The model with no rows, which ends the runtime's own process at times: we may refuse it, in words."""
        if not any(is_open and a.ndim for _, a, is_open in self.net.inputs):
            return
        place = folder / "test_data_set_0"
        place.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(self.model.SerializeToString())
        for j, (_, array, is_open) in enumerate(self.net.inputs):
            (place / f"input_{j}.pb").write_bytes(numpy_helper.from_array(array[:0] if is_open and array.ndim else array).SerializeToString())

    def nudged(self, k, size):
        """The largest move of each output when the inputs and float constants move a little."""
        feed, expected = self.sets[k]
        moves = [np.zeros(np.shape(e)) for e in expected]
        noise = np.random.default_rng(1)

        def near(a):
            return (a * (1 + size * noise.uniform(-1, 1, a.shape))).astype(a.dtype)

        for _ in range(3):
            model = onnx.ModelProto()
            model.CopyFrom(self.model)
            for tensor in model.graph.initializer:
                array = numpy_helper.to_array(tensor)
                if array.dtype == self.net.dtype and array.size > 1:
                    tensor.CopyFrom(numpy_helper.from_array(near(array), tensor.name))
            try:
                got = session(model).run(None, {n: near(a) if a.dtype.kind == "f" else a for n, a in feed.items()})
            except Exception:
                return None
            for j, (g, e) in enumerate(zip(got, expected)):
                if g.shape != e.shape:
                    return None
                if g.size and e.dtype.kind in "fiu":
                    if e.dtype.kind == "f":
                        same = (g == e) | (np.isnan(g) & np.isnan(e))
                        g, e = np.where(same, 0, g), np.where(same, 0, e)
                    moves[j] = np.maximum(moves[j], np.nan_to_num(np.abs(g.astype(np.float64) - e.astype(np.float64)), nan=np.inf))
        return moves


def difference(got, want, slack=None):
    """Empty, or the worst element in words."""
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.size == 0:
        return ""
    if want.dtype.kind != "f":
        bad = got != want
        if slack is not None:
            bad &= slack == 0
        return f"{int(bad.sum())} of {bad.size} elements differ, first at {tuple(map(int, np.argwhere(bad)[0]))}" if bad.any() else ""
    a, b = got.astype(np.float64), want.astype(np.float64)
    loose = 10.0 if want.dtype == np.float16 else 1.0
    magnitude = float(np.nan_to_num(np.abs(b), nan=0.0, posinf=0.0).max())
    allowed = loose * (1e-3 * np.abs(b) + 1e-4 * min(magnitude, 1.0) + 1e-5 * magnitude) + 1e-6
    if slack is not None:
        allowed = allowed + 30 * slack
    with np.errstate(invalid="ignore"):
        error = np.abs(a - b)
        bad = ~((error <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not bad.any():
        return ""
    worst = np.unravel_index(np.argmax(np.where(bad, np.nan_to_num(error, nan=np.inf), -1)), bad.shape)
    return f"{int(bad.sum())} of {bad.size} elements differ; at {tuple(map(int, worst))} {a[worst]:.7g}, expected {b[worst]:.7g}"


def modes(folder):
    def switch_file(name):
        path = folder / f"{name}_off.json"
        path.write_text(json.dumps({"Switch": {"GraphFusion": {name: "off"}}}))
        return str(path)

    table = {"default": ([], {}), "threads1": (["--threads", "1"], {}), "threads2": (["--threads", "2"], {}),
             "avx2": (["--threads", "1"], {"WHIMBREL_ISA": "avx2"}), "portable": ([], {"WHIMBREL_ISA": "portable"}),
             "all_off": (["--fusion-switch-file", switch_file("ALL")], {}), "reference": (["--reference"], {})}
    for name in PASSES:
        table[f"{name}_off"] = (["--fusion-switch-file", switch_file(name)], {})
    return table


def run_mode(runner, cases_dir, out_dir, flags, environment):
    """NAME -> '' or what failed; crashes name their case, and the rest runs on."""
    outcome = {}
    waiting = sorted(p.name for p in cases_dir.iterdir())
    place = cases_dir
    while waiting:
        command = [str(runner), str(place), "--write", str(out_dir), *flags]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=600)
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            name, _, text = rest.partition(": ")
            if word in ("PASS", "FAIL", "SKIP"):
                outcome[name] = "" if word == "PASS" else f"{word} {text}"
        waiting = [n for n in waiting if n not in outcome]
        if not waiting:
            break
        outcome[waiting[0]] = f"FAIL the program ended with {done.returncode}: {done.stderr[-400:]}"
        place = pathlib.Path(tempfile.mkdtemp(prefix="rest_", dir=cases_dir.parent))
        waiting = waiting[1:]
        for name in waiting:
            (place / name).symlink_to(cases_dir / name)
    return outcome


def check(case, out_dir, failed):
    """The first difference of a case in one mode, or ''."""
    if failed:
        return failed
    for k, (_, expected) in enumerate(case.sets):
        slack = None
        for j, want in enumerate(expected):
            got = np.load(out_dir / case.name / f"test_data_set_{k}_{j}.npy")
            text = difference(got, want)
            if not text:
                continue
            if slack is None:
                slack = case.nudged(k, 1e-3 if case.net.dtype == np.float16 else 1e-6) or [None] * len(expected)
            text = difference(got, want, slack[j]) if got.shape == want.shape else text
            if text:
                return f"set {k} output {j} ({case.outputs[j]}): {text}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=60, help="models per round of modes")
    parser.add_argument("--modes", nargs="+", help="default: all")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("fuzz_failures"))
    parser.add_argument("--keep-going", action="store_true", help="do not stop after the first batch with differences")
    parser.add_argument("--runner", type=pathlib.Path, default=ROOT / "build" / "bin" / "onnx_backend_runner")
    options = parser.parse_args()
    if not options.runner.exists():
        print(f"fuzz_vs_ort: {options.runner} is not built", file=sys.stderr)
        return 2
    end = time.monotonic() + options.seconds
    models = compared = sets = 0
    faults = 0
    skips = collections.Counter()
    operators = collections.Counter()
    number = 0
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as name:
            work = pathlib.Path(name)
            cases = {}
            while len(cases) < options.batch and (time.monotonic() < end or not cases):
                case_name = f"s{options.seed}_{number:06d}"
                number += 1
                try:
                    case = Case(case_name, random.Random(f"{options.seed}/{number - 1}"))
                except Rejected:
                    continue
                case.write(work / "cases" / case_name)
                case.write_empty(work / "cases" / f"{case_name}_empty")
                cases[case_name] = case
                operators.update({n.op_type for n in case.net.nodes})
            models += len(cases)
            sets += sum(len(c.sets) for c in cases.values())
            found = collections.defaultdict(list)
            for mode, (flags, environment) in modes(work).items():
                if options.modes and mode not in options.modes:
                    continue
                out_dir = work / mode
                outcome = run_mode(options.runner, work / "cases", out_dir, flags, environment)
                for case_name, failed in outcome.items():
                    if case_name.endswith("_empty") and ("the program ended" in failed or "internal" in failed or "other bits" in failed):
                        found[case_name].append(f"{mode}: {failed}")
                for case_name, case in cases.items():
                    failed = outcome.get(case_name, "FAIL no outcome")
                    if failed.startswith("SKIP") or any(words in failed for words in LENIENT):
                        skips[failed] += 1
                        continue
                    compared += 1
                    text = check(case, out_dir, failed)
                    if text:
                        found[case_name].append(f"{mode}: {text}")
            for case_name, lines in found.items():
                faults += 1
                target = options.out / case_name
                shutil.rmtree(target, ignore_errors=True)
                options.out.mkdir(parents=True, exist_ok=True)
                shutil.copytree(work / "cases" / case_name, target)
                report = "\n".join(lines) + "\n\n" + onnx.printer.to_text(cases[case_name.removesuffix("_empty")].model)
                (target / "report.txt").write_text(report)
                print(f"{case_name} ({len(lines)} modes) {lines[0]}", flush=True)
            if found and not options.keep_going:
                break
    for reason, count in skips.most_common(20):
        print(f"not run, {count} times: {reason}")
    print(f"operators: {', '.join(f'{k} {v}' for k, v in operators.most_common())}")
    print(f"{models} models, {sets} input sets, {compared} model runs compared, {faults} models differ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
