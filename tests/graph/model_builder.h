// model_builder: ONNX models from the protobuf classes in a few lines, and the ways to run them.

#pragma once

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "whimbrel/graph/graph.h"
#include "whimbrel/kernels/evaluate.h"
#include "whimbrel/tensor/onnx.pb.h"

namespace whimbrel {

inline onnx::TensorProto ToProto(const std::string& name, const Tensor& tensor) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(static_cast<int>(tensor.dtype()));
  for (int64_t d : tensor.shape().dims()) proto.add_dims(d);
  proto.set_raw_data(tensor.raw(), tensor.bytes());
  return proto;
}

inline onnx::AttributeProto Named(const std::string& name,
                                  onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto a;
  a.set_name(name);
  a.set_type(type);
  return a;
}
inline onnx::AttributeProto AttrInt(const std::string& name, int64_t v) {
  auto a = Named(name, onnx::AttributeProto::INT);
  a.set_i(v);
  return a;
}
inline onnx::AttributeProto AttrFloat(const std::string& name, float v) {
  auto a = Named(name, onnx::AttributeProto::FLOAT);
  a.set_f(v);
  return a;
}
inline onnx::AttributeProto AttrString(const std::string& name, const std::string& v) {
  auto a = Named(name, onnx::AttributeProto::STRING);
  a.set_s(v);
  return a;
}
inline onnx::AttributeProto AttrInts(const std::string& name, const std::vector<int64_t>& v) {
  auto a = Named(name, onnx::AttributeProto::INTS);
  for (int64_t i : v) a.add_ints(i);
  return a;
}
inline onnx::AttributeProto AttrTensor(const std::string& name, const onnx::TensorProto& v) {
  auto a = Named(name, onnx::AttributeProto::TENSOR);
  *a.mutable_t() = v;
  return a;
}
inline onnx::AttributeProto AttrGraph(const std::string& name, const onnx::GraphProto& v) {
  auto a = Named(name, onnx::AttributeProto::GRAPH);
  *a.mutable_g() = v;
  return a;
}

// Fills one GraphProto; also used for branches.
class GraphBuilder {
 public:
  explicit GraphBuilder(onnx::GraphProto* graph) : graph_(graph) { graph_->set_name("g"); }

  // A dim is a number ("3", "-1"), a symbol ("N") or "" for nothing said.
  GraphBuilder& Input(const std::string& name, const std::vector<std::string>& dims,
                      DType type = DType::kFloat) {
    Describe(graph_->add_input(), name, type);
    auto* shape = graph_->mutable_input(graph_->input_size() - 1)
                      ->mutable_type()
                      ->mutable_tensor_type()
                      ->mutable_shape();
    for (const std::string& d : dims) {
      auto* dim = shape->add_dim();
      if (d.empty()) continue;
      if (std::isdigit(static_cast<unsigned char>(d.back())) != 0) {
        dim->set_dim_value(std::stoll(d));
      } else {
        dim->set_dim_param(d);
      }
    }
    return *this;
  }
  GraphBuilder& Input(const std::string& name, const Shape& shape, DType type = DType::kFloat) {
    std::vector<std::string> dims;
    for (int64_t d : shape.dims()) dims.push_back(std::to_string(d));
    return Input(name, dims, type);
  }
  GraphBuilder& Constant(const std::string& name, const Tensor& tensor) {
    *graph_->add_initializer() = ToProto(name, tensor);
    return *this;
  }
  GraphBuilder& Ints(const std::string& name, const std::vector<int64_t>& values) {
    return Constant(name, Tensor::FromValues(Shape{static_cast<int64_t>(values.size())}, values));
  }
  GraphBuilder& Floats(const std::string& name, const Shape& shape, const std::vector<float>& v) {
    return Constant(name, Tensor::FromValues(shape, v));
  }
  GraphBuilder& Node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs,
                     const std::vector<onnx::AttributeProto>& attributes = {},
                     const std::string& domain = "") {
    auto* node = graph_->add_node();
    node->set_op_type(op);
    node->set_name(op + "_" + (outputs.empty() ? "" : outputs[0]));
    node->set_domain(domain);
    for (const auto& i : inputs) node->add_input(i);
    for (const auto& o : outputs) node->add_output(o);
    for (const auto& a : attributes) *node->add_attribute() = a;
    return *this;
  }
  GraphBuilder& Output(const std::string& name, DType type = DType::kFloat) {
    Describe(graph_->add_output(), name, type);
    return *this;
  }

 private:
  static void Describe(onnx::ValueInfoProto* info, const std::string& name, DType type) {
    info->set_name(name);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(type));
  }
  onnx::GraphProto* graph_;
};

class ModelBuilder : public GraphBuilder {
 public:
  explicit ModelBuilder(int opset = 13)
      : ModelBuilder(std::make_unique<onnx::ModelProto>(), opset) {}
  onnx::ModelProto& proto() { return *model_; }
  std::string Bytes() const { return model_->SerializeAsString(); }
  Graph Import(const std::string& directory = "") const;

