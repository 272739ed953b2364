// Fusion passes: each pattern is taken, each near miss is left, and the numbers stay.

#include "tests/graph/model_builder.h"

namespace whimbrel {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

// Compiles with and without passes; outputs must agree. Returns the fused graph.
Graph Fused(const ModelBuilder& m, double tolerance = 1e-4) {
  const Graph imported = m.Import();
  const Graph fused = Compiled(imported);
  const Graph plain = Compiled(imported, false);
  std::vector<Tensor> inputs;
  uint32_t seed = 40;
  for (ValueId id : plain.inputs)
    inputs.push_back(RandomTensor(ToShape(*plain.value(id).info.dims), seed++, -4, 4));
  const auto expected = RunNodeByNode(plain, inputs);
  for (bool reference : {false, true}) {
    const auto got = RunPlan(fused, inputs, reference);
    EXPECT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size() && i < expected.size(); ++i)
      EXPECT_TRUE(Close(got[i], expected[i], tolerance)) << "output " << i << "\n" << ToText(fused);
  }
  return fused;
}

ModelBuilder Conv(int opset = 13) {
  ModelBuilder m(opset);
  m.Input("x", {"1", "3", "6", "6"})
      .Constant("w", RandomTensor(Shape{4, 3, 3, 3}, 1, -0.5F, 0.5F))
      .Constant("b", RandomTensor(Shape{4}, 2));
  m.Node("Conv", {"x", "w", "b"}, {"c"}, {AttrInts("pads", {1, 1, 1, 1})});
  return m;
}
void BatchNorm(ModelBuilder& m, const std::string& in, const std::string& out, int channels = 4) {
  const Shape s{channels};
  m.Constant(out + "s", RandomTensor(s, 3))
      .Constant(out + "b", RandomTensor(s, 4))
      .Constant(out + "m", RandomTensor(s, 5))
      .Constant(out + "v", RandomTensor(s, 6, 0.5F, 2));
  m.Node("BatchNormalization", {in, out + "s", out + "b", out + "m", out + "v"}, {out},
         {AttrFloat("epsilon", 1e-3F)});
}

TEST(ConvBnAct, TakesBatchNormReluAndResidual) {
  ModelBuilder m = Conv();
  BatchNorm(m, "c", "n");
  m.Input("r", {"1", "4", "6", "6"})
      .Node("Add", {"n", "r"}, {"a"})
      .Node("Relu", {"a"}, {"y"})
      .Output("y");
  const Graph g = Fused(m);
  ASSERT_THAT(OpsOf(g), ElementsAre("FusedConv"));
  EXPECT_EQ(g.nodes[0].origins.size(), 4U);
}

TEST(ConvBnAct, FoldsScaleAndShiftOfEverySpelling) {
  for (const Shape& shape : {Shape{1, 4, 1, 1}, Shape{4, 1, 1}, Shape{1}, Shape{}}) {
    for (const char* op : {"Mul", "Add", "Sub", "Div"}) {
      ModelBuilder m = Conv();
      m.Constant("k", RandomTensor(shape, 7, 0.5F, 2)).Node(op, {"c", "k"}, {"y"}).Output("y");
      EXPECT_THAT(OpsOf(Fused(m)), ElementsAre("Conv")) << op << ToString(shape);
    }
  }
  ModelBuilder reversed = Conv();
  reversed.Constant("k", RandomTensor(Shape{1, 4, 1, 1}, 7, 0.5F, 2))
      .Node("Sub", {"k", "c"}, {"d"})
      .Node("Div", {"k", "d"}, {"y"})
      .Output("y");
  EXPECT_THAT(OpsOf(Fused(reversed, 1e-2)), Contains("Conv"));
}

