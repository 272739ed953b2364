"""ONNX Runtime's answers, optimisations off, and which of them are fit to expect."""
import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

CANCELLING = ("ReduceMean", "ReduceSum", "Sub", "Add", "Sum", "Conv", "ConvTranspose", "MatMul", "Gemm", "GlobalAveragePool", "AveragePool")
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


def values_of(net, node, used, wanted):
    """What the runtime answers for one node over the net's values; Rejected when it does not, or nothing can be learnt from it."""
    # The runtime forgets a NaN here when a number follows it, and its largest of -inf is the lowest float.
    forgets = ("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin") + (("Softmax", "LogSoftmax") if net.dtype == np.float64 else ())
    if net.wild and node.op_type in forgets and any((np.isnan(net.values[i]) | np.isneginf(net.values[i])).any() for i in used if net.values[i].dtype.kind == "f"):
        raise Rejected("NaN")
    infos = [helper.make_tensor_value_info(i, type_of(net.values[i]), net.values[i].shape) for i in used]
    graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=n) for n in wanted])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", net.opset)], ir_version=8)
    try:
        results = session(model).run(None, {i: net.values[i] for i in used})
    except Exception as e:  # whatever the runtime says, the node is not for us
        raise Rejected(str(e)) from e
    for array in results:
        if array.size > MAX_ELEMENTS or (array.size == 0 and net.rng.random() < 0.9):
            raise Rejected("size")
        if not net.wild and array.dtype.kind == "f" and array.size and not np.abs(array.astype(np.float64)).max() < MAX_MAGNITUDE:
            raise Rejected("magnitude")
        # What a sum leaves after cancelling is rounding noise.
        if node.op_type in CANCELLING and not net.wild and array.size and array.dtype.kind == "f":
            largest = max(np.abs(net.values[i].astype(np.float64)).max(initial=0) for i in used if net.values[i].dtype == array.dtype)
            if 0 < np.abs(array.astype(np.float64)).max() < largest * 1e-3:
                raise Rejected("cancels")
    return results
