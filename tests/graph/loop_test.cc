// Loop: rounds, carried shapes that change, scanned outputs, captures, early ends.

#include "tests/graph/model_builder.h"

namespace whimbrel {
namespace {

// sum carries a running total of x, scanned once a round; ends when the total passes `stop`.
ModelBuilder Accumulate(float stop) {
  ModelBuilder m(16);
  m.Input("trips", Shape{}, DType::kInt64).Input("x", {"N"}).Floats("zero", Shape{1}, {0});
  const auto body = BranchOf([&](GraphBuilder& b) {
    b.Input("round", Shape{}, DType::kInt64).Input("go", Shape{}, DType::kBool).Input("sum", {"1"});
    b.Ints("axis", {0}).Floats("stop", Shape{1}, {stop});
    b.Node("ReduceSum", {"x", "axis"}, {"total"}).Node("Add", {"sum", "total"}, {"next"});
    b.Node("Less", {"next", "stop"}, {"below"}).Node("Squeeze", {"below"}, {"again"});
    b.Node("Identity", {"next"}, {"seen"});
    b.Output("again", DType::kBool).Output("next").Output("seen");
  });
  // ReduceSum 13 takes axes as an input; keepdims keeps the total [1].
  m.Node("Loop", {"trips", "", "zero"}, {"final", "history"}, {AttrGraph("body", body)});
  m.Output("final").Output("history");
  return m;
}

std::vector<Tensor> RunAccumulate(float stop, int64_t trips) {
  const Graph graph = Compiled(Accumulate(stop).Import(), true, {{"x", Shape{3}}});
  return RunPlan(
      graph, {Tensor::Scalar(trips), Tensor::FromValues(Shape{3}, std::vector<float>{1, 2, 3})});
}

TEST(Loop, CarriesValuesAndStacksWhatRoundsScan) {
  const auto out = RunAccumulate(1000, 4);
  EXPECT_THAT(std::vector<float>(out[0].values<float>().begin(), out[0].values<float>().end()),
              testing::ElementsAre(24));
  EXPECT_EQ(out[1].shape(), (Shape{4, 1}));
  EXPECT_THAT(std::vector<float>(out[1].values<float>().begin(), out[1].values<float>().end()),
              testing::ElementsAre(6, 12, 18, 24));
}

TEST(Loop, EndsWhenTheBodySaysSo) {
  const auto out = RunAccumulate(10, 100);
  EXPECT_FLOAT_EQ(out[0].data<float>()[0], 12);
  EXPECT_EQ(out[1].shape(), (Shape{2, 1}));
}

TEST(Loop, WithoutRoundsGivesTheInitialValues) {
  const auto out = RunAccumulate(10, 0);
  EXPECT_FLOAT_EQ(out[0].data<float>()[0], 0);
  EXPECT_EQ(out[1].shape(), (Shape{0, 1}));
}

TEST(Loop, CarriedValuesMayGrow) {
  ModelBuilder m(16);
  m.Input("trips", Shape{}, DType::kInt64).Input("x", {"1"});
  const auto body = BranchOf([](GraphBuilder& b) {
    b.Input("round", Shape{}, DType::kInt64).Input("go", Shape{}, DType::kBool).Input("v", {""});
    b.Node("Concat", {"v", "v"}, {"twice"}, {AttrInt("axis", 0)})
        .Node("Identity", {"go"}, {"again"});
    b.Output("again", DType::kBool).Output("twice");
  });
  m.Node("Loop", {"trips", "", "x"}, {"y"}, {AttrGraph("body", body)}).Output("y");
  const Graph graph = Compiled(m.Import());
  const auto out = RunPlan(
      graph, {Tensor::Scalar(int64_t{3}), Tensor::FromValues(Shape{1}, std::vector<float>{7})});
  EXPECT_EQ(out[0].shape(), (Shape{8}));
  EXPECT_FLOAT_EQ(out[0].data<float>()[7], 7);
}

TEST(Loop, ABodyThatChangesTypesIsRefusedByName) {
  ModelBuilder m(16);
  m.Input("trips", Shape{}, DType::kInt64).Input("x", {"1"});
  const auto body = BranchOf([](GraphBuilder& b) {
    b.Input("round", Shape{}, DType::kInt64).Input("go", Shape{}, DType::kBool).Input("v", {"1"});
    b.Node("Cast", {"v"}, {"other"}, {AttrInt("to", 7)}).Node("Identity", {"go"}, {"again"});
    b.Output("again", DType::kBool).Output("other", DType::kInt64);
  });
  m.Node("Loop", {"trips", "", "x"}, {"y"}, {AttrGraph("body", body)}).Output("y", DType::kInt64);
  try {
    Compiled(m.Import());
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("carried value 0"));
  }
}

}  // namespace
}  // namespace whimbrel
