// Plans: layouts are converted as rarely as possible, views and in-place steps share memory,
// offsets are aligned.

#include "whimbrel/graph/plan.h"

#include <algorithm>

#include "tests/graph/model_builder.h"

namespace whimbrel {
namespace {

using ::testing::HasSubstr;

int Conversions(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(),
                                        [](const PlanStep& s) { return s.node < 0; }));
}

ModelBuilder TwoConvs(bool channels_last_model) {
  ModelBuilder m;
  const std::string first = channels_last_model ? "x_first" : "x";
  if (channels_last_model) {
    m.Input("x", {"1", "8", "8", "4"})
        .Node("Transpose", {"x"}, {first}, {AttrInts("perm", {0, 3, 1, 2})});
  } else {
    m.Input("x", {"1", "4", "8", "8"});
  }
  m.Constant("w", RandomTensor(Shape{4, 4, 3, 3}, 1))
      .Constant("v", RandomTensor(Shape{4, 4, 3, 3}, 2));
  m.Node("Conv", {first, "w"}, {"a"}, {AttrInts("pads", {1, 1, 1, 1})})
      .Node("Tanh", {"a"}, {"b"})
      .Node("Exp", {"a"}, {"e"})
      .Node("Mul", {"b", "e"}, {"f"});
  m.Node("Conv", {"f", "v"}, {"c"}, {AttrInts("pads", {1, 1, 1, 1})});
  if (channels_last_model)
    m.Node("Transpose", {"c"}, {"y"}, {AttrInts("perm", {0, 2, 3, 1})}).Output("y");
  else
    m.Output("c");
  return m;
}

TEST(Plan, ConvertsLayoutAtTheEdgesOnly) {
  if (ActiveIsa() == Isa::kPortable) GTEST_SKIP() << "no channels-last kernels in portable mode";
  const Graph g = Compiled(TwoConvs(false).Import());
  const Plan plan = MakePlan(g, {});
  EXPECT_LE(Conversions(plan), 2) << ToText(plan, g);
}

TEST(Plan, TransposesOfAChannelsLastModelCostNothing) {
  if (ActiveIsa() == Isa::kPortable) GTEST_SKIP() << "no channels-last kernels in portable mode";
  const Graph g = Compiled(TwoConvs(true).Import());
  const Plan plan = MakePlan(g, {});
  EXPECT_EQ(Conversions(plan), 0) << ToText(plan, g);
  for (const PlanStep& step : plan.steps) EXPECT_NE(step.schema->name, "Transpose");
  const std::vector<Tensor> x{RandomTensor(Shape{1, 8, 8, 4}, 3)};
  EXPECT_TRUE(
      Close(RunPlan(g, x)[0], RunNodeByNode(Compiled(TwoConvs(true).Import(), false), x)[0], 1e-3));
}

TEST(Plan, OnlyReferenceMeansPlainLayoutAndRankZero) {
  const Graph g = Compiled(TwoConvs(true).Import());
  const Plan plan = MakePlan(g, {.only_reference = true});
  EXPECT_EQ(Conversions(plan), 0);
  for (const PlanStep& step : plan.steps) EXPECT_EQ(step.kernel->rank, 0);
  for (const PlanSlot& slot : plan.slots) EXPECT_EQ(slot.tensor.layout(), Layout::kPlain);
}

TEST(Plan, EveryOffsetIsAlignedAndInsideTheArena) {
  for (size_t alignment : {size_t{64}, size_t{512}}) {
    const Graph g = Compiled(TwoConvs(false).Import());
    const Plan plan = MakePlan(g, {.alignment = alignment});
    for (const PlanSlot& slot : plan.slots) {
      if (slot.kind != SlotKind::kArena) continue;
      EXPECT_EQ(slot.offset % alignment, 0U);
      EXPECT_LE(slot.offset + slot.tensor.bytes(), plan.memory.arena_bytes);
    }
    EXPECT_LE(plan.memory.lower_bound_bytes, plan.memory.arena_bytes);
  }
}