TEST(ConvBnAct, FoldsIntoTransposedAndGroupedWeights) {
  for (int groups : {1, 2}) {
    ModelBuilder m;
    m.Input("x", {"1", "4", "5", "5"})
        .Constant("w", RandomTensor(Shape{4, 6 / groups, 3, 3}, 1, -0.5F, 0.5F));
    m.Node("ConvTranspose", {"x", "w"}, {"c"},
           {AttrInt("group", groups), AttrInts("strides", {2, 2})});
    BatchNorm(m, "c", "n", 6);
    m.Node("Relu", {"n"}, {"y"}).Output("y");
    EXPECT_THAT(OpsOf(Fused(m)), ElementsAre("ConvTranspose", "Relu"));
    ModelBuilder c;
    c.Input("x", {"1", "4", "5", "5"})
        .Constant("w", RandomTensor(Shape{6, 4 / groups, 3, 3}, 1, -0.5F, 0.5F))
        .Node("Conv", {"x", "w"}, {"c"}, {AttrInt("group", groups)});
    BatchNorm(c, "c", "n", 6);
    c.Output("n");
    EXPECT_THAT(OpsOf(Fused(c)), ElementsAre("Conv"));
  }
}

TEST(ConvBnAct, LeavesConstantsThatAreNotPerChannel) {
  for (const Shape& shape :
       {Shape{6}, Shape{1, 1, 6, 6}, Shape{4, 6, 6}, Shape{2, 1, 1, 1}, Shape{1, 1, 1, 1, 1}}) {
    ModelBuilder m = Conv();
    m.Constant("k", RandomTensor(shape, 7, 0.5F, 2)).Node("Mul", {"c", "k"}, {"y"}).Output("y");
    EXPECT_THAT(OpsOf(Fused(m)), Contains("Mul")) << ToString(shape);
  }
}

TEST(ConvBnAct, LeavesValuesThatOthersSee) {
  ModelBuilder output = Conv();  // c is a graph output too
  BatchNorm(output, "c", "n");
  output.Output("n").Output("c");
  EXPECT_THAT(OpsOf(Fused(output)), ElementsAre("Conv", "BatchNormalization"));
  ModelBuilder second = Conv();  // c has a second reader
  second.Node("Relu", {"c"}, {"r"}).Node("Exp", {"c"}, {"e"}).Output("r").Output("e");
  EXPECT_THAT(OpsOf(Fused(second)), Contains("Conv"));
  ModelBuilder middle = Conv();  // the pattern stops at the output inside it
  BatchNorm(middle, "c", "n");
  middle.Node("Relu", {"n"}, {"y"}).Output("n").Output("y");
  EXPECT_THAT(OpsOf(Fused(middle)), ElementsAre("Conv", "Relu"));
  ModelBuilder captured = Conv();  // a branch reads c
  captured.Constant("t", Tensor::Scalar(true));
  captured.Node("Relu", {"c"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(captured)), ElementsAre("FusedConv"));
}

TEST(ConvBnAct, ComputedWeightsKeepTheirBatchNorm) {
  ModelBuilder m;
  m.Input("x", {"1", "3", "6", "6"})
      .Input("w", {"4", "3", "3", "3"})
      .Node("Conv", {"x", "w"}, {"c"});
  BatchNorm(m, "c", "n");
  m.Node("Relu", {"n"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(m)), ElementsAre("Conv", "BatchNormalization", "Relu"));
  ModelBuilder bias;  // activations still fuse; the residual too
  bias.Input("x", {"1", "3", "6", "6"})
      .Input("w", {"4", "3", "3", "3"})
      .Input("b", {"4"})
      .Node("Conv", {"x", "w", "b"}, {"c"})
      .Node("Relu", {"c"}, {"y"})
      .Output("y");
  EXPECT_THAT(OpsOf(Fused(bias)), ElementsAre("FusedConv"));
}

TEST(ConvBnAct, ComputedWeightsOfTheOutputsDimsStayPlain) {
  ModelBuilder m;  // x [8, 8, 5, 5] * w [8, 8, 3, 3] = [8, 8, 3, 3]
  m.Input("x", {"8", "8", "5", "5"})
      .Input("w", {"8", "8", "3", "3"})
      .Node("Conv", {"x", "w"}, {"c"})
      .Node("Relu", {"c"}, {"y"})
      .Output("y");
  Fused(m, 1e-3);
}

