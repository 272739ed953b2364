// Random graphs: every set of passes and kernels gives what the reference kernels give node by
// node.

#include "tests/graph/model_builder.h"

namespace whimbrel {
namespace {

// Grows a graph of 4-d values, now and then channels-last for a while, with reshapes and branching
// uses.
class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed) {
    values_.push_back({"x", {Pick({1, 2}), Pick({1, 3, 4, 8}), Pick({1, 4, 5}), Pick({1, 4, 6})}});
    m_.Input("x", ShapeOf(values_[0]));
    const int steps = 4 + Pick({0, 3, 8, 14});
    for (int i = 0; i < steps; ++i) Step();
    // The last value and some others are outputs.
    for (size_t i = 0; i < values_.size(); ++i) {
      if (i + 1 == values_.size() || Chance(12)) m_.Output(values_[i].name);
    }
  }
  const ModelBuilder& model() const { return m_; }

 private:
  struct V {
    std::string name;
    std::vector<int64_t> dims;
  };

  bool Chance(unsigned one_in) { return random_() % one_in == 0; }
  int Pick(std::initializer_list<int> of) { return std::data(of)[random_() % of.size()]; }
  static Shape ShapeOf(const V& v) { return Shape(std::span<const int64_t>(v.dims)); }
  std::string Name(const char* what) { return std::string(what) + std::to_string(counter_++); }
  std::string Constant(const Shape& shape, float low = -0.8F, float high = 0.8F) {
    const std::string name = Name("k");
    m_.Constant(name, RandomTensor(shape, static_cast<uint32_t>(random_()), low, high));
    return name;
  }
  // Mostly the newest value, so that runs of nodes form.
  V Some() { return Chance(4) ? values_[random_() % values_.size()] : values_.back(); }
  void Add(const std::string& op, const std::vector<std::string>& inputs, std::vector<int64_t> dims,
           const std::vector<onnx::AttributeProto>& attributes = {}) {
    const std::string out = Name("v");
    m_.Node(op, inputs, {out}, attributes);
    values_.push_back({out, std::move(dims)});
  }

  void Step() {
    const V v = Some();
    switch (random_() % 14) {
      case 0:
      case 1:
        return Conv(v);
      case 2:
        return Activation(v);
      case 3:
        return Activation(v);
      case 4:
        return Binary(v);
      case 5:
        return BatchNorm(v);
      case 6:
        return Resize(v);
      case 7:
        return Concat(v);
      case 8:
        return Transpose(v);
      case 9:
        return Reshape(v);
      case 10:
        return Pool(v);
      case 11:
        return MatMul(v);
      case 12:
        return Move(v);
      default:
        return Residual(v);
    }
  }

  void Conv(const V& v) {
    if (v.dims.size() != 4) return;
    const int64_t c = v.dims[1];
    const int64_t out = Chance(3) ? c : Pick({1, 4, 8});
    const bool depthwise = out == c && Chance(3);
    const bool transposed = Chance(6) && !depthwise;
    const std::string w = Constant(
        transposed ? Shape{c, out, 3, 3} : Shape{out, depthwise ? 1 : c, 3, 3}, -0.3F, 0.3F);
    std::vector<std::string> inputs{v.name, w};
    if (Chance(2)) inputs.push_back(Constant(Shape{out}));
    const bool narrow = !transposed && Chance(4);
    if (narrow) {
      Add("Conv", inputs, {v.dims[0], out, (v.dims[2] + 1) / 2, (v.dims[3] + 1) / 2},
          {AttrInts("pads", {1, 1, 1, 1}), AttrInts("strides", {2, 2}),
           AttrInt("group", depthwise ? c : 1)});
    } else {
      Add(transposed ? "ConvTranspose" : "Conv", inputs, {v.dims[0], out, v.dims[2], v.dims[3]},
          {AttrInts("pads", {1, 1, 1, 1}), AttrInt("group", depthwise ? c : 1)});
    }
  }

  void Activation(const V& v) {
    switch (random_() % 8) {
      case 0:
        return Add("Relu", {v.name}, v.dims);
      case 1:
        return Add("Sigmoid", {v.name}, v.dims);
      case 2:
        return Add("Tanh", {v.name}, v.dims);
      case 3:
        return Add("LeakyRelu", {v.name}, v.dims, {AttrFloat("alpha", 0.1F)});
      case 4:
        return Add("Clip", {v.name, Constant(Shape{}, -0.5F, -0.4F), Constant(Shape{}, 0.4F, 0.9F)},
                   v.dims);
      case 5: {
        const Shape slope = v.dims.size() == 4 ? Shape{v.dims[1], 1, 1} : Shape{v.dims.back()};
        return Add("PRelu", {v.name, Constant(slope)}, v.dims);
      }
      case 6: {  // swish
        Add("Sigmoid", {v.name}, v.dims);
        return Add("Mul", {v.name, values_.back().name}, v.dims);
      }
      default: {  // hardswish
        Add("Add", {v.name, Constant(Shape{}, 3, 3)}, v.dims);
        Add("Clip", {values_.back().name, Constant(Shape{}, 0, 0), Constant(Shape{}, 6, 6)},
            v.dims);
        Add("Mul", {v.name, values_.back().name}, v.dims);
        return Add("Div", {values_.back().name, Constant(Shape{}, 6, 6)}, v.dims);
      }
    }
  }