 private:
  ModelBuilder(std::unique_ptr<onnx::ModelProto> model, int opset)
      : GraphBuilder(model->mutable_graph()), model_(std::move(model)) {
    model_->set_ir_version(8);
    auto* import = model_->add_opset_import();
    import->set_domain("");
    import->set_version(opset);
  }
  std::unique_ptr<onnx::ModelProto> model_;
};

inline Graph ImportText(const std::string& bytes, const std::string& directory = "") {
  return ImportOnnxBytes(std::as_bytes(std::span(bytes)), "model", directory);
}
inline Graph ModelBuilder::Import(const std::string& directory) const {
  return ImportText(Bytes(), directory);
}

// A branch: filled by `fill(GraphBuilder&)`.
template <typename F>
onnx::GraphProto BranchOf(F fill) {
  onnx::GraphProto proto;
  GraphBuilder builder(&proto);
  fill(builder);
  return proto;
}

inline Tensor RandomTensor(const Shape& shape, uint32_t seed, float low = -1, float high = 1) {
  std::mt19937 random(seed);
  Tensor t = Tensor::Host(DType::kFloat, shape);
  for (float& v : t.values<float>())
    v = low + (high - low) * static_cast<float>(random() % 10007) / 10006.0F;
  return t;
}

inline CompileOptions At(std::vector<InputShape> shapes) {
  CompileOptions options;
  options.shapes = std::move(shapes);
  return options;
}

inline Graph Compiled(const Graph& imported, bool optimize = true,
                      const std::vector<InputShape>& shapes = {}) {
  return CloneGraph(
      *CompileGraph(imported, {.shapes = shapes, .switches = {}, .optimize = optimize}).graph);
}

inline std::vector<std::string> OpsOf(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.push_back(node.op);
  return ops;
}

inline std::unique_ptr<Stream> OneThread() {
  return OpenDevice("cpu:0")->CreateStream({.threads = 1});
}

inline std::vector<Tensor> RunPlan(const Graph& compiled, const std::vector<Tensor>& inputs,
                                   bool only_reference = false) {
  Executable executable(std::make_shared<const Graph>(CloneGraph(compiled)), OpenDevice("cpu:0"),
                        {.only_reference = only_reference});
  const auto stream = OneThread();
  executable.Run(*stream, inputs);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < executable.outputs(); ++i)
    outputs.push_back(CopyPlain(executable.output(i)));
  return outputs;
}

// No plan, no shared memory: every node by its reference kernel on tensors of its own.
inline std::vector<Tensor> RunNodeByNode(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::map<ValueId, Tensor> values;
  for (size_t i = 0; i < graph.inputs.size(); ++i) values[graph.inputs[i]] = inputs[i];
  const auto get = [&](ValueId id) {
    if (id == kNoValue) return Tensor();
    return graph.is_constant(id) ? *graph.value(id).info.constant : values.at(id);
  };
  for (const Node& node : graph.nodes) {
    std::vector<Tensor> in;
    uint64_t constant = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      in.push_back(get(node.inputs[i]));
      if (graph.is_constant(node.inputs[i])) constant |= uint64_t{1} << i;
    }
    const auto out = EvaluateReference({.schema = node.schema,
                                        .attributes = &node.attributes,
                                        .opset = node.opset,
                                        .inputs = in,
                                        .constant_inputs = constant,
                                        .outputs = node.outputs.size()},
                                       InlineStream());
    for (size_t i = 0; i < out.size(); ++i) {
      if (node.outputs[i] != kNoValue) values[node.outputs[i]] = out[i];
    }
  }
  std::vector<Tensor> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(get(id));
  return outputs;
}

// |a - b| <= tolerance * max(1, |b|), NaN equals NaN.
inline ::testing::AssertionResult Close(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) {
    return ::testing::AssertionFailure()
           << DTypeName(a.dtype()) << ToString(a.shape()) << " is not " << DTypeName(b.dtype())
           << ToString(b.shape());
  }
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = ElementAsDouble(a, i);
    const double y = ElementAsDouble(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(y)))) {
      return ::testing::AssertionFailure()
             << "element " << i << " of " << ToString(a.shape()) << ": " << x << " against " << y;
    }
  }
  return ::testing::AssertionSuccess();
}

// Rounds of a randomised test: more by hand with WHIMBREL_TEST_ROUNDS.
inline uint32_t Rounds(uint32_t usual) {
  const char* word = std::getenv("WHIMBREL_TEST_ROUNDS");
  return word == nullptr ? usual : static_cast<uint32_t>(std::max(1, std::atoi(word)));
}

template <typename F>
Error ErrorFrom(F action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error came";
  return Error(Code::kOk, "");
}

}  // namespace whimbrel