TEST(ConvBnAct, LeavesFactorsThatAreNotFinite) {
  ModelBuilder m;
  m.Input("x", {"1", "1", "2", "2"})
      .Floats("w", Shape{2, 1, 1, 1}, {0, 1})
      .Floats("k", Shape{1, 2, 1, 1}, {0, 2})
      .Node("Conv", {"x", "w"}, {"c"});
  m.Node("Div", {"c", "k"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(m)), Contains("Div"));
}

TEST(ConvBnAct, AResidualOfAnotherShapeIsNoResidual) {
  for (const auto& dims : {std::vector<std::string>{"1", "1", "6", "6"},
                           {"6"},
                           {"2", "4", "6", "6"},
                           {"1", "4", "1", "1"}}) {
    ModelBuilder m = Conv();
    m.Input("r", dims).Node("Add", {"r", "c"}, {"a"}).Node("Relu", {"a"}, {"y"}).Output("y");
    EXPECT_THAT(OpsOf(Fused(m)), Contains("Conv"));
  }
  ModelBuilder twice = Conv();
  twice.Node("Add", {"c", "c"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(twice)), Contains("Conv"));
}

TEST(ConvBnAct, TheDataMayBeTheResidualToo) {
  // relu(conv(v) + v): v has no later reader, and the result must not be written over it while it
  // is read.
  ModelBuilder m;
  m.Input("x", {"1", "8", "6", "6"})
      .Constant("w", RandomTensor(Shape{8, 8, 3, 3}, 1, -0.5F, 0.5F))
      .Node("Exp", {"x"}, {"v"});
  m.Node("Conv", {"v", "w"}, {"c"}, {AttrInts("pads", {1, 1, 1, 1})})
      .Node("Add", {"c", "v"}, {"a"})
      .Node("Relu", {"a"}, {"y"})
      .Output("y");
  EXPECT_THAT(OpsOf(Fused(m, 1e-3)), ElementsAre("Exp", "FusedConv"));
  ModelBuilder mm;
  mm.Input("x", {"8", "8"}).Constant("w", RandomTensor(Shape{8, 8}, 1)).Node("Exp", {"x"}, {"v"});
  mm.Node("MatMul", {"v", "w"}, {"c"}).Node("Add", {"c", "v"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(mm, 1e-3)), ElementsAre("Exp", "FusedMatMul"));
}

TEST(ConvBnAct, TwoConvsThatAddKeepTheOrder) {
  // The second one made takes the first as residual, whichever stands first in Add.
  for (bool swapped : {false, true}) {
    ModelBuilder m = Conv();
    m.Node("Conv", {"x", "w"}, {"d"}, {AttrInts("pads", {1, 1, 1, 1})});
    m.Node("Add", {swapped ? "d" : "c", swapped ? "c" : "d"}, {"a"})
        .Node("Relu", {"a"}, {"y"})
        .Output("y");
    EXPECT_THAT(OpsOf(Fused(m)), ::testing::SizeIs(2));
  }
}

TEST(ConvBnAct, TakesEverySingleActivation) {
  const auto check = [](int opset, const std::string& op,
                        const std::vector<onnx::AttributeProto>& attributes) {
    ModelBuilder m = Conv(opset);
    m.Node(op, {"c"}, {"y"}, attributes).Output("y");
    EXPECT_THAT(OpsOf(Fused(m)), ElementsAre("FusedConv")) << op;
  };
  for (const char* op : {"Relu", "Sigmoid", "Tanh"}) check(13, op, {});
  check(14, "HardSwish", {});
  check(13, "HardSigmoid", {});
  check(13, "HardSigmoid", {AttrFloat("alpha", 0.3F), AttrFloat("beta", 0.4F)});
  check(13, "LeakyRelu", {});
  check(13, "LeakyRelu", {AttrFloat("alpha", 0.3F)});
  check(10, "Clip", {AttrFloat("min", -0.5F), AttrFloat("max", 1)});
  check(7, "Clip", {AttrFloat("max", 0.25F)});
}

