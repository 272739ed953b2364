// ONNX import: odd but valid models come in whole, damaged ones are refused in words.

#include "whimbrel/graph/onnx_import.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "tests/graph/model_builder.h"

#include "whimbrel/base/file.h"

namespace whimbrel {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Error ImportError(const ModelBuilder& m) {
  return ErrorFrom([&] { m.Import(); });
}
Error ImportError(const std::string& bytes) {
  return ErrorFrom([&] { ImportText(bytes); });
}

TEST(OnnxImport, PutsUnsortedNodesInOrder) {
  ModelBuilder m;
  m.Input("x", {"2"})
      .Node("Neg", {"b"}, {"y"})
      .Node("Exp", {"a"}, {"b"})
      .Node("Relu", {"x"}, {"a"})
      .Output("y");
  EXPECT_THAT(OpsOf(m.Import()), ElementsAre("Relu", "Exp", "Neg"));
}

TEST(OnnxImport, KeepsTheModelsOrderWhereItIsValid) {
  ModelBuilder m;
  m.Input("x", {"2"})
      .Node("Neg", {"x"}, {"a"})
      .Node("Exp", {"x"}, {"b"})
      .Node("Relu", {"x"}, {"c"});
  m.Node("Sum", {"c", "b", "a"}, {"y"}).Output("y");
  EXPECT_THAT(OpsOf(m.Import()), ElementsAre("Neg", "Exp", "Relu", "Sum"));
}

TEST(OnnxImport, OrdersNodesBeforeTheBranchesThatUseThem) {
  ModelBuilder m;
  m.Input("c", std::vector<std::string>{}, DType::kBool).Input("x", {"2"});
  const auto branch = BranchOf([](GraphBuilder& g) { g.Node("Neg", {"late"}, {"t"}).Output("t"); });
  const auto other = BranchOf([](GraphBuilder& g) { g.Node("Relu", {"late"}, {"e"}).Output("e"); });
  m.Node("If", {"c"}, {"y"}, {AttrGraph("then_branch", branch), AttrGraph("else_branch", other)});
  m.Node("Exp", {"x"}, {"late"}).Output("y");
  EXPECT_THAT(OpsOf(m.Import()), ElementsAre("Exp", "If"));
}

TEST(OnnxImport, NamesANodeOfTheCycle) {
  ModelBuilder m;
  // Only a and b are in it; "behind" waits for them.
  m.Input("x", {"2"})
      .Node("Neg", {"b"}, {"behind"})
      .Node("Add", {"x", "b"}, {"a"})
      .Node("Exp", {"a"}, {"b"})
      .Output("behind");
  const Error e = ImportError(m);
  EXPECT_EQ(e.code(), Code::kInvalidData);
  EXPECT_THAT(e.what(), HasSubstr("cycle"));
  EXPECT_THAT(e.what(), AnyOf(HasSubstr("Add_a"), HasSubstr("Exp_b")));
  ModelBuilder self;
  self.Input("x", {"2"}).Node("Add", {"x", "a"}, {"a"}).Output("a");
  EXPECT_THAT(ImportError(self).what(), HasSubstr("Add_a"));
}

TEST(OnnxImport, RefusesValuesDefinedTwiceOrNever) {
  ModelBuilder twice;
  twice.Input("x", {"2"}).Node("Neg", {"x"}, {"y"}).Node("Exp", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(ImportError(twice).what(), HasSubstr("y is defined twice"));
  ModelBuilder over_input;
  over_input.Input("x", {"2"}).Node("Neg", {"x"}, {"n"}).Node("Neg", {"n"}, {"x"}).Output("n");
  EXPECT_EQ(ImportError(over_input).code(), Code::kInvalidData);
  ModelBuilder inputs;
  inputs.Input("x", {"2"}).Input("x", {"2"}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(ImportError(inputs).what(), HasSubstr("x is defined twice"));
  ModelBuilder missing;
  missing.Input("x", {"2"}).Node("Add", {"x", "nobody"}, {"y"}).Output("y");
  EXPECT_THAT(ImportError(missing).what(), HasSubstr("nobody, which nobody makes"));
  ModelBuilder output;
  output.Input("x", {"2"}).Node("Neg", {"x"}, {"y"}).Output("z");
  EXPECT_THAT(ImportError(output).what(), HasSubstr("output z"));
  ModelBuilder none;
  none.Input("x", {"2"}).Node("Neg", {"x"}, {"y"});
  EXPECT_THAT(ImportError(none).what(), HasSubstr("no outputs"));
}

TEST(OnnxImport, NodesOfOneNameGetNamesOfTheirOwn) {
  ModelBuilder m;
  m.Input("x", {"2"})
      .Node("Neg", {"x"}, {"a"})
      .Node("Neg", {"a"}, {"b"})
      .Node("Neg", {"b"}, {"y"})
      .Output("y");
  for (auto& node : *m.proto().mutable_graph()->mutable_node()) node.set_name("same");
  m.proto().mutable_graph()->mutable_node(2)->clear_name();
  const Graph g = m.Import();
  EXPECT_EQ(g.nodes[0].name, "same");
  EXPECT_EQ(g.nodes[1].name, "same_2");
  EXPECT_THAT(g.nodes[2].name, HasSubstr("Neg"));
}

TEST(OnnxImport, InitializersListedAsInputsAreNoInputs) {
  ModelBuilder m;
  m.Input("x", {"2"})
      .Input("w", {"2"})
      .Floats("w", Shape{2}, {1, 2})
      .Node("Add", {"x", "w"}, {"y"})
      .Output("y");
  const Graph g = m.Import();
  ASSERT_EQ(g.inputs.size(), 1U);
  EXPECT_EQ(g.value(g.inputs[0]).name, "x");
  EXPECT_TRUE(g.is_constant(g.FindValue("w")));
}

TEST(OnnxImport, InputsAndConstantsMayBeOutputs) {
  ModelBuilder m;
  m.Input("x", {"2"}).Floats("w", Shape{2}, {1, 2}).Output("x").Output("w").Output("x");
  const auto out = RunPlan(Compiled(m.Import()), {RandomTensor(Shape{2}, 1)});
  ASSERT_EQ(out.size(), 3U);
  EXPECT_TRUE(BitEqual(out[0], RandomTensor(Shape{2}, 1)));
  EXPECT_EQ(out[1].data<float>()[1], 2);
}

TEST(OnnxImport, OpenDimsComeInAllSpellings) {
  ModelBuilder m;
  m.Input("x", {"-1", "N", "", "0", "?"}).Node("Neg", {"x"}, {"y"}).Output("y");
  const Graph g = m.Import();
  const Dims& dims = *g.value(g.inputs[0]).info.dims;
  EXPECT_FALSE(dims[0].known());
  EXPECT_EQ(dims[1].text(), "N");
  EXPECT_FALSE(dims[2].known());
  EXPECT_TRUE(dims[3].Is(0));
  EXPECT_FALSE(dims[4].known());
  EXPECT_EQ(dims[4].text(), "");
}

TEST(OnnxImport, OldOpsetsAreRefusedWithAWayOut) {
  for (int opset : {1, 6, 0, -3}) {
    ModelBuilder m(opset);
    m.Input("x", {"2"}).Node("Neg", {"x"}, {"y"}).Output("y");
    const Error e = ImportError(m);
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_THAT(e.what(), HasSubstr("below 7"));
    EXPECT_THAT(e.hint(), HasSubstr("convert"));
  }
  ModelBuilder seven(7);
  seven.Input("x", {"2"}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(seven.Import().nodes[0].opset, 7);
  ModelBuilder without;
  without.Input("x", {"2"}).Node("Neg", {"x"}, {"y"}).Output("y");
  without.proto().clear_opset_import();
  EXPECT_THAT(ImportError(without).what(), HasSubstr("opset"));
}

TEST(OnnxImport, UnknownOpsAndDomainsAreNamed) {
  ModelBuilder m;
  auto* custom = m.proto().add_opset_import();
  custom->set_domain("com.example");
  custom->set_version(4);
  m.Input("x", {"2"})
      .Node("Twist", {"x"}, {"a"}, {}, "com.example")
      .Node("NoSuchOp", {"a"}, {"y"})
      .Output("y");
  const Graph g = m.Import();  // scan wants to see it
  EXPECT_EQ(g.nodes[0].schema, nullptr);
  const Error e = ErrorFrom([&] { RequireKnownOps(g); });
  for (const char* word : {"Twist", "com.example", "version 4", "Twist_a", "1 more"})
    EXPECT_THAT(e.what(), HasSubstr(word));
}

TEST(OnnxImport, TheStandardDomainHasTwoSpellings) {
  ModelBuilder m;
  m.proto().mutable_opset_import(0)->set_domain("ai.onnx");
  m.Input("x", {"2"})
      .Node("Neg", {"x"}, {"a"}, {}, "ai.onnx")
      .Node("Neg", {"a"}, {"y"})
      .Output("y");
  RequireKnownOps(m.Import());
}

// then: if (c2) x + a else x; else: a. The inner branch captures over two levels.
ModelBuilder NestedIf() {
  ModelBuilder m;
  m.Input("c", std::vector<std::string>{}, DType::kBool)
      .Input("c2", std::vector<std::string>{}, DType::kBool)
      .Input("x", {"2"});
  m.Node("Neg", {"x"}, {"a"});
  const auto inner_then = BranchOf([](GraphBuilder& g) {
    g.Node("Add", {"x", "a"}, {"it"}).Output("it");
  });
  const auto inner_else = BranchOf([](GraphBuilder& g) { g.Output("x"); });
  const auto then_branch = BranchOf([&](GraphBuilder& g) {
    g.Node("If", {"c2"}, {"inner"},
           {AttrGraph("then_branch", inner_then), AttrGraph("else_branch", inner_else)})
        .Node("Exp", {"inner"}, {"t"})
        .Output("t");
  });
  const auto else_branch = BranchOf([](GraphBuilder& g) { g.Output("a"); });
  // else first: the order in the file says nothing.
  m.Node("If", {"c"}, {"y"},
         {AttrGraph("else_branch", else_branch), AttrGraph("then_branch", then_branch)})
      .Output("y");
  return m;
}

TEST(OnnxImport, CapturesReachOverTwoLevels) {
  const Graph g = NestedIf().Import();
  const Node& outer = g.nodes[1];
  ASSERT_EQ(outer.branches.size(), 2U);
  const Branch& then_branch = outer.branches[1];
  EXPECT_EQ(then_branch.attribute, "then_branch");
  EXPECT_EQ(then_branch.outer.size(), 3U);  // c2, x, a
  const Tensor x = Tensor::FromValues(Shape{2}, std::vector<float>{1, 2});
  const Graph compiled = Compiled(g);
  const auto run = [&](bool c, bool c2) {
    return RunPlan(compiled, {Tensor::Scalar(c), Tensor::Scalar(c2), x})[0];
  };
  EXPECT_FLOAT_EQ(run(true, true).data<float>()[1], 1);  // exp(x - x)
  EXPECT_FLOAT_EQ(run(true, false).data<float>()[1], std::exp(2.0F));
  EXPECT_FLOAT_EQ(run(false, true).data<float>()[1], -2);
}

std::string Nested(int depth) {
  ModelBuilder m;
  m.Input("c", std::vector<std::string>{}, DType::kBool).Input("x", {"2"});
  onnx::GraphProto graph =
      BranchOf([](GraphBuilder& g) { g.Node("Neg", {"x"}, {"o"}).Output("o"); });
  for (int i = 0; i < depth; ++i) {
    const std::string out = "o" + std::to_string(i);
    graph = BranchOf([&](GraphBuilder& g) {
      g.Node("If", {"c"}, {out},
             {AttrGraph("then_branch", graph),
              AttrGraph("else_branch", BranchOf([](GraphBuilder& e) { e.Output("x"); }))})
          .Output(out);
    });
  }
  m.Node("If", {"c"}, {"y"},
         {AttrGraph("then_branch", graph),
          AttrGraph("else_branch", BranchOf([](GraphBuilder& e) { e.Output("x"); }))})
      .Output("y");
  return m.Bytes();
}

TEST(OnnxImport, NestingHasALimitAndSaysSo) {
  const Graph ten = ImportText(Nested(10));
  EXPECT_FLOAT_EQ(
      RunPlan(Compiled(ten),
              {Tensor::Scalar(true), Tensor::FromValues(Shape{2}, std::vector<float>{1, 2})})[0]
          .data<float>()[0],
      -1);
  ImportText(Nested(50));
  for (int depth : {64, 80, 300}) {
    const Error e = ImportError(Nested(depth));
    EXPECT_EQ(e.code(), Code::kInvalidData);
    EXPECT_THAT(e.what(), HasSubstr("deeper than 64"));
  }
}

TEST(OnnxImport, ClaimsOfTensorsWithoutDataAreRefusedAtOnce) {
  for (int form = 0; form < 3; ++form) {
    ModelBuilder m;
    m.Input("x", {"2"});
    auto* w = m.proto().mutable_graph()->add_initializer();
    w->set_name("w");
    w->set_data_type(1);
    w->add_dims(2500000000);  // 10 GB
    if (form == 1) w->set_raw_data("abcd");
    if (form == 2) w->add_float_data(1);
    m.Node("Add", {"x", "w"}, {"y"}).Output("y");
    const Error e = ImportError(m);
    EXPECT_EQ(e.code(), Code::kInvalidData);
    EXPECT_THAT(e.what(), HasSubstr("w"));
  }
  ModelBuilder overflow;
  overflow.Input("x", {"2"});
  auto* w = overflow.proto().mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(1);
  for (int i = 0; i < 4; ++i) w->add_dims(int64_t{1} << 32);  // 2^128 elements
  overflow.Node("Add", {"x", "w"}, {"y"}).Output("y");
  EXPECT_EQ(ImportError(overflow).code(), Code::kInvalidData);
}

TEST(OnnxImport, HugeShapesAreRefusedNotTried) {
  // Claimed by an input, a fill and an expansion.
  ModelBuilder input;
  input.Input("x", {"4611686018427387904", "4"}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THROW(RunPlan(Compiled(input.Import()), {Tensor()}), Error);
  ModelBuilder arena;
  arena.Input("x", {"100000", "1"})
      .Input("z", {"1", "100000000"})
      .Node("Add", {"x", "z"}, {"y"})
      .Node("Exp", {"y"}, {"e"})
      .Output("e");
  EXPECT_THROW(RunPlan(Compiled(arena.Import()), {Tensor(), Tensor()}), Error);
  ModelBuilder fill;
  fill.Input("x", {"1"})
      .Ints("s", {100000, 100000, 100000})
      .Node("ConstantOfShape", {"s"}, {"f"})
      .Node("Add", {"f", "x"}, {"y"})
      .Output("y");
  EXPECT_THROW(RunPlan(Compiled(fill.Import()), {RandomTensor(Shape{1}, 1)}), Error);
}

TEST(OnnxImport, EmptyTruncatedAndRandomFilesAreRefused) {
  EXPECT_THAT(ImportError(std::string()).what(), HasSubstr("empty"));
  const std::string good = NestedIf().Bytes();
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 400 + 1, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_THAT(ImportError(bytes).code(), AnyOf(Code::kInvalidData, Code::kUnsupported));
  }
  for (size_t cut = 1; cut < good.size(); ++cut) {
    try {
      ImportText(good.substr(0, cut));
    } catch (const Error& e) {
      EXPECT_NE(e.code(), Code::kInternal) << cut << ": " << e.what();
    }
  }
  EXPECT_THAT(ImportError(std::string("just text, not a model")).code(), Code::kInvalidData);
  EXPECT_EQ(ErrorFrom([] { ImportOnnx("/nonexistent/model.onnx"); }).code(), Code::kNotFound);
}

TEST(OnnxImport, PackedAndUnpackedFieldsReadAlike) {
  // dims and int64_data of a TensorProto, ints of an AttributeProto, by hand: field << 3 | wire
  // type.
  const auto varint = [](uint64_t v) {
    std::string s;
    for (; v >= 128; v >>= 7) s += static_cast<char>(v | 128);
    return s + static_cast<char>(v);
  };
  const auto field = [&](int number, const std::string& payload) {
    return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(payload.size()) + payload;
  };
  const auto number = [&](int n, uint64_t v) {
    return varint(static_cast<uint64_t>(n) << 3) + varint(v);
  };
  for (bool packed : {false, true}) {
    std::string tensor = packed ? field(1, varint(3)) : number(1, 3);
    tensor += number(2, 7) + field(8, "axes");
    tensor += packed ? field(7, varint(5) + varint(6) + varint(7))
                     : number(7, 5) + number(7, 6) + number(7, 7);
    ModelBuilder m;
    m.Input("x", {"2", "3"})
        .Node("Transpose", {"x"}, {"y"})
        .Output("y")
        .Output("axes", DType::kInt64);
    std::string attribute = field(1, "perm") + number(20, 7);
    attribute += packed ? field(8, varint(1) + varint(0)) : number(8, 1) + number(8, 0);
    m.proto().mutable_graph()->mutable_node(0)->add_attribute()->ParseFromString(attribute);
    std::string bytes = m.Bytes();
    bytes += field(7, field(5, tensor));  // graph, initializer: merged into the one there is
    const Graph g = ImportText(bytes);
    EXPECT_THAT(IntegerValues(*g.value(g.FindValue("axes")).info.constant), ElementsAre(5, 6, 7));
    const auto perm = g.nodes[0].attributes.Ints("perm");
    EXPECT_THAT(std::vector<int64_t>(perm.begin(), perm.end()), ElementsAre(1, 0));
  }
}

TEST(OnnxImport, AttributesWithoutATypeTellByTheirField) {
  ModelBuilder m;
  m.Input("x", {"2", "3"})
      .Node("Softmax", {"x"}, {"a"}, {AttrInt("axis", 0)})
      .Node("Transpose", {"a"}, {"y"}, {AttrInts("perm", {1, 0})})
      .Output("y");
  for (auto& node : *m.proto().mutable_graph()->mutable_node())
    node.mutable_attribute(0)->clear_type();
  const Graph g = m.Import();
  EXPECT_EQ(g.nodes[0].attributes.Int("axis", 9), 0);
  EXPECT_EQ(g.nodes[1].attributes.Ints("perm").size(), 2U);
}

TEST(OnnxImport, OddPiecesAreRefusedInWords) {
  ModelBuilder sparse;
  sparse.Input("x", {"2"}).Node("Neg", {"x"}, {"y"}).Output("y");
  sparse.proto().mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("sp");
  EXPECT_THAT(ImportError(sparse).what(), HasSubstr("sparse initializer sp"));
  ModelBuilder text;
  text.Input("x", {"2"}, DType::kString).Node("Identity", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(ImportError(text).code(), Code::kUnsupported);
  ModelBuilder sequence;
  sequence.Node("Neg", {"x"}, {"y"}).Output("y");
  auto* in = sequence.proto().mutable_graph()->add_input();
  in->set_name("x");
  in->mutable_type()->mutable_sequence_type();
  EXPECT_THAT(ImportError(sequence).what(), HasSubstr("x is no tensor"));
  ModelBuilder rank;
  rank.Input("x", {"1", "1", "1", "1", "1", "1", "1", "1", "1"})
      .Node("Neg", {"x"}, {"y"})
      .Output("y");
  EXPECT_THAT(ImportError(rank).what(), HasSubstr("rank 9"));
  ModelBuilder optional;  // left-out inputs and outputs
  optional.Input("x", {"2"})
      .Floats("hi", Shape{}, {1})
      .Node("Clip", {"x", "", "hi"}, {"y"})
      .Output("y");
  EXPECT_EQ(optional.Import().nodes[0].inputs[1], kNoValue);
}

// A folder that holds a model with its weights beside it, and one with a decoy in the parent.
class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = JoinPath(::testing::TempDir(), "whimbrel-import-XXXXXX");
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::create_directory(JoinPath(folder_, "t"));
    old_ = std::filesystem::current_path();
  }
  void TearDown() override {
    std::filesystem::current_path(old_);
    std::filesystem::remove_all(folder_);
  }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(JoinPath(folder_, name), std::ios::binary) << bytes;
  }
  static void MakeExternal(onnx::TensorProto* t, const std::string& location, int offset,
                           int length) {
    t->clear_raw_data();
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    const auto add = [&](const std::string& key, const std::string& value) {
      auto* entry = t->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", location);
    add("offset", std::to_string(offset));
    add("length", std::to_string(length));
  }
  static std::string FloatBytes(const std::vector<float>& v) {
    return {static_cast<const char*>(static_cast<const void*>(v.data())), v.size() * sizeof(float)};
  }
  std::string folder_;
  std::filesystem::path old_;
};

using ReportsOfFiles = ExternalData;

TEST_F(ReportsOfFiles, Row08ExternalDataLiesBesideTheModelNotInTheCurrentDirectory) {
  ModelBuilder m;
  m.Input("x", {"2"}).Floats("w", Shape{2}, {0, 0}).Node("Add", {"x", "w"}, {"y"}).Output("y");
  MakeExternal(m.proto().mutable_graph()->mutable_initializer(0), "weights.bin", 4, 8);
  Write("t/net.onnx", m.Bytes());
  Write("t/weights.bin", FloatBytes({9, 1, 2}));
  Write("weights.bin",
        FloatBytes({7, 7, 7}));  // what a look-up in the current directory would find
  std::filesystem::current_path(folder_);
  const Tensor zero = Tensor::FromValues(Shape{2}, std::vector<float>{0, 0});
  for (const std::string& path :
       {std::string("t/net.onnx"), std::string("./t/net.onnx"), JoinPath(folder_, "t/net.onnx")}) {
    const auto out = RunPlan(Compiled(ImportOnnx(path)), {zero});
    EXPECT_THAT(out[0].values<float>(), ElementsAre(1, 2)) << path;
  }
  std::filesystem::current_path(JoinPath(folder_, "t"));
  EXPECT_THAT(RunPlan(Compiled(ImportOnnx("net.onnx")), {zero})[0].values<float>(),
              ElementsAre(1, 2));
  // From memory a directory must be named.
  const Error e = ErrorFrom([&] { m.Import(); });
  EXPECT_EQ(e.code(), Code::kInvalidData);
  EXPECT_THAT(std::string(e.what()) + e.hint(), HasSubstr("weights.bin"));
  EXPECT_EQ(m.Import(JoinPath(folder_, "t")).inputs.size(), 1U);
}

TEST_F(ReportsOfFiles, Row09ExternalDataOfAttributeTensorsIsReadToo) {
  onnx::TensorProto value = ToProto("value", Tensor::FromValues(Shape{1}, std::vector<float>{0}));
  MakeExternal(&value, "v.bin", 8, 4);
  ModelBuilder m;
  m.Ints("s", {3}).Node("ConstantOfShape", {"s"}, {"y"}, {AttrTensor("value", value)}).Output("y");
  Write("t/net.onnx", m.Bytes());
  Write("t/v.bin", FloatBytes({1, 2, 42}));
  EXPECT_THAT(RunPlan(Compiled(ImportOnnx(JoinPath(folder_, "t/net.onnx"))), {})[0].values<float>(),
              ElementsAre(42, 42, 42));
  Write("t/v.bin", FloatBytes({1, 2}));
  const Error e = ErrorFrom([&] { ImportOnnx(JoinPath(folder_, "t/net.onnx")); });
  for (const char* word : {"ConstantOfShape_y", "value", "v.bin", "8", "4"})
    EXPECT_THAT(e.what(), HasSubstr(word));
}

TEST_F(ExternalData, LocationsOutsideTheFolderAndMissingFilesAreRefused) {
  Write("weights.bin", FloatBytes({7, 7, 7}));
  for (const std::string& location :
       {std::string("../weights.bin"), JoinPath(folder_, "weights.bin"), std::string("missing.bin"),
        std::string("")}) {
    ModelBuilder m;
    m.Input("x", {"2"}).Floats("w", Shape{2}, {0, 0}).Node("Add", {"x", "w"}, {"y"}).Output("y");
    MakeExternal(m.proto().mutable_graph()->mutable_initializer(0), location, 0, 8);
    Write("t/net.onnx", m.Bytes());
    const Error e = ErrorFrom([&] { ImportOnnx(JoinPath(folder_, "t/net.onnx")); });
    EXPECT_THAT(e.code(), AnyOf(Code::kInvalidData, Code::kNotFound)) << location;
    EXPECT_THAT(e.what(), HasSubstr("w"));
  }
}

TEST(OnnxImport, ReadsADerivedModelWithItsWeightsBesideIt) {
  const Graph g = ImportOnnx(std::string(WHIMBREL_TEST_DATA) + "/derived/rnet_extdata/model.onnx");
  RequireKnownOps(g);
  EXPECT_FALSE(g.nodes.empty());
}

}  // namespace
}  // namespace whimbrel