  void Binary(const V& v) {
    static constexpr std::array<const char*, 5> kOps{"Add", "Sub", "Mul", "Max", "Min"};
    const char* op = kOps[random_() % kOps.size()];
    std::vector<int64_t> dims = v.dims;
    for (int64_t& d : dims) d = Chance(2) ? 1 : d;
    if (Chance(3)) dims.erase(dims.begin());
    const std::string k = Constant(Shape(std::span<const int64_t>(dims)));
    Add(op, Chance(2) ? std::vector<std::string>{v.name, k} : std::vector<std::string>{k, v.name},
        v.dims);
  }

  void Residual(const V& v) {
    for (int tries = 0; tries < 8; ++tries) {
      const V& o = values_[random_() % values_.size()];
      if (o.dims != v.dims) continue;
      return Add(Chance(3) ? "Mul" : "Add", {v.name, o.name}, v.dims);
    }
    // A computed operand that broadcasts: the mean over some axis.
    const int axis = static_cast<int>(random_() % v.dims.size());
    std::vector<int64_t> dims = v.dims;
    dims[static_cast<size_t>(axis)] = 1;
    Add("ReduceMean", {v.name}, dims, {AttrInts("axes", {axis}), AttrInt("keepdims", 1)});
    Add("Sub", {v.name, values_.back().name}, v.dims);
  }

  void BatchNorm(const V& v) {
    if (v.dims.size() != 4) return;
    const Shape c{v.dims[1]};
    Add("BatchNormalization", {v.name, Constant(c), Constant(c), Constant(c), Constant(c, 0.5F, 2)},
        v.dims);
  }

  void Resize(const V& v) {
    if (v.dims.size() != 4 || v.dims[2] * v.dims[3] > 200) return;
    const std::string scales = Name("s");
    m_.Floats(scales, Shape{4}, {1, 1, 2, 2});
    Add("Resize", {v.name, "", scales}, {v.dims[0], v.dims[1], v.dims[2] * 2, v.dims[3] * 2},
        {AttrString("mode", Chance(2) ? "nearest" : "linear"),
         AttrString("coordinate_transformation_mode", "asymmetric"),
         AttrString("nearest_mode", "floor")});
  }

  void Concat(const V& v) {
    for (int tries = 0; tries < 6; ++tries) {
      const V o = values_[random_() % values_.size()];
      if (o.dims.size() != v.dims.size()) continue;
      for (size_t axis = 0; axis < v.dims.size(); ++axis) {
        std::vector<int64_t> a = v.dims;
        std::vector<int64_t> b = o.dims;
        const int64_t sum = a[axis] + b[axis];
        a[axis] = b[axis] = 0;
        if (a != b || sum > 24) continue;
        a[axis] = sum;
        return Add("Concat", {v.name, o.name}, a, {AttrInt("axis", static_cast<int64_t>(axis))});
      }
    }
  }

  void Transpose(const V& v) {
    if (v.dims.size() != 4) return;
    const auto perm = Chance(2)   ? std::vector<int64_t>{0, 2, 3, 1}
                      : Chance(2) ? std::vector<int64_t>{0, 3, 1, 2}
                                  : std::vector<int64_t>{0, 1, 3, 2};
    std::vector<int64_t> dims;
    for (int64_t p : perm) dims.push_back(v.dims[static_cast<size_t>(p)]);
    Add("Transpose", {v.name}, dims, {AttrInts("perm", perm)});
  }

  void Reshape(const V& v) {
    std::vector<int64_t> dims;
    if (v.dims.size() == 4) {
      dims = Chance(2) ? std::vector<int64_t>{v.dims[0], v.dims[1] * v.dims[2], v.dims[3]}
                       : std::vector<int64_t>{v.dims[0], v.dims[1], v.dims[3], v.dims[2]};
    } else {
      dims = {v.dims[0], 1, v.dims[1], v.dims[2]};
    }
    const std::string to = Name("to");
    m_.Ints(to, dims);
    Add("Reshape", {v.name, to}, dims);
  }

  void Pool(const V& v) {
    if (v.dims.size() != 4) return;
    Add(Chance(2) ? "MaxPool" : "AveragePool", {v.name}, v.dims,
        {AttrInts("kernel_shape", {3, 3}), AttrInts("pads", {1, 1, 1, 1})});
  }

  void MatMul(const V& v) {
    const int64_t out = Pick({1, 4, 7});
    std::vector<int64_t> dims = v.dims;
    dims.back() = out;
    Add("MatMul", {v.name, Constant(Shape{v.dims.back(), out}, -0.4F, 0.4F)}, dims);
    if (Chance(2)) Add("Add", {values_.back().name, Constant(Shape{out})}, dims);
  }

