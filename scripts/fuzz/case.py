"""A case: a model, its input sets and ONNX Runtime's answers, on disk and nudged."""
import numpy as np
import onnx
from onnx import numpy_helper

from fuzz.generate import make_net, model_of, outputs_of
from fuzz.oracle import Rejected, session


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
