"""A model under construction, and how blocks draw from it."""
import numpy as np
from onnx import helper, numpy_helper

from fuzz.oracle import Rejected, values_of


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
        wanted = [n for n in names if n]
        results = values_of(self, node, used, wanted)
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


def shuffled(rng, items):
    rng.shuffle(items)
    return items


def broadcasts(a, b):
    try:
        np.broadcast_shapes(a, b)
        return True
    except ValueError:
        return False


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