TEST(ConvBnAct, TakesClipWithBoundsAsInputs) {
  const auto check = [](const std::vector<std::string>& inputs, bool fuses) {
    ModelBuilder m = Conv(11);
    m.Floats("lo", Shape{}, {0})
        .Floats("hi", Shape{}, {0.5F})
        .Node("Clip", inputs, {"y"})
        .Output("y");
    if (!fuses) m.Input("open", std::vector<std::string>{});
    EXPECT_EQ(OpsOf(Fused(m))[0], fuses ? "FusedConv" : "Conv");
  };
  check({"c", "lo", "hi"}, true);
  check({"c", "", "hi"}, true);
  check({"c", "lo"}, true);
  check({"c", "hi", "lo"}, false);  // low above high: everything is high
  check({"c", "open", "hi"}, false);
}

TEST(ConvBnAct, PReluNeedsOneSlopeAChannel) {
  const auto ops = [](const Shape& slope) {
    ModelBuilder m = Conv();
    m.Constant("slope", RandomTensor(slope, 9)).Node("PRelu", {"c", "slope"}, {"y"}).Output("y");
    return OpsOf(Fused(m));
  };
  EXPECT_THAT(ops(Shape{4, 1, 1}), ElementsAre("FusedConv"));
  EXPECT_THAT(ops(Shape{1, 4, 1, 1}), ElementsAre("FusedConv"));
  EXPECT_THAT(ops(Shape{6}), ElementsAre("Conv", "PRelu"));
  EXPECT_THAT(ops(Shape{1, 6, 1}), ElementsAre("Conv", "PRelu"));
  EXPECT_THAT(ops(Shape{1, 4, 6, 6}), ElementsAre("Conv", "PRelu"));
  EXPECT_THAT(ops(Shape{1}), ElementsAre("Conv", "PRelu"));
  ModelBuilder open = Conv();
  open.Input("slope", {"4", "1", "1"}).Node("PRelu", {"c", "slope"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(open)), ElementsAre("Conv", "PRelu"));
}

// The ways in which exporters write x * clip(x + 3, 0, 6) / 6.
ModelBuilder HardSwish(int spelling, int opset, const Shape& constants = Shape{}, float three = 3,
                       float six = 6) {
  ModelBuilder m = Conv(opset);
  m.Floats("three", constants, {three})
      .Floats("six", constants, {six})
      .Floats("sixth", constants, {1 / six})
      .Floats("lo", Shape{}, {0})
      .Floats("hi", Shape{}, {6});
  m.Node("Add",
         spelling % 2 == 0 ? std::vector<std::string>{"c", "three"}
                           : std::vector<std::string>{"three", "c"},
         {"p"});
  if (opset < 11)
    m.Node("Clip", {"p"}, {"k"}, {AttrFloat("min", 0), AttrFloat("max", 6)});
  else
    m.Node("Clip", {"p", "lo", "hi"}, {"k"});
  switch (spelling / 2) {
    case 0:
      m.Node("Mul", {"c", "k"}, {"t"}).Node("Div", {"t", "six"}, {"y"});
      break;
    case 1:
      m.Node("Div", {"k", "six"}, {"t"}).Node("Mul", {"t", "c"}, {"y"});
      break;
    case 2:
      m.Node("Mul", {"k", "sixth"}, {"t"}).Node("Mul", {"c", "t"}, {"y"});
      break;
    case 3:
      m.Node("Mul", {"k", "c"}, {"t"}).Node("Mul", {"sixth", "t"}, {"y"});
      break;
    default:
      m.Node("Div", {"k", "six"}, {"y"});  // HardSigmoid
  }
  m.Output("y");
  return m;
}

