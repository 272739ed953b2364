// scan: the verdict on each node for both targets, coverage, and findings.

#include "whimbrel/migrate/scan.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "whimbrel/migrate/ascend_ops.h"
#include "whimbrel/migrate/model_files.h"

namespace whimbrel {
namespace {

using testing::HasSubstr;

// A chain of nodes y_i = op(y_{i-1}, extra constants), f32 [2, 8] at the start.
struct ChainModel {
  Graph graph;
  ValueId last = kNoValue;

  explicit ChainModel(int opset = 13) {
    graph.opsets[""] = opset;
    ValueInfo info;
    info.dtype = DType::kFloat;
    info.dims = Dims{2, 8};
    last = graph.AddValue("x", info);
    graph.inputs = {last};
    graph.outputs = {last};
  }

  Node& Add(const std::string& op, const std::string& domain = "",
            std::vector<ValueId> extra = {}) {
    Node node;
    node.op = op;
    node.domain = domain;
    node.name = op + "_" + std::to_string(graph.nodes.size());
    node.opset = domain.empty() ? graph.opsets[""] : 1;
    node.schema = Registry::Get().Find(domain, op, node.opset);
    node.inputs = {last};
    node.inputs.insert(node.inputs.end(), extra.begin(), extra.end());
    node.origins = {node.name};
    last = graph.AddValue(node.name + ":0");
    node.outputs = {last};
    graph.nodes.push_back(node);
    graph.outputs = {last};
    return graph.nodes.back();
  }

