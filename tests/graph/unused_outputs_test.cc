// Outputs that nobody reads: what the schema always makes keeps its memory, what it calls optional
// is left out.

#include "tests/graph/model_builder.h"

namespace whimbrel {
namespace {

// Runs the model with all its kernels and with reference kernels only; both give the same.
std::vector<Tensor> RunBothWays(const ModelBuilder& m, const std::vector<Tensor>& inputs) {
  const Graph graph = Compiled(m.Import());
  const auto fast = RunPlan(graph, inputs);
  const auto slow = RunPlan(graph, inputs, true);
  EXPECT_EQ(fast.size(), slow.size());
  for (size_t i = 0; i < fast.size(); ++i) EXPECT_TRUE(Close(fast[i], slow[i], 1e-5)) << i;
  return fast;
}

TEST(UnusedOutputs, MaxPoolMayGiveItsIndicesOnly) {
  for (const std::string y : {"y", ""}) {
    ModelBuilder m(13);
    m.Input("x", {"1", "1", "2", "4"})
        .Node("MaxPool", {"x"}, {y, "at"},
              {AttrInts("kernel_shape", {2, 2}), AttrInts("strides", {2, 2})})
        .Output("at", DType::kInt64);
    const auto out = RunBothWays(
        m, {Tensor::FromValues(Shape{1, 1, 2, 4}, std::vector<float>{1, 9, 2, 3, 4, 5, 8, 7})});
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].data<int64_t>()[0], 1);
    EXPECT_EQ(out[0].data<int64_t>()[1], 6);
  }
}

TEST(UnusedOutputs, LayerNormalizationMayGiveItsMeanOnly) {
  for (const std::string y : {"y", ""}) {
    ModelBuilder m(17);
    m.Input("x", {"2", "4"})
        .Floats("scale", Shape{4}, {1, 1, 1, 1})
        .Node("LayerNormalization", {"x", "scale"}, {y, "mean"})
        .Output("mean");
    const auto out = RunBothWays(
        m, {Tensor::FromValues(Shape{2, 4}, std::vector<float>{1, 2, 3, 6, 0, 0, 0, 4})});
    ASSERT_EQ(out.size(), 1U);
    EXPECT_FLOAT_EQ(out[0].data<float>()[0], 3);
    EXPECT_FLOAT_EQ(out[0].data<float>()[1], 1);
  }
}

TEST(UnusedOutputs, SplitMayLoseAnyPart) {
  for (int used = 0; used < 3; ++used) {
    const std::vector<std::string> names{used == 0 ? "y" : "", used == 1 ? "y" : "b",
                                         used == 2 ? "y" : ""};
    ModelBuilder m(13);
    m.Input("x", {"1", "6", "1", "1"})
        .Node("Split", {"x"}, names, {AttrInt("axis", 1)})
        .Node("Relu", {"y"}, {"z"})
        .Output("z");
    const auto out = RunBothWays(
        m, {Tensor::FromValues(Shape{1, 6, 1, 1}, std::vector<float>{0, 1, 2, 3, 4, 5})});
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].data<float>()[0], static_cast<float>(2 * used));
  }
}

TEST(UnusedOutputs, LstmMayGiveAnyOfItsThree) {
  for (int used = 0; used < 3; ++used) {
    const std::vector<std::string> names{used == 0 ? "y" : "", used == 1 ? "y" : "",
                                         used == 2 ? "y" : "c"};
    ModelBuilder m(14);
    m.Input("x", {"3", "1", "2"})
        .Constant("w", RandomTensor(Shape{1, 8, 2}, 1))
        .Constant("r", RandomTensor(Shape{1, 8, 2}, 2))
        .Node("LSTM", {"x", "w", "r"}, names, {AttrInt("hidden_size", 2)})
        .Output("y");
    const auto out = RunBothWays(m, {RandomTensor(Shape{3, 1, 2}, 3)});
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].elements(), used == 0 ? 6 : 2);
  }
}

}  // namespace
}  // namespace whimbrel
