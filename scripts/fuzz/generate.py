"""Random models: which blocks a net draws, its branches, inputs and outputs."""
import numpy as np
from onnx import helper

from fuzz.blocks_conv import emit_conv, emit_conv_transpose, emit_pool, emit_resize, emit_se_block, emit_volume
from fuzz.blocks_elementwise import emit_activation, emit_binary, emit_chain, emit_compare, emit_round, emit_unary
from fuzz.blocks_index import emit_index, emit_nms
from fuzz.blocks_ints import emit_ints
from fuzz.blocks_matmul import emit_attention, emit_gemm, emit_matmul
from fuzz.blocks_odd import emit_large, emit_norm, emit_odd
from fuzz.blocks_recurrent import emit_lstm, emit_recurrent
from fuzz.blocks_reduce import emit_arg, emit_layer_norm, emit_reduce, emit_softmax
from fuzz.blocks_shape import emit_move, emit_shape_arithmetic
from fuzz.net import Net
from fuzz.oracle import Rejected, type_of


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


# Blocks and how often each is drawn; a block adds a few nodes to the net, or raises Rejected.
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