  ValueId Constant(const std::vector<int64_t>& values) {
    return graph.AddConstant(
        "c" + std::to_string(graph.values.size()),
        Tensor::FromValues(Shape{static_cast<int64_t>(values.size())}, values));
  }
};

const ScanOp& OpNamed(const ScanResult& result, std::string_view op) {
  const auto found = std::find_if(result.ops.begin(), result.ops.end(),
                                  [&](const ScanOp& o) { return o.op == op; });
  EXPECT_NE(found, result.ops.end()) << op;
  return *found;
}

bool Found(const ScanResult& result, std::string_view id) {
  return std::any_of(result.findings.begin(), result.findings.end(),
                     [&](const ScanFinding& f) { return f.id == id; });
}

std::string Data(const std::string& name) {
  return std::string(WHIMBREL_TEST_DATA) + "/" + name;
}

TEST(Scan, TakesWhatTheParserAndAiCoreTake) {
  ChainModel model;
  model.Add("Relu");     // Y(doc), blank
  model.Add("Softmax");  // Y, Y
  model.Add("Clip");     // Y, composite
  const ScanResult result = Scan(model.graph, "m", "ascend910b");
  EXPECT_EQ(result.direct, 3);
  EXPECT_EQ(result.count_percent, 100);
  EXPECT_EQ(result.flops_percent, 100);
}

TEST(Scan, AdaptsWhatRunsOnAiCpu) {
  ChainModel model;
  model.Add("Hardmax");
  const ScanResult result = Scan(model.graph, "m", "ascend910b");
  EXPECT_EQ(result.adapt, 1);
  EXPECT_THAT(OpNamed(result, "Hardmax").reason, HasSubstr("AI CPU"));
}

TEST(Scan, AdaptsWhatAFunctionBodyOfDirectOpsGives) {
  EXPECT_TRUE(BodyIsDirect("Gelu"));
  EXPECT_TRUE(BodyIsDirect("SwiGLU"));                  // through Swish, through CastLike
  EXPECT_FALSE(BodyIsDirect("DynamicQuantizeLinear"));  // QuantizeLinear has no body
  EXPECT_FALSE(BodyIsDirect("RMSNormalization"));       // Size runs on the host
  EXPECT_FALSE(BodyIsDirect("IsNaN"));
  ChainModel model;
  model.Add("CastLike");
  model.Add("IsNaN");
  const ScanResult result = Scan(model.graph, "m", "ascend910b");
  EXPECT_EQ(OpNamed(result, "CastLike").verdict, Verdict::kAdapt);
  EXPECT_EQ(OpNamed(result, "IsNaN").verdict, Verdict::kCustom);
}

TEST(Scan, AdaptsAnOpsetAboveEighteen) {
  ChainModel model(19);
  model.Add("Relu");
  const ScanResult result = Scan(model.graph, "m", "ascend910b");
  EXPECT_EQ(OpNamed(result, "Relu").verdict, Verdict::kAdapt);
  EXPECT_TRUE(Found(result, "opset-above-18"));
  EXPECT_EQ(Scan(model.graph, "m", "cpu").direct, 1);
}

TEST(Scan, ALimitCountsOnlyForNodesThatHitIt) {
  ChainModel model;
  model.Add("Gather", "", {model.Constant({0, 1})});
  model.Add("Gather", "", {model.Constant({0, -1})});
  model.Add("Reshape", "", {model.Constant({4, -1})});
  const ScanResult result = Scan(model.graph, "m", "ascend910b");
  EXPECT_EQ(result.direct, 2);
  EXPECT_EQ(result.adapt, 1);
  EXPECT_THAT(result.ops.front().reason, HasSubstr("negative indices"));
}

TEST(Scan, ANodeThatCannotWorkIsNotDirect) {
  ChainModel model;
  model.Add("Softmax").attributes.Set("axis", int64_t{99});
  for (const char* target : {"cpu", "ascend910b"}) {
    const ScanResult result = Scan(model.graph, "m", target);
    EXPECT_EQ(result.direct, 0);
    EXPECT_EQ(result.custom, 1);
    EXPECT_THAT(result.ops.front().reason, HasSubstr("axis 99"));
  }
}

TEST(Scan, NamesOpDomainVersionAndNodeOfTheUnknown) {
  for (const char* target : {"cpu", "ascend910b"}) {
    ChainModel model;
    model.Add("Frobnicate", "com.example");
    const ScanResult result = Scan(model.graph, "m", target);
    EXPECT_EQ(result.custom, 1);
    const ScanOp& op = OpNamed(result, "Frobnicate");
    EXPECT_EQ(op.domain, "com.example");
    EXPECT_EQ(op.version, 1);
    EXPECT_THAT(op.nodes, testing::ElementsAre("Frobnicate_0"));
    ASSERT_TRUE(Found(result, "unknown-domain"));
    EXPECT_THAT(result.findings.front().text,
                HasSubstr("op Frobnicate of domain com.example, version 1"));
    EXPECT_TRUE(Found(result, "flops-unknown"));
    EXPECT_EQ(result.flops_percent, result.count_percent);
  }
}

TEST(Scan, CountsNodesOfBranches) {
  ChainModel model;
  Node node;
  node.op = "If";
  node.name = "If_0";
  node.opset = 13;
  node.schema = Registry::Get().Find("", "If", 13);
  node.inputs = {model.graph.AddConstant("yes", Tensor::Scalar(true))};
  for (const char* name : {"then_branch", "else_branch"}) {
    ChainModel inside;
    inside.Add("Relu");
    inside.graph.inputs.clear();
    inside.graph.captures = {0};
    node.branches.push_back({name, std::make_shared<Graph>(inside.graph), {model.graph.inputs[0]}});
  }
  node.outputs = {model.graph.AddValue("y")};
  model.graph.outputs = node.outputs;
  model.graph.nodes.push_back(node);
  const ScanResult result = Scan(model.graph, "m", "ascend910b");
  EXPECT_EQ(result.direct, 2);  // the two Relu
  EXPECT_EQ(result.adapt, 1);   // If
  EXPECT_TRUE(Found(result, "control-flow"));
}

TEST(Scan, KnowsItsTargets) {
  ChainModel model;
  EXPECT_THAT([&] { Scan(model.graph, "m", "tpu"); }, testing::Throws<Error>());
}

TEST(Scan, FollowsRealModels) {
  const std::string path = Data("derived/rnet_qop_u8s8_pc/model.onnx");
  const ScanResult quantised = Scan(ImportOnnx(path), path, "ascend910b");
  EXPECT_GT(quantised.custom, 0);  // QLinearConv
  const std::string tail = Data("derived/yolox_tail_nms/model.onnx");
  const ScanResult nms = Scan(ImportOnnx(tail), tail, "ascend910b");
  EXPECT_EQ(OpNamed(nms, "NonMaxSuppression").verdict, Verdict::kAdapt);
  EXPECT_TRUE(Found(nms, "data-dependent-shape"));
}

TEST(ModelFiles, FindsExternalData) {
  const std::string path = Data("derived/rnet_extdata/model.onnx");
  EXPECT_THAT(ModelFiles(path),
              testing::ElementsAre(path, Data("derived/rnet_extdata/weights.data")));
  EXPECT_TRUE(Found(Scan(ImportOnnx(path), path, "cpu"), "external-data"));
  EXPECT_THAT(ModelFiles(Data("derived/rnet_fp16/model.onnx")), testing::SizeIs(1));
}

}  // namespace
}  // namespace whimbrel