TEST(ConvBnAct, TakesHardSwishInAllSpellings) {
  for (int opset : {7, 10, 11, 13}) {
    for (int spelling = 0; spelling < 10; ++spelling) {
      const Graph g = Fused(HardSwish(spelling, opset));
      ASSERT_THAT(OpsOf(g), ElementsAre("FusedConv")) << spelling << " at opset " << opset;
      EXPECT_EQ(g.nodes[0].attributes.String("activation", ""),
                spelling < 8 ? "HardSwish" : "HardSigmoid");
    }
  }
  for (const auto& gate : {std::pair("Sigmoid", "Swish"), std::pair("HardSigmoid", "HardSwish")}) {
    ModelBuilder m = Conv();
    m.Node(gate.first, {"c"}, {"s"},
           gate.first[0] == 'H' ? std::vector{AttrFloat("alpha", 1.0F / 6), AttrFloat("beta", 0.5F)}
                                : std::vector<onnx::AttributeProto>{});
    m.Node("Mul", {"s", "c"}, {"y"}).Output("y");
    const Graph g = Fused(m);
    EXPECT_EQ(g.nodes[0].attributes.String("activation", ""), gate.second);
  }
}

TEST(ConvBnAct, NearHardSwishesStayWhatTheyAre) {
  for (int spelling = 0; spelling < 10; ++spelling) {
    EXPECT_THAT(OpsOf(Fused(HardSwish(spelling, 13, Shape{}, 2.5F))),
                Not(ElementsAre("FusedConv")));
    EXPECT_THAT(OpsOf(Fused(HardSwish(spelling, 13, Shape{}, 3, 5))),
                Not(ElementsAre("FusedConv")));
    // Constants of higher rank give the result an axis more than the convolution has.
    const Graph high = Fused(HardSwish(spelling, 13, Shape{1, 1, 1, 1, 1}));
    EXPECT_EQ(high.value(high.outputs[0]).info.rank(), 5);
  }
  ModelBuilder gate = Conv();  // default alpha is 0.2
  gate.Node("HardSigmoid", {"c"}, {"s"}).Node("Mul", {"s", "c"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(gate)), Contains("Conv"));
  ModelBuilder seen = Conv();  // the gate is an output
  seen.Node("Sigmoid", {"c"}, {"s"}).Node("Mul", {"s", "c"}, {"y"}).Output("y").Output("s");
  EXPECT_THAT(OpsOf(Fused(seen)), Contains("Conv"));
  ModelBuilder third = Conv();  // the convolution has a third reader
  third.Node("Sigmoid", {"c"}, {"s"})
      .Node("Mul", {"s", "c"}, {"t"})
      .Node("Add", {"t", "c"}, {"y"})
      .Output("y");
  EXPECT_THAT(OpsOf(Fused(third)), Contains("Conv"));
}

ModelBuilder MatMul() {
  ModelBuilder m;
  m.Input("x", {"2", "5", "3"})
      .Constant("w", RandomTensor(Shape{3, 4}, 1))
      .Node("MatMul", {"x", "w"}, {"c"});
  return m;
}

TEST(MatMulBiasAct, TakesBiasResidualAndActivation) {
  ModelBuilder m = MatMul();
  m.Constant("b", RandomTensor(Shape{4}, 2)).Input("r", {"2", "5", "4"});
  m.Node("Add", {"b", "c"}, {"d"})
      .Node("Add", {"d", "r"}, {"e"})
      .Node("Relu", {"e"}, {"y"})
      .Output("y");
  EXPECT_THAT(OpsOf(Fused(m)), ElementsAre("FusedMatMul"));
  ModelBuilder slope = MatMul();
  slope.Constant("s", RandomTensor(Shape{4}, 2)).Node("PRelu", {"c", "s"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(slope)), ElementsAre("FusedMatMul"));
  ModelBuilder swish = MatMul();
  swish.Node("Sigmoid", {"c"}, {"s"}).Node("Mul", {"c", "s"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(swish)), ElementsAre("FusedMatMul"));
  ModelBuilder computed;
  computed.Input("x", {"5", "3"})
      .Input("w", {"3", "4"})
      .Node("MatMul", {"x", "w"}, {"c"})
      .Node("Tanh", {"c"}, {"y"})
      .Output("y");
  EXPECT_THAT(OpsOf(Fused(computed)), ElementsAre("FusedMatMul"));
}

