// Fusion switches in the vendor's file form, and what CompileGraph does with shapes.

#include "whimbrel/graph/compile.h"

#include "tests/graph/model_builder.h"

namespace whimbrel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelBuilder ConvRelu() {
  ModelBuilder m;
  m.Input("x", {"N", "3", "8", "8"}).Constant("w", RandomTensor(Shape{4, 3, 3, 3}, 1));
  m.Node("Conv", {"x", "w"}, {"c"}).Node("Relu", {"c"}, {"y"}).Output("y");
  return m;
}

TEST(FusionSwitches, ReadTheVendorsFileForm) {
  const auto s = FusionSwitches::FromJson(
      R"({"Switch":{"GraphFusion":{"ConvBnAct":"off","MatMulBiasAct":"on"},"UBFusion":{"Any":"off"}}})",
      "f");
  EXPECT_FALSE(s.on("ConvBnAct"));
  EXPECT_TRUE(s.on("MatMulBiasAct"));
  EXPECT_EQ(s.ToText(), "ConvBnAct=off");
  EXPECT_EQ(FusionSwitches().ToText(), "");
}

TEST(FusionSwitches, AllComesFirstWhateverTheOrder) {
  for (const char* text : {R"({"Switch":{"GraphFusion":{"ALL":"off","ConvBnAct":"on"}}})",
                           R"({"Switch":{"GraphFusion":{"ConvBnAct":"on","ALL":"off"}}})"}) {
    const auto s = FusionSwitches::FromJson(text, "f");
    for (const Pass& pass : Passes())
      EXPECT_EQ(s.on(pass.name), pass.name == "ConvBnAct") << pass.name;
  }
}

TEST(FusionSwitches, UnknownPassNamesTheNearest) {
  const Error e = ErrorFrom([] {
    FusionSwitches::FromJson(R"({"Switch":{"GraphFusion":{"ConvBnAkt":"off"}}})", "f.cfg");
  });
  EXPECT_EQ(e.code(), Code::kInvalidArgument);
  EXPECT_THAT(e.what(), HasSubstr("f.cfg"));
  EXPECT_THAT(e.hint(), HasSubstr("ConvBnAct"));
  FusionSwitches s;
  EXPECT_THROW(s.Set("nothing like it", false), Error);
}

TEST(FusionSwitches, OtherFormsAreRefusedInWords) {
  for (const char* text :
       {"", "[]", "{}", "3", R"({"Switch":3})", R"({"Switch":[1]})",
        R"({"Switch":{"GraphFusion":[]}})", R"({"Switch":{"GraphFusion":{"ConvBnAct":false}}})",
        R"({"Switch":{"GraphFusion":{"ConvBnAct":"OFF"}}})", R"({"Switch":{"Other":{}}})",
        R"({"Switch":{"GraphFusion":{"ConvBnAct":"off"})"}) {
    const Error e = ErrorFrom([&] { FusionSwitches::FromJson(text, "f"); });
    EXPECT_EQ(e.code(), Code::kInvalidData) << text << ": " << e.what();
  }
}

TEST(CompileGraph, ASwitchedOffPassLeavesItsNodes) {
  const Graph graph = ConvRelu().Import();
  EXPECT_THAT(OpsOf(*CompileGraph(graph, {}).graph), ElementsAre("FusedConv"));
  CompileOptions off;
  off.switches.Set("ConvBnAct", false);
  EXPECT_THAT(OpsOf(*CompileGraph(graph, off).graph), ElementsAre("Conv", "Relu"));
  CompileOptions none;
  none.optimize = false;
  EXPECT_THAT(OpsOf(*CompileGraph(graph, none).graph), ElementsAre("Conv", "Relu"));
}

TEST(CompileGraph, SaysWhatItAssumedAndWhatItTook) {
  const auto compiled = CompileGraph(ConvRelu().Import(), {});
  EXPECT_THAT(compiled.assumed, ElementsAre("x: dim 0 (N) = 1"));
  ASSERT_EQ(compiled.shapes.size(), 1U);
  EXPECT_EQ(compiled.shapes[0].shape, (Shape{1, 3, 8, 8}));
  ASSERT_EQ(compiled.notes.size(), 1U);
  EXPECT_THAT(compiled.notes[0].text, HasSubstr("Relu_y"));
  EXPECT_THAT(compiled.graph->nodes[0].origins, ElementsAre("Conv_c", "Relu_y"));
}

TEST(CompileGraph, LeavesTheImportedGraphAsItWas) {
  const Graph graph = ConvRelu().Import();
  const std::string before = ToText(graph);
  CompileGraph(graph, At({{"x", Shape{5, 3, 8, 8}}}));
  EXPECT_EQ(ToText(graph), before);
}

TEST(CompileGraph, RefusesShapesThatDoNotFit) {
  const Graph graph = ConvRelu().Import();
  const auto error = [&](const InputShape& s) {
    return ErrorFrom([&] { CompileGraph(graph, At({s})); });
  };
  const Error name = error({"y", Shape{1}});
  EXPECT_EQ(name.code(), Code::kInvalidArgument);
  EXPECT_THAT(name.what(), HasSubstr("no input y"));
  EXPECT_THAT(error({"x", Shape{1, 3, 8}}).what(), HasSubstr("rank"));
  EXPECT_THAT(error({"x", Shape{1, 4, 8, 8}}).what(),
              HasSubstr("dimension 1 is 3 in the model, 4 was given"));
}

TEST(CompileGraph, OneSymbolHasOneValue) {
  ModelBuilder m;
  m.Input("a", {"N", "2"}).Input("b", {"N", "2"}).Input("s", {"K", "K"});
  m.Node("Add", {"a", "b"}, {"y"}).Node("Relu", {"s"}, {"z"}).Output("y").Output("z");
  const Graph graph = m.Import();
  const Error two = ErrorFrom([&] {
    CompileGraph(graph, At({{"a", Shape{2, 2}}, {"b", Shape{3, 2}}}));
  });
  EXPECT_EQ(two.code(), Code::kInvalidArgument);
  EXPECT_THAT(two.what(), HasSubstr("N is 2 already"));
  EXPECT_THROW(CompileGraph(graph, At({{"s", Shape{2, 3}}})), Error);
  const auto one = CompileGraph(graph, At({{"a", Shape{4, 2}}}));
  EXPECT_EQ(one.shapes[1].shape, (Shape{4, 2}));  // b follows a
}

TEST(CompileGraph, RefusesUnknownOpsByName) {
  ModelBuilder m;
  m.Input("x", {"1"})
      .Node("Frobnicate", {"x"}, {"h"}, {}, "com.example")
      .Node("Frobnicate", {"h"}, {"y"}, {}, "com.example")
      .Output("y");
  const Error e = ErrorFrom([&] { CompileGraph(m.Import(), {}); });
  EXPECT_EQ(e.code(), Code::kUnsupported);
  for (const char* word : {"Frobnicate", "com.example", "version 1", "Frobnicate_h", "1 more"})
    EXPECT_THAT(e.what(), HasSubstr(word));
}

}  // namespace
}  // namespace whimbrel