  void Move(const V& v) {
    const auto axis = static_cast<int64_t>(random_() % v.dims.size());
    const int64_t size = v.dims[static_cast<size_t>(axis)];
    if (size < 2) return Add("Identity", {v.name}, v.dims);
    std::vector<int64_t> dims = v.dims;
    dims[static_cast<size_t>(axis)] = size - 1;
    const std::string b = Name("i");
    const std::string e = Name("i");
    const std::string a = Name("i");
    m_.Ints(b, {1}).Ints(e, {size}).Ints(a, {axis});
    Add("Slice", {v.name, b, e, a}, dims);
  }

  std::mt19937 random_;
  ModelBuilder m_;
  std::vector<V> values_;
  int counter_ = 0;
};

// Values grow along a graph and float sums differ by their order: the bound is relative to the
// largest value.
::testing::AssertionResult Agree(const std::vector<Tensor>& got,
                                 const std::vector<Tensor>& expected) {
  if (got.size() != expected.size())
    return ::testing::AssertionFailure() << got.size() << " outputs";
  for (size_t i = 0; i < got.size(); ++i) {
    double largest = 1;
    for (float v : expected[i].values<float>())
      largest = std::max(largest, std::fabs(static_cast<double>(v)));
    const auto close = Close(got[i], expected[i], 2e-4 * largest);
    if (!close) return ::testing::AssertionFailure() << "output " << i << ": " << close.message();
  }
  return ::testing::AssertionSuccess();
}

void CheckSeed(uint32_t seed) {
  const RandomModel random(seed);
  const Graph imported = random.model().Import();
  const Graph plain = Compiled(imported, false);
  const std::vector<Tensor> inputs{
      RandomTensor(ToShape(*plain.value(plain.inputs[0]).info.dims), seed, -1, 1)};
  const auto expected = RunNodeByNode(plain, inputs);
  ASSERT_TRUE(Agree(RunPlan(plain, inputs), expected)) << "no passes\n" << ToText(plain);
  ASSERT_TRUE(Agree(RunPlan(plain, inputs, true), expected)) << "reference kernels\n"
                                                             << ToText(plain);
  const Graph fused = Compiled(imported);
  ASSERT_TRUE(Agree(RunPlan(fused, inputs), expected))
      << "all passes\n"
      << ToText(plain) << "fused\n"
      << ToText(fused) << ToText(MakePlan(fused, {}), fused);
  ASSERT_TRUE(Agree(RunPlan(fused, inputs, true), expected)) << "all passes, reference kernels\n"
                                                             << ToText(fused);
  // Each pass alone.
  const auto& passes = Passes();
  CompileOptions one;
  for (const Pass& pass : passes)
    one.switches.Set(pass.name, pass.name == passes[seed % passes.size()].name);
  const auto single = CompileGraph(imported, one);
  ASSERT_TRUE(Agree(RunPlan(*single.graph, inputs), expected)) << one.switches.ToText() << "\n"
                                                               << ToText(*single.graph);
}

TEST(PassesProperty, RandomGraphsGiveTheSameWithAndWithout) {
  for (uint32_t seed = 0; seed < Rounds(600); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CheckSeed(seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// In-place steps, views and offsets: after each run every intermediate value that a later step
// reads is what it should be. Watches the arena directly: a value must not change between its step
// and its last use.
TEST(PlanProperty, NoStepWritesOverAValueThatIsStillNeeded) {
  for (uint32_t seed = 1000; seed < 1000 + Rounds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomModel random(seed);
    const Graph graph = Compiled(random.model().Import(), seed % 2 == 0);
    Executable executable(std::make_shared<const Graph>(CloneGraph(graph)), OpenDevice("cpu:0"),
                          {});
    const std::vector<Tensor> inputs{
        RandomTensor(ToShape(*graph.value(graph.inputs[0]).info.dims), seed)};
    const auto stream = OneThread();
    const auto& steps = executable.steps();
    std::vector<int> last(executable.plan().slots.size(), -1);
    for (size_t s = 0; s < steps.size(); ++s) {
      for (int i : steps[s].inputs) {
        if (i >= 0) last[static_cast<size_t>(i)] = static_cast<int>(s);
      }
    }
    for (int i : executable.plan().outputs)
      last[static_cast<size_t>(i)] = static_cast<int>(steps.size());
    executable.BindInputs(inputs);
    std::map<int, std::string> made;  // slot -> its bytes when its step was done
    const auto bytes = [&](int i) {
      const Tensor& t = executable.slot_tensor(i);
      return std::string(static_cast<const char*>(t.raw()), t.bytes());
    };
    for (size_t s = 0; s < steps.size(); ++s) {
      for (const auto& [slot, was] : made) {
        if (last[static_cast<size_t>(slot)] < static_cast<int>(s)) continue;
        ASSERT_EQ(bytes(slot), was) << "before step " << steps[s].name << "\n"
                                    << ToText(executable.plan(), graph);
      }
      executable.RunStep(s, *stream);
      for (int i : steps[s].outputs) {
        if (i >= 0) made[i] = bytes(i);
      }
    }
    for (int i : executable.plan().outputs) {
      if (made.count(i) != 0) {
        ASSERT_EQ(bytes(i), made[i]);
      }
    }
  }
}

}  // namespace
}  // namespace whimbrel