TEST(MatMulBiasAct, LeavesAddsOfOtherShapes) {
  for (const Shape& shape :
       {Shape{5, 1}, Shape{1, 1, 1, 4}, Shape{2, 5, 4}, Shape{1}, Shape{}, Shape{3, 2, 5, 4}}) {
    ModelBuilder m = MatMul();
    m.Constant("b", RandomTensor(shape, 2))
        .Node("Add", {"c", "b"}, {"d"})
        .Node("Relu", {"d"}, {"y"})
        .Output("y");
    EXPECT_THAT(OpsOf(Fused(m)), Contains("MatMul")) << ToString(shape);
  }
  ModelBuilder twice = MatMul();
  twice.Node("Add", {"c", "c"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(twice)), Contains("MatMul"));
  ModelBuilder seen = MatMul();
  seen.Node("Relu", {"c"}, {"y"}).Output("y").Output("c");
  EXPECT_THAT(OpsOf(Fused(seen)), ElementsAre("MatMul", "Relu"));
}

TEST(MatMulBiasAct, VectorsOnEitherSideStayRight) {
  for (const auto& shapes : {std::pair(Shape{3}, Shape{2, 3, 4}),
                             std::pair(Shape{2, 5, 3}, Shape{3}), std::pair(Shape{3}, Shape{3})}) {
    ModelBuilder m;
    m.Input("x", shapes.first)
        .Input("w", shapes.second)
        .Node("MatMul", {"x", "w"}, {"c"})
        .Node("Relu", {"c"}, {"y"})
        .Output("y");
    Fused(m);
  }
}

ModelBuilder Start(const std::vector<std::string>& dims = {"2", "3", "4", "5"}) {
  ModelBuilder m;
  m.Input("x", dims);
  return m;
}

TEST(ElementwiseChain, TakesRunsOfFloatNodes) {
  ModelBuilder m = Start();
  m.Floats("two", Shape{}, {2})
      .Input("z", {"2", "3", "4", "5"})
      .Constant("k", RandomTensor(Shape{3, 1, 1}, 3, 1, 2));
  m.Node("Mul", {"x", "two"}, {"a"})
      .Node("Sub", {"two", "a"}, {"b"})
      .Node("Max", {"b", "z"}, {"c"})
      .Node("Div", {"c", "k"}, {"d"})
      .Node("Tanh", {"d"}, {"e"});
  m.Node("Mul", {"x", "e"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(m)), ElementsAre("ElementwiseChain"));
}

TEST(ElementwiseChain, OneNodeAloneStays) {
  ModelBuilder m = Start();
  m.Node("Tanh", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(m)), ElementsAre("Tanh"));
}

TEST(ElementwiseChain, StopsWhereTheShapeGrowsOrOthersLook) {
  ModelBuilder grows = Start({"3", "1"});
  grows.Input("z", {"1", "4"})
      .Node("Exp", {"x"}, {"a"})
      .Node("Neg", {"a"}, {"b"})
      .Node("Add", {"b", "z"}, {"c"})
      .Node("Tanh", {"c"}, {"y"})
      .Output("y");
  EXPECT_THAT(OpsOf(Fused(grows)), Contains("Add"));
  ModelBuilder seen = Start();
  seen.Node("Tanh", {"x"}, {"a"})
      .Node("Neg", {"a"}, {"b"})
      .Node("Exp", {"b"}, {"y"})
      .Output("y")
      .Output("b");
  EXPECT_THAT(OpsOf(Fused(seen)), ElementsAre("ElementwiseChain", "Exp"));
  ModelBuilder rank = Start({"4"});
  rank.Floats("two", Shape{1, 1}, {2})
      .Node("Tanh", {"x"}, {"a"})
      .Node("Mul", {"a", "two"}, {"y"})
      .Output("y");
  EXPECT_EQ(Fused(rank).nodes.size(), 2U);
  ModelBuilder square = Start();  // the running value as its own operand
  square.Node("Tanh", {"x"}, {"a"})
      .Node("Mul", {"a", "a"}, {"b"})
      .Node("Neg", {"b"}, {"y"})
      .Output("y");
  Fused(square);
  ModelBuilder first = Start();
  first.Node("Mul", {"x", "x"}, {"a"}).Node("Neg", {"a"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Fused(first)), ElementsAre("ElementwiseChain"));
}

