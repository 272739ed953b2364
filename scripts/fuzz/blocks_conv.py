"""Blocks over pictures: convolutions and what follows them, pools, resizing, volumes."""
import numpy as np

from fuzz.blocks_elementwise import activation
from fuzz.blocks_reduce import reduce
from fuzz.net import broadcasts, shuffled
from fuzz.oracle import Rejected


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
