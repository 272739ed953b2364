"""Blocks that keep a state: LSTM, GRU, RNN."""
import numpy as np


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