TEST(ElementwiseChain, AllOperandOrdersAndConstantsKeepTheirMeaning) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"}) {
    for (int form = 0; form < 4; ++form) {
      ModelBuilder m;
      m.Input("x", {"2", "3"}).Input("z", {"2", "3"}).Floats("k", Shape{}, {1.5F});
      m.Node("Abs", {"x"}, {"p"}).Node("Abs", {"z"}, {"q"}).Node("Exp", {"p"}, {"a"});
      const std::string other = form < 2 ? "q" : "k";
      m.Node(op,
             form % 2 == 0 ? std::vector<std::string>{"a", other}
                           : std::vector<std::string>{other, "a"},
             {"b"})
          .Node("Neg", {"b"}, {"y"})
          .Output("y");
      Fused(m);
    }
  }
}

TEST(ElementwiseChain, OddConstantsSurvive) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (float k : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 0.0F, -0.0F, 1e-45F,
                  3.4028235e38F, 0.1F, 16777217.0F}) {
    for (const char* op : {"Add", "Mul", "Max", "Min", "Div"}) {
      ModelBuilder m = Start({"7"});
      m.Floats("k", Shape{}, {k}).Node(op, {"x", "k"}, {"a"}).Node("Neg", {"a"}, {"y"}).Output("y");
      Fused(m);
    }
  }
}

TEST(ElementwiseChain, OtherTypesAreLeft) {
  ModelBuilder m;
  m.Input("x", {"4"}, DType::kInt64)
      .Node("Neg", {"x"}, {"a"})
      .Node("Abs", {"a"}, {"y"})
      .Output("y");
  EXPECT_THAT(OpsOf(Compiled(m.Import())), ElementsAre("Neg", "Abs"));
  ModelBuilder power;  // the exponent has a type of its own
  power.Input("x", {"4"})
      .Constant("k", Tensor::Scalar(int64_t{2}))
      .Node("Abs", {"x"}, {"a"})
      .Node("Pow", {"a", "k"}, {"b"})
      .Node("Neg", {"b"}, {"y"})
      .Output("y");
  Fused(power);
}

TEST(ElementwiseChain, LongRunsAreCut) {
  ModelBuilder m = Start();
  std::string value = "x";
  for (int i = 0; i < 100; ++i) {
    const std::string next = "v" + std::to_string(i);
    m.Node(i % 2 == 0 ? "Neg" : "Tanh", {value}, {next});
    value = next;
  }
  m.Output(value);
  EXPECT_LE(Fused(m).nodes.size(), 5U);
}

TEST(BroadcastRank, ConstantsGetTheOutputsRank) {
  ModelBuilder m = Start();
  m.Constant("k", RandomTensor(Shape{3, 1, 1}, 2)).Node("Mul", {"x", "k"}, {"y"}).Output("y");
  const Graph g = Fused(m);
  EXPECT_EQ(g.value(g.nodes[0].inputs[1]).info.rank(), 4);
}

TEST(Passes, WorkInsideBranches) {
  ModelBuilder m = Conv();
  m.Input("c1", std::vector<std::string>{}, DType::kBool);
  const auto then_branch = BranchOf([](GraphBuilder& g) {
    g.Node("Conv", {"x", "w"}, {"i"}).Node("Relu", {"i"}, {"t"}).Output("t");
  });
  const auto else_branch =
      BranchOf([](GraphBuilder& g) { g.Node("Exp", {"x"}, {"e"}).Output("e"); });
  m.Node("If", {"c1"}, {"y"},
         {AttrGraph("then_branch", then_branch), AttrGraph("else_branch", else_branch)})
      .Output("y");
  const Graph g = Compiled(m.Import());
  EXPECT_THAT(OpsOf(*g.nodes.back().branches[0].graph), ElementsAre("FusedConv"));
}

}  // namespace
}  // namespace whimbrel
