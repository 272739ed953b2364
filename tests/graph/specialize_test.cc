// Specialising: shape computations fold, decided branches are inlined, refused ones wait until they
// are taken.

#include "whimbrel/graph/specialize.h"

#include "tests/graph/model_builder.h"

namespace whimbrel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// y = Reshape(x, [Shape(x)[0], -1]), as exporters spell Flatten.
ModelBuilder FlattenChain() {
  ModelBuilder m;
  m.Input("x", {"N", "3", "H", "4"}).Ints("zero", {0}).Ints("minus", {-1});
  m.Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "zero"}, {"n"}, {AttrInt("axis", 0)});
  m.Node("Concat", {"n", "minus"}, {"to"}, {AttrInt("axis", 0)})
      .Node("Reshape", {"x", "to"}, {"y"})
      .Output("y");
  return m;
}

TEST(Specialize, InferenceCarriesSymbolsThroughShapeChains) {
  Graph g = FlattenChain().Import();
  InferGraph(g);
  const Dims& dims = *g.value(g.outputs[0]).info.dims;
  ASSERT_EQ(dims.size(), 2U);
  EXPECT_EQ(dims[0].text(), "N");
  EXPECT_FALSE(dims[1].known());
}

TEST(Specialize, BoundShapesFoldTheChainAway) {
  const auto compiled = CompileGraph(FlattenChain().Import(), At({{"x", Shape{2, 3, 5, 4}}}));
  EXPECT_THAT(OpsOf(*compiled.graph), ElementsAre("Reshape"));
  const Tensor x = RandomTensor(Shape{2, 3, 5, 4}, 1);
  const auto out = RunPlan(*compiled.graph, {x});
  EXPECT_TRUE(BitEqual(out[0], x.Reshaped(Shape{2, 60})));
}

TEST(Specialize, EmptyBatchesFoldToo) {
  const auto out = RunPlan(Compiled(FlattenChain().Import(), true, {{"x", Shape{1, 3, 0, 4}}}),
                           {RandomTensor(Shape{1, 3, 0, 4}, 1)});
  EXPECT_EQ(out[0].shape(), (Shape{1, 0}));
}

TEST(Specialize, ConstantSubgraphsAreComputedOnce) {
  ModelBuilder m;
  m.Input("x", {"2"}).Floats("a", Shape{2}, {1, 2}).Floats("b", Shape{2}, {3, 4});
  m.Node("Mul", {"a", "b"}, {"ab"})
      .Node("Exp", {"ab"}, {"e"})
      .Node("Log", {"e"}, {"l"})
      .Node("Add", {"x", "l"}, {"y"})
      .Output("y");
  const Graph g = Compiled(m.Import());
  EXPECT_THAT(OpsOf(g), ElementsAre("Add"));
  EXPECT_FLOAT_EQ(
      RunPlan(g, {Tensor::FromValues(Shape{2}, std::vector<float>{0, 0})})[0].data<float>()[1], 8);
}

TEST(Specialize, DropsWhatNobodyNeeds) {
  ModelBuilder m;
  m.Input("x", {"2"})
      .Input("unused", {"7"})
      .Node("Neg", {"x"}, {"y"})
      .Node("Exp", {"x"}, {"dead"})
      .Output("y");
  const Graph g = Compiled(m.Import());
  EXPECT_THAT(OpsOf(g), ElementsAre("Neg"));
  EXPECT_THAT(g.inputs, SizeIs(2));  // the caller's list of inputs stays
  RunPlan(g, {RandomTensor(Shape{2}, 1), RandomTensor(Shape{7}, 1)});
}

TEST(Specialize, ABrokenConstantNodeIsNamed) {
  ModelBuilder m;
  m.Input("x", {"2"})
      .Floats("a", Shape{2}, {1, 2})
      .Ints("i", {5})
      .Node("Gather", {"a", "i"}, {"g"})
      .Node("Add", {"x", "g"}, {"y"})
      .Output("y");
  const Error e = ErrorFrom([&] { Compiled(m.Import()); });
  EXPECT_THAT(e.what(), HasSubstr("Gather_g"));
}

TEST(Specialize, FoldingHasALimit) {
  ModelBuilder m;
  m.Input("x", {"1"})
      .Ints("s", {400000000})
      .Node("ConstantOfShape", {"s"}, {"f"})
      .Node("ReduceMax", {"f"}, {"r"}, {AttrInt("keepdims", 1)});
  m.Node("Add", {"r", "x"}, {"y"}).Output("y");
  const Graph g = Compiled(m.Import());  // 1.6 GB are left to the run
  EXPECT_THAT(OpsOf(g), ElementsAre("ConstantOfShape", "ReduceMax", "Add"));
}

TEST(Specialize, ManyConstantsShareTheLimit) {
  ModelBuilder m;
  m.Input("x", {"1"}).Ints("s", {100000000});
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    m.Node("ConstantOfShape", {"s"}, {"f" + n}).Output("f" + n);
  }
  m.Node("Relu", {"x"}, {"y"}).Output("y");
  const Graph g = Compiled(m.Import());  // 8 x 400 MB: two fit
  EXPECT_EQ(OpsOf(g).size(), 7u);
}