TEST(Plan, ReshapesShareTheirInputsMemory) {
  ModelBuilder m;
  m.Input("x", {"2", "6"}).Ints("s", {3, 4}).Ints("axes", {0});
  m.Node("Neg", {"x"}, {"n"})
      .Node("Reshape", {"n", "s"}, {"r"})
      .Node("Unsqueeze", {"r", "axes"}, {"u"})
      .Node("Flatten", {"u"}, {"f"})
      .Node("Exp", {"f"}, {"y"})
      .Output("y");
  const Graph g = Compiled(m.Import());
  const Plan plan = MakePlan(g, {});
  const auto root = [&](const char* name) {
    for (const PlanSlot& s : plan.slots) {
      if (g.value(s.value).name == name) return s.root;
    }
    return -1;
  };
  EXPECT_EQ(root("r"), root("n"));
  EXPECT_EQ(root("u"), root("n"));
  EXPECT_EQ(root("f"), root("n"));
  EXPECT_LE(plan.memory.arena_bytes, 256U) << ToText(plan, g);
  const Tensor x = RandomTensor(Shape{2, 6}, 1);
  EXPECT_FLOAT_EQ(RunPlan(g, {x})[0].data<float>()[7], std::exp(-x.data<float>()[7]));
}

TEST(Plan, AViewOfAnInputThatIsReadLaterIsNotWrittenOver) {
  ModelBuilder m;
  m.Input("x", {"2", "6"})
      .Ints("s", {12})
      .Node("Neg", {"x"}, {"n"})
      .Node("Reshape", {"n", "s"}, {"r"});
  m.Node("Exp", {"r"}, {"e"}).Node("Tanh", {"n"}, {"t"}).Output("e").Output("t").Output("x");
  const Tensor x = RandomTensor(Shape{2, 6}, 1);
  const auto out = RunPlan(Compiled(m.Import(), false), {x});
  for (int i = 0; i < 12; ++i) {
    EXPECT_NEAR(out[0].data<float>()[i], std::exp(-x.data<float>()[i]), 1e-5);
    EXPECT_NEAR(out[1].data<float>()[i], std::tanh(-x.data<float>()[i]), 1e-5);
  }
  EXPECT_TRUE(BitEqual(out[2], x));  // inputs belong to the caller
}

TEST(Plan, ConstantsAndInputsAreNeverWrittenOver) {
  ModelBuilder m;
  m.Input("x", {"4"})
      .Floats("w", Shape{4}, {1, 2, 3, 4})
      .Ints("s", {2, 2})
      .Node("Reshape", {"x", "s"}, {"v"})
      .Node("Exp", {"v"}, {"e"})
      .Node("Add", {"x", "w"}, {"a"})
      .Output("e")
      .Output("a")
      .Output("w");
  const Graph g = Compiled(m.Import(), false);
  const Tensor x = RandomTensor(Shape{4}, 1);
  const Tensor before = CopyPlain(x);
  const auto out = RunPlan(g, {x});
  EXPECT_TRUE(BitEqual(x, before));
  EXPECT_EQ(out[2].data<float>()[3], 4);
}

TEST(Plan, NoKernelMeansReasonsInWords) {
  ModelBuilder m;
  m.Input("x", {"2"}).Node("Neg", {"x"}, {"y"}).Output("y");
  const Graph g = Compiled(m.Import());
  const Error e = ErrorFrom([&] { MakePlan(g, {.device = DeviceKind::kAscend}); });
  EXPECT_EQ(e.code(), Code::kUnsupported);
  EXPECT_THAT(e.what(), HasSubstr("Neg_y"));
  EXPECT_THAT(e.what(), HasSubstr("float32"));
}

TEST(Plan, TellsWhatItDoes) {
  const Graph g = Compiled(TwoConvs(false).Import());
  const std::string text = ToText(MakePlan(g, {}), g);
  for (const char* word : {"Conv [", "x:float32[1, 4, 8, 8]", "arena", "at least"})
    EXPECT_THAT(text, HasSubstr(word));
}

}  // namespace
}  // namespace whimbrel
