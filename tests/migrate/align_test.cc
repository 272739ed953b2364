// align: names the layer that is wrong, follows branches, judges loops, and holds little memory.

#include "whimbrel/migrate/align.h"

#include "tests/graph/model_builder.h"

namespace whimbrel {
namespace {

// A wrong kernel for one shape that no other test uses: answers are off by `kFault`.
constexpr int64_t kFaultyWidth = 777;
constexpr float kFault = 0.01F;

bool AcceptsFaultyShape(const OpCall& call, std::string* why) {
  *why = "only for the planted fault";
  return call.x(0).dtype() == DType::kFloat && call.x(0).shape().rank() == 2 &&
         call.x(0).shape()[1] == kFaultyWidth;
}
void RunFaulty(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  for (int64_t i = 0; i < call.y(0).elements(); ++i)
    call.y(0).data<float>()[i] = call.x(0).data<float>()[i] + kFault;
}
const Registration planted{Kernel{
    .op = "Neg", .name = "planted", .rank = 1000, .accepts = AcceptsFaultyShape, .run = RunFaulty}};

AlignOptions OneThreaded() {
  AlignOptions options;
  options.threads = 1;
  return options;
}

TEST(Align, NamesTheFirstWrongLayerAndNotThoseThatInheritItsError) {
  ModelBuilder m;
  m.Input("x", Shape{2, kFaultyWidth})
      .Node("Relu", {"x"}, {"a"})
      .Node("Neg", {"a"}, {"b"})
      .Node("Softmax", {"b"}, {"c"})
      .Output("c");
  FusionSwitches off =
      FusionSwitches::FromJson(R"({"Switch":{"GraphFusion":{"ALL":"off"}}})", "test");
  AlignOptions options = OneThreaded();
  options.switches = off;
  const AlignResult result =
      Align(m.Import(), {RandomTensor(Shape{2, kFaultyWidth}, 1, 0, 1)}, options);
  EXPECT_FALSE(result.pass);
  EXPECT_EQ(result.first_bad_layer, "Neg_b");
  ASSERT_EQ(result.layers.size(), 3U);
  EXPECT_TRUE(result.layers[0].ok);
  EXPECT_FALSE(result.layers[1].ok);
  EXPECT_GT(result.layers[1].own.max_abs, kFault / 2);
  EXPECT_TRUE(result.layers[2].ok) << "Softmax is right on the reference's own inputs";
  EXPECT_GT(result.layers[2].chained.max_abs, 1e-6) << "and carries the error of the layer before";
  EXPECT_LT(result.layers[2].own.max_abs, 1e-6);
}

TEST(Align, PassesAndComparesAFusionAtItsOutput) {
  ModelBuilder m;
  m.Input("x", Shape{1, 3, 8, 8})
      .Constant("w", RandomTensor(Shape{4, 3, 3, 3}, 2))
      .Constant("s", RandomTensor(Shape{4, 1, 1}, 3));
  m.Node("Conv", {"x", "w"}, {"c"})
      .Node("Add", {"c", "s"}, {"d"})
      .Node("Relu", {"d"}, {"y"})
      .Output("y");
  const AlignResult result = Align(m.Import(), {RandomTensor(Shape{1, 3, 8, 8}, 4)}, OneThreaded());
  EXPECT_TRUE(result.pass) << ToText(result);
  ASSERT_EQ(result.layers.size(), 1U);
  EXPECT_EQ(result.layers[0].op, "FusedConv");
  EXPECT_EQ(result.layers[0].output, "y");
  EXPECT_THAT(result.layers[0].origins, testing::ElementsAre("Conv_c", "Add_d", "Relu_y"));
}

ModelBuilder Branching() {
  ModelBuilder m;
  m.Input("flag", Shape{}, DType::kBool)
      .Input("x", Shape{1, kFaultyWidth})
      .Node("Relu", {"x"}, {"a"});
  const auto good = BranchOf([](GraphBuilder& b) { b.Node("Sqrt", {"a"}, {"r"}).Output("r"); });
  const auto bad = BranchOf([](GraphBuilder& b) { b.Node("Neg", {"a"}, {"r2"}).Output("r2"); });
  m.Node("If", {"flag"}, {"y"}, {AttrGraph("then_branch", good), AttrGraph("else_branch", bad)})
      .Output("y");
  return m;
}

TEST(Align, FollowsTheBranchThatIsTaken) {
  const Graph graph = Branching().Import();
  const Tensor x = RandomTensor(Shape{1, kFaultyWidth}, 5, 0, 1);
  const AlignResult taken = Align(graph, {Tensor::Scalar(true), x}, OneThreaded());
  EXPECT_TRUE(taken.pass) << ToText(taken);
  EXPECT_EQ(taken.layers.back().name, "If_y/then_branch/Sqrt_r");
  const AlignResult other = Align(graph, {Tensor::Scalar(false), x}, OneThreaded());
  EXPECT_FALSE(other.pass);
  EXPECT_EQ(other.first_bad_layer, "If_y/else_branch/Neg_r2");
}

TEST(Align, JudgesALoopAsOneLayer) {
  ModelBuilder m(16);
  m.Input("trips", Shape{}, DType::kInt64).Input("x", Shape{4});
  const auto body = BranchOf([](GraphBuilder& b) {
    b.Input("round", Shape{}, DType::kInt64)
        .Input("go", Shape{}, DType::kBool)
        .Input("v", Shape{4});
    b.Node("Mul", {"v", "x"}, {"w"})
        .Node("Identity", {"go"}, {"again"})
        .Output("again", DType::kBool)
        .Output("w");
  });
  m.Node("Loop", {"trips", "", "x"}, {"y"}, {AttrGraph("body", body)}).Output("y");
  const AlignResult result =
      Align(m.Import(), {Tensor::Scalar(int64_t{3}), RandomTensor(Shape{4}, 6)}, OneThreaded());
  EXPECT_TRUE(result.pass) << ToText(result);
  ASSERT_EQ(result.layers.size(), 1U);
  EXPECT_EQ(result.layers[0].op, "Loop");
}

TEST(Align, HoldsAFewTensorsOfALongChain) {
  ModelBuilder m;
  m.Input("x", Shape{1, 4096});
  constexpr int kLayers = 40;
  for (int i = 0; i < kLayers; ++i) {
    m.Node(i % 2 == 0 ? "Sigmoid" : "Softmax", {i == 0 ? "x" : "v" + std::to_string(i)},
           {"v" + std::to_string(i + 1)});
  }
  m.Output("v" + std::to_string(kLayers));
  const AlignResult result = Align(m.Import(), {RandomTensor(Shape{1, 4096}, 7)}, OneThreaded());
  EXPECT_TRUE(result.pass);
  EXPECT_LE(result.peak_bytes, 8 * 4096 * sizeof(float));
}

TEST(Align, TakesNanOnlyForNan) {
  const Tensor nan = Tensor::FromValues(Shape{2}, std::vector<float>{std::nanf(""), 1});
  const Tensor number = Tensor::FromValues(Shape{2}, std::vector<float>{1, 1});
  EXPECT_EQ(Compare(nan, nan, 1e-3, 1e-4).worst_ratio, 0);
  EXPECT_TRUE(std::isinf(Compare(nan, number, 1e-3, 1e-4).worst_ratio));
  EXPECT_EQ(Compare(number, nan, 1e-3, 1e-4).worst_index, 0);
}

}  // namespace
}  // namespace whimbrel