TEST(Specialize, FoldingHasALimitOfWork) {
  ModelBuilder m;
  m.Input("x", {"1"}).Ints("s", {1000, 1000}).Node("ConstantOfShape", {"s"}, {"a"});
  m.Node("MatMul", {"a", "a"}, {"b"}).Node("ReduceMax", {"b"}, {"r"});  // 2e9 FLOPs
  m.Node("Add", {"r", "x"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(Compiled(m.Import())), ElementsAre("MatMul", "ReduceMax", "Add"));
}

// cond comes from the rank or a dim of x: decided once the shape is.
ModelBuilder Decided(const onnx::GraphProto& then_branch, const onnx::GraphProto& else_branch) {
  ModelBuilder m;
  m.Input("x", {"N", "3"})
      .Input("z", {"3"})
      .Floats("w", Shape{3}, {1, 2, 3})
      .Ints("zero", {0})
      .Ints("one", {1});
  m.Node("Shape", {"x"}, {"s"})
      .Node("Gather", {"s", "zero"}, {"n"})
      .Node("Equal", {"n", "one"}, {"c1"});
  m.Node("Squeeze", {"c1"}, {"c"});
  m.Node("If", {"c"}, {"y"},
         {AttrGraph("then_branch", then_branch), AttrGraph("else_branch", else_branch)})
      .Node("Neg", {"y"}, {"out"})
      .Output("out");
  return m;
}

TEST(Specialize, InlinesTheBranchThatTheShapeDecides) {
  const auto m = Decided(BranchOf([](GraphBuilder& g) {
                           g.Node("Add", {"z", "w"}, {"t"}).Output("t");
                         }),
                         BranchOf([](GraphBuilder& g) {
                           g.Node("Mul", {"x", "w"}, {"m"}).Node("Exp", {"m"}, {"e"}).Output("e");
                         }));
  const Graph imported = m.Import();
  EXPECT_THAT(OpsOf(Compiled(imported, false, {{"x", Shape{1, 3}}})), ElementsAre("Add", "Neg"));
  EXPECT_THAT(OpsOf(Compiled(imported, false, {{"x", Shape{2, 3}}})),
              ElementsAre("Mul", "Exp", "Neg"));
  const auto out = RunPlan(Compiled(imported, true, {{"x", Shape{2, 3}}}),
                           {RandomTensor(Shape{2, 3}, 1, 0, 0), RandomTensor(Shape{3}, 2)});
  EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
  EXPECT_FLOAT_EQ(out[0].data<float>()[5], -1);
}

TEST(Specialize, InlinedOutputsMayBeCapturesConstantsOrTwins) {
  const auto run = [](const onnx::GraphProto& branch) {
    const auto other =
        BranchOf([](GraphBuilder& g) { g.Node("Identity", {"z"}, {"e"}).Output("e"); });
    const Graph g = Compiled(Decided(branch, other).Import(), true, {{"x", Shape{1, 3}}});
    return RunPlan(g, {RandomTensor(Shape{1, 3}, 1),
                       Tensor::FromValues(Shape{3}, std::vector<float>{4, 5, 6})})[0];
  };
  EXPECT_THAT(run(BranchOf([](GraphBuilder& g) { g.Output("z"); })).values<float>(),
              ElementsAre(-4, -5, -6));
  EXPECT_THAT(run(BranchOf([](GraphBuilder& g) { g.Output("w"); })).values<float>(),
              ElementsAre(-1, -2, -3));
  EXPECT_THAT(run(BranchOf([](GraphBuilder& g) {
                g.Floats("k", Shape{3}, {7, 8, 9}).Output("k");
              })).values<float>(),
              ElementsAre(-7, -8, -9));
  EXPECT_THAT(run(BranchOf([](GraphBuilder& g) {
                g.Floats("k", Shape{3}, {1, 1, 1}).Node("Add", {"k", "w"}, {"f"}).Output("f");
              })).values<float>(),
              ElementsAre(-2, -3, -4));

  ModelBuilder m;  // both outputs are the same value inside
  m.Input("x", {"2"}).Constant("c", Tensor::Scalar(true));
  const auto twin =
      BranchOf([](GraphBuilder& g) { g.Node("Neg", {"x"}, {"t"}).Output("t").Output("t"); });
  m.Node("If", {"c"}, {"a", "b"}, {AttrGraph("then_branch", twin), AttrGraph("else_branch", twin)})
      .Output("a")
      .Output("b");
  const auto out =
      RunPlan(Compiled(m.Import()), {Tensor::FromValues(Shape{2}, std::vector<float>{1, 2})});
  EXPECT_THAT(out[0].values<float>(), ElementsAre(-1, -2));
  EXPECT_THAT(out[1].values<float>(), ElementsAre(-1, -2));
}

TEST(Specialize, InlinesAnIfInsideAnInlinedBranch) {
  const auto leaf = BranchOf([](GraphBuilder& g) {
    g.Node("Add", {"z", "inner"}, {"l"}).Output("l");
  });
  const auto then_branch = BranchOf([&](GraphBuilder& g) {
    g.Node("Exp", {"w"}, {"inner"})
        .Node("If", {"c"}, {"t"}, {AttrGraph("then_branch", leaf), AttrGraph("else_branch", leaf)})
        .Output("t");
  });
  const auto other = BranchOf([](GraphBuilder& g) { g.Output("z"); });
  EXPECT_THAT(OpsOf(Compiled(Decided(then_branch, other).Import(), false, {{"x", Shape{1, 3}}})),
              ElementsAre("Add", "Neg"));
}

// else_branch multiplies [2] by [3]: it cannot work, and nobody knows until it is taken.
ModelBuilder Refusing() {
  ModelBuilder m;
  m.Input("c", std::vector<std::string>{}, DType::kBool)
      .Input("x", {"2"})
      .Floats("w", Shape{3}, {1, 2, 3});
  const auto then_branch =
      BranchOf([](GraphBuilder& g) { g.Node("Neg", {"x"}, {"t"}).Output("t"); });
  const auto else_branch = BranchOf([](GraphBuilder& g) {
    g.Node("Mul", {"x", "w"}, {"e"}).Output("e");
  });
  m.Node("If", {"c"}, {"y"},
         {AttrGraph("then_branch", then_branch), AttrGraph("else_branch", else_branch)})
      .Node("Exp", {"y"}, {"o"})
      .Output("o");
  return m;
}

TEST(Specialize, ARefusedBranchIsAnErrorOnlyWhenTaken) {
  const Graph g = Compiled(Refusing().Import());
  ASSERT_FALSE(g.nodes[0].branches[1].refused.empty());
  const Tensor x = Tensor::FromValues(Shape{2}, std::vector<float>{0, 0});
  EXPECT_THAT(RunPlan(g, {Tensor::Scalar(true), x})[0].values<float>(), ElementsAre(1, 1));
  const Error e = ErrorFrom([&] { RunPlan(g, {Tensor::Scalar(false), x}); });
  EXPECT_EQ(e.code(), Code::kInvalidData);
  EXPECT_THAT(e.what(), HasSubstr("else_branch"));
}

TEST(Specialize, AGraphWithARefusedBranchCanBeInferredAgain) {
  Graph g = Compiled(Refusing().Import());
  InferGraph(g);
  EXPECT_FALSE(g.nodes[0].branches[1].refused.empty());
  EXPECT_TRUE(g.value(g.outputs[0]).info.static_shape());
}

TEST(Specialize, ABranchThatFailsWhileFoldingIsRefused) {
  // The index is a constant outside: inference lets it pass, computing it does not.
  ModelBuilder m;
  m.Input("c", std::vector<std::string>{}, DType::kBool)
      .Input("x", {"3"})
      .Floats("w", Shape{3}, {1, 2, 3})
      .Ints("i", {0, 1, 9});
  const auto then_branch =
      BranchOf([](GraphBuilder& g) { g.Node("Neg", {"x"}, {"t"}).Output("t"); });
  const auto else_branch = BranchOf([](GraphBuilder& g) {
    g.Node("Exp", {"x"}, {"a"})
        .Node("Gather", {"w", "i"}, {"e"})
        .Node("Add", {"a", "e"}, {"f"})
        .Output("f");
  });
  m.Node("If", {"c"}, {"y"},
         {AttrGraph("then_branch", then_branch), AttrGraph("else_branch", else_branch)})
      .Output("y");
  const Graph g = Compiled(m.Import());
  const Tensor x = Tensor::FromValues(Shape{3}, std::vector<float>{1, 2, 3});
  EXPECT_THAT(RunPlan(g, {Tensor::Scalar(true), x})[0].values<float>(), ElementsAre(-1, -2, -3));
  EXPECT_THROW(RunPlan(g, {Tensor::Scalar(false), x}), Error);
}

TEST(Specialize, TakingARefusedBranchForSureIsAnErrorAtOnce) {
  const auto bad = BranchOf([](GraphBuilder& g) {
    g.Floats("k", Shape{2}, {1, 2}).Node("Add", {"z", "k"}, {"t"}).Output("t");
  });
  const auto good = BranchOf([](GraphBuilder& g) { g.Output("z"); });
  const Error e = ErrorFrom([&] {
    Compiled(Decided(bad, good).Import(), true, {{"x", Shape{1, 3}}});
  });
  EXPECT_THAT(e.what(), HasSubstr("If_y"));
}

TEST(BindOpenDims, BecomeOneAndAreListed) {
  Graph g = FlattenChain().Import();
  EXPECT_THAT(BindOpenDimsToOne(g), ElementsAre("x: dim 0 (N) = 1", "x: dim 2 (H) = 1"));
  EXPECT_THAT(BindOpenDimsToOne(g), IsEmpty());
  ModelBuilder rankless;
  rankless.Input("x", {"1"}).Node("Neg", {"x"}, {"y"}).Output("y");
  rankless.proto()
      .mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->clear_shape();
  Graph no_rank = rankless.Import();
  EXPECT_THAT(ErrorFrom([&] { BindOpenDimsToOne(no_rank); }).hint(), HasSubstr("--shape x"));
}

}  // namespace
}  // namespace whimbrel
