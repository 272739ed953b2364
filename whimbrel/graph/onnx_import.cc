// ONNX import: protobuf message to Graph, names to value ids, branches with their captures.

#include "whimbrel/graph/onnx_import.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include "whimbrel/base/file.h"
#include "whimbrel/tensor/onnx.pb.h"
#include "whimbrel/tensor/tensor_proto.h"

namespace whimbrel {
namespace {

constexpr int kOldestOpset = 7;

std::string CleanDomain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

class GraphImporter {
 public:
  GraphImporter(const onnx::ModelProto& model, const ExternalDataContext& external,
                const ImportLimits& limits, const std::map<std::string, int, std::less<>>& opsets,
                GraphImporter* parent, int depth, int* node_budget)
      : model_(model),
        external_(external),
        limits_(limits),
        opsets_(opsets),
        parent_(parent),
        depth_(depth),
        node_budget_(node_budget) {
    if (depth_ > limits_.recursion) {
      throw Error(Code::kInvalidData,
                  fmt::format("graphs are nested deeper than {}", limits_.recursion));
    }
  }

  Graph Import(const onnx::GraphProto& proto) {
    graph_.name = proto.name();
    graph_.opsets = opsets_;
    ReadInitializers(proto);
    ReadInputs(proto);
    for (size_t index : NodeOrder(proto)) ReadNode(proto.node(static_cast<int>(index)), index);
    for (const onnx::ValueInfoProto& output : proto.output()) {
      const ValueId id = Resolve(output.name());
      if (id == kNoValue) {
        throw Error(Code::kInvalidData,
                    fmt::format("graph output {} is made by no node", output.name()));
      }
      graph_.outputs.push_back(id);
    }
    return std::move(graph_);
  }

  // Values of the enclosing graph that the imported branch uses, matching graph_.captures.
  std::vector<ValueId> outer;

 private:
  void ReadInitializers(const onnx::GraphProto& proto) {
    for (const onnx::TensorProto& tensor : proto.initializer()) {
      if (tensor.name().empty()) throw Error(Code::kInvalidData, "an initializer has no name");
      Define(tensor.name(), graph_.AddConstant(tensor.name(), TensorFromProto(tensor, external_)));
    }
    if (proto.sparse_initializer_size() > 0) {
      throw Error(Code::kUnsupported,
                  fmt::format("sparse initializer {} is not taken",
                              proto.sparse_initializer(0).values().name()),
                  "store it as a dense initializer");
    }
  }

  void ReadInputs(const onnx::GraphProto& proto) {
    for (const onnx::ValueInfoProto& input : proto.input()) {
      const auto known = names_.find(input.name());
      if (known != names_.end() && graph_.is_constant(known->second))
        continue;  // default value: an initializer
      const ValueId id = graph_.AddValue(input.name(), ReadType(input));
      Define(input.name(), id);
      graph_.inputs.push_back(id);
    }
  }

  static ValueInfo ReadType(const onnx::ValueInfoProto& proto) {
    ValueInfo info;
    const onnx::TypeProto& type = proto.type();
    if (!type.has_tensor_type()) {
      throw Error(
          Code::kUnsupported,
          fmt::format("input {} is no tensor (sequence, map, optional or untyped)", proto.name()));
    }
    const int elem = type.tensor_type().elem_type();
    const auto dtype = elem > 0 && elem <= static_cast<int>(DType::kBFloat16)
                           ? static_cast<DType>(elem)
                           : DType::kUndefined;
    if (ItemSize(dtype) == 0) {
      throw Error(Code::kUnsupported,
                  fmt::format("input {} has element type {}, which is not taken", proto.name(),
                              onnx::TensorProto_DataType_IsValid(elem)
                                  ? onnx::TensorProto_DataType_Name(
                                        static_cast<onnx::TensorProto_DataType>(elem))
                                  : std::to_string(elem)));
    }
    info.dtype = dtype;
    if (type.tensor_type().has_shape()) {
      Dims dims;
      for (const auto& dim : type.tensor_type().shape().dim()) {
        if (dim.has_dim_value()) {
          dims.push_back(dim.dim_value() < 0 ? Dim() : Dim(dim.dim_value()));
        } else if (dim.has_dim_param() && !dim.dim_param().empty() && dim.dim_param() != "?") {
          dims.push_back(Dim::Symbol(dim.dim_param()));
        } else {
          dims.emplace_back();
        }
      }
      if (dims.size() > static_cast<size_t>(kMaxRank)) {
        throw Error(Code::kUnsupported, fmt::format("input {} has rank {}, at most {} is taken",
                                                    proto.name(), dims.size(), kMaxRank));
      }
      info.dims = std::move(dims);
    }
    return info;
  }

  // Models ought to list nodes in order of use; some do not, and a cycle must be told from that.
  static std::vector<size_t> NodeOrder(const onnx::GraphProto& proto) {
    const auto count = static_cast<size_t>(proto.node_size());
    std::unordered_map<std::string, size_t> maker;
    for (size_t n = 0; n < count; ++n) {
      for (const std::string& name : proto.node(static_cast<int>(n)).output()) {
        if (!name.empty()) maker.emplace(name, n);
      }
    }
    std::vector<std::vector<size_t>> users(count);
    std::vector<int> waiting(count, 0);
    const auto depend = [&](size_t user, const std::string& name) {
      const auto it = maker.find(name);
      if (it == maker.end() || it->second == user) {
        if (it != maker.end()) {
          const auto& node = proto.node(static_cast<int>(user));
          throw Error(Code::kInvalidData,
                      fmt::format("node {} ({}) uses its own output {}",
                                  node.name().empty() ? std::to_string(user) : node.name(),
                                  node.op_type(), name));
        }
        return;
      }
      users[it->second].push_back(user);
      ++waiting[user];
    };
    for (size_t n = 0; n < count; ++n) {
      for (const std::string& name : proto.node(static_cast<int>(n)).input()) {
        if (!name.empty()) depend(n, name);
      }
      std::unordered_set<std::string> outer_names;
      for (const auto& attribute : proto.node(static_cast<int>(n)).attribute()) {
        if (attribute.has_g()) CollectNames(attribute.g(), 0, &outer_names);
      }
      for (const std::string& name : outer_names) {
        if (maker.count(name) != 0 && maker[name] != n) depend(n, name);
      }
    }
    std::vector<size_t> order;
    std::vector<size_t> ready;
    for (size_t n = count; n-- > 0;) {
      if (waiting[n] == 0) ready.push_back(n);
    }
    // A heap keeps the model's own order wherever it is valid.
    std::make_heap(ready.begin(), ready.end(), std::greater<>());
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), std::greater<>());
      const size_t n = ready.back();
      ready.pop_back();
      order.push_back(n);
      for (size_t user : users[n]) {
        if (--waiting[user] > 0) continue;
        ready.push_back(user);
        std::push_heap(ready.begin(), ready.end(), std::greater<>());
      }
    }
    if (order.size() != count) {
      // A node that waits may only stand behind the cycle; walking back along what it waits for
      // ends inside.
      auto stuck = static_cast<size_t>(
          std::find_if(waiting.begin(), waiting.end(), [](int w) { return w > 0; }) -
          waiting.begin());
      std::vector<size_t> waits_for(count, stuck);
      for (size_t n = 0; n < count; ++n) {
        for (size_t user : users[n]) {
          if (waiting[n] > 0) waits_for[user] = n;
        }
      }
      for (size_t steps = 0; steps < count; ++steps) stuck = waits_for[stuck];
      const auto& node = proto.node(static_cast<int>(stuck));
      throw Error(
          Code::kInvalidData,
          fmt::format("the graph has a cycle through node {} ({})",
                      node.name().empty() ? std::to_string(stuck) : node.name(), node.op_type()));
    }
    return order;
  }

  // Names that a branch may take from outside: everything it mentions.
  static void CollectNames(const onnx::GraphProto& graph, int depth,
                           std::unordered_set<std::string>* names) {
    if (depth > 100) return;  // the import itself refuses such depth with a message
    for (const auto& node : graph.node()) {
      for (const std::string& name : node.input()) names->insert(name);
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) CollectNames(attribute.g(), depth + 1, names);
      }
    }
    for (const auto& output : graph.output()) names->insert(output.name());
  }

  void ReadNode(const onnx::NodeProto& proto, size_t index) {
    if (--*node_budget_ < 0)
      throw Error(Code::kInvalidData,
                  fmt::format("the model has more than {} nodes", limits_.nodes));
    Node node;
    node.op = proto.op_type();
    node.domain = CleanDomain(proto.domain());
    node.name =
        UniqueName(proto.name().empty() ? fmt::format("{}_{}", node.op, index) : proto.name());
    node.origins = {node.name};
    if (node.op.empty())
      throw Error(Code::kInvalidData, fmt::format("node {} has no op type", node.name));
    const auto opset = opsets_.find(node.domain);
    if (opset == opsets_.end() && node.domain.empty()) {
      throw Error(
          Code::kInvalidData,
          fmt::format("node {} uses ai.onnx, but the model imports no opset of it", node.name));
    }
    node.opset = opset == opsets_.end() ? 1 : opset->second;
    const bool newer = node.domain.empty() && node.opset > kNewestOpset;
    node.schema = newer ? nullptr : Registry::Get().Find(node.domain, node.op, node.opset);
    for (const std::string& name : proto.input()) {
      const ValueId id = name.empty() ? kNoValue : Resolve(name);
      if (!name.empty() && id == kNoValue) {
        throw Error(Code::kInvalidData, fmt::format("node {} ({}) uses {}, which nobody makes",
                                                    node.name, node.op, name));
      }
      node.inputs.push_back(id);
    }
    while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    for (const onnx::AttributeProto& attribute : proto.attribute()) ReadAttribute(attribute, node);
    for (const std::string& name : proto.output()) {
      if (name.empty()) {
        const size_t i = node.outputs.size();
        node.outputs.push_back(
            AlwaysMade(node, i)
                ? graph_.AddValue(fmt::format("{}/{}", node.name, node.schema->outputs[i].name))
                : kNoValue);
        continue;
      }
      const ValueId id = graph_.AddValue(name);
      Define(name, id);
      node.outputs.push_back(id);
    }
    // The count of Split's outputs has a meaning, named or not.
    const bool counted = node.schema != nullptr && !node.schema->outputs.empty() &&
                         node.schema->outputs.back().variadic;
    while (!counted && !node.outputs.empty() && node.outputs.back() == kNoValue)
      node.outputs.pop_back();
    graph_.nodes.push_back(std::move(node));
  }

  void ReadAttribute(const onnx::AttributeProto& a, Node& node) {
    const auto context = [&] {
      return fmt::format("node {} ({}), attribute {}", node.name, node.op, a.name());
    };
    if (!a.ref_attr_name().empty())
      throw Error(Code::kInvalidData,
                  context() + ": refers to a function's attribute outside a function");
    // IR below 2 left `type` out; then the field that is set tells.
    auto type = a.type();
    if (type == onnx::AttributeProto::UNDEFINED) {
      if (a.has_f())
        type = onnx::AttributeProto::FLOAT;
      else if (a.has_i())
        type = onnx::AttributeProto::INT;
      else if (a.has_s())
        type = onnx::AttributeProto::STRING;
      else if (a.has_t())
        type = onnx::AttributeProto::TENSOR;
      else if (a.has_g())
        type = onnx::AttributeProto::GRAPH;
      else if (a.floats_size() > 0)
        type = onnx::AttributeProto::FLOATS;
      else if (a.ints_size() > 0)
        type = onnx::AttributeProto::INTS;
      else if (a.strings_size() > 0)
        type = onnx::AttributeProto::STRINGS;
    }
    switch (type) {
      case onnx::AttributeProto::FLOAT:
        node.attributes.Set(a.name(), a.f());
        break;
      case onnx::AttributeProto::INT:
        node.attributes.Set(a.name(), int64_t{a.i()});
        break;
      case onnx::AttributeProto::STRING:
        node.attributes.Set(a.name(), a.s());
        break;
      case onnx::AttributeProto::FLOATS:
        node.attributes.Set(a.name(), std::vector<float>(a.floats().begin(), a.floats().end()));
        break;
      case onnx::AttributeProto::INTS:
        node.attributes.Set(a.name(), std::vector<int64_t>(a.ints().begin(), a.ints().end()));
        break;
      case onnx::AttributeProto::STRINGS:
        node.attributes.Set(a.name(),
                            std::vector<std::string>(a.strings().begin(), a.strings().end()));
        break;
      case onnx::AttributeProto::TENSOR:
        try {
          node.attributes.Set(a.name(), TensorFromProto(a.t(), external_));
        } catch (const Error& e) {
          throw e.WithContext(context());
        }
        break;
      case onnx::AttributeProto::GRAPH: {
        GraphImporter importer(model_, external_, limits_, opsets_, this, depth_ + 1, node_budget_);
        Branch branch;
        branch.attribute = a.name();
        branch.graph = std::make_shared<Graph>(importer.Import(a.g()));
        branch.outer = std::move(importer.outer);
        node.branches.push_back(std::move(branch));
        break;
      }
      default:
        throw Error(Code::kUnsupported,
                    fmt::format("{}: attributes of kind {} are not taken", context(),
                                onnx::AttributeProto_AttributeType_Name(type)));
    }
  }

  void Define(const std::string& name, ValueId id) {
    if (!names_.emplace(name, id).second)
      throw Error(Code::kInvalidData, fmt::format("value {} is defined twice", name));
  }

  ValueId Resolve(const std::string& name) {
    const auto own = names_.find(name);
    if (own != names_.end()) return own->second;
    if (parent_ == nullptr) return kNoValue;
    const ValueId up = parent_->Resolve(name);
    if (up == kNoValue) return kNoValue;
    const ValueId id = graph_.AddValue(name, parent_->graph_.value(up).info);
    graph_.captures.push_back(id);
    outer.push_back(up);
    names_.emplace(name, id);
    return id;
  }

  std::string UniqueName(std::string name) {
    std::string candidate = name;
    for (int i = 2; !node_names_.insert(candidate).second; ++i)
      candidate = fmt::format("{}_{}", name, i);
    return candidate;
  }

  const onnx::ModelProto& model_;
  const ExternalDataContext& external_;
  const ImportLimits& limits_;
  const std::map<std::string, int, std::less<>>& opsets_;
  GraphImporter* parent_;
  int depth_;
  int* node_budget_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> names_;
  std::unordered_set<std::string> node_names_;
};

std::map<std::string, int, std::less<>> ReadOpsets(const onnx::ModelProto& model) {
  std::map<std::string, int, std::less<>> opsets;
  for (const auto& import : model.opset_import()) {
    opsets[CleanDomain(import.domain())] =
        static_cast<int>(std::clamp<int64_t>(import.version(), 0, INT_MAX));
  }
  const auto standard = opsets.find("");
  if (standard != opsets.end() && standard->second < kOldestOpset) {
    throw Error(Code::kUnsupported,
                fmt::format("opset {} of ai.onnx is below {}", standard->second, kOldestOpset),
                "convert the model with onnx.version_converter.convert_version(model, 13)");
  }
  return opsets;
}

}  // namespace

Graph ImportOnnxBytes(std::span<const std::byte> bytes, const std::string& source,
                      const std::string& directory, const ImportLimits& limits) {
  if (bytes.empty())
    throw Error(Code::kInvalidData, source + " is empty", "expected an ONNX model file");
  if (bytes.size() >= limits.model_bytes) {
    throw Error(Code::kInvalidData,
                fmt::format("{} has {} bytes, a protobuf message has less than {}", source,
                            bytes.size(), limits.model_bytes),
                "store weights as external data (onnx.save(..., save_as_external_data=True))");
  }
  onnx::ModelProto model;
  {
    const google::protobuf::LogSilencer silencer;  // protobuf would print its own words to stderr
    google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                  static_cast<int>(bytes.size()));
    stream.SetTotalBytesLimit(INT_MAX);
    // A graph in a graph costs three messages (node, attribute, graph).
    stream.SetRecursionLimit(3 * (limits.recursion + 1) + 20);
    if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
      throw Error(Code::kInvalidData,
                  fmt::format("{} is no ONNX model: the protobuf message is damaged, cut off or "
                              "nested deeper than {} graphs ({} bytes)",
                              source, limits.recursion, bytes.size()),
                  "check the file with onnx.checker.check_model");
    }
  }
  if (!model.has_graph()) {
    throw Error(Code::kInvalidData, fmt::format("{} is no ONNX model: it holds no graph", source),
                "expected a ModelProto");
  }
  const ExternalDataContext external{directory};
  try {
    const auto opsets = ReadOpsets(model);
    int node_budget = limits.nodes;
    GraphImporter importer(model, external, limits, opsets, nullptr, 0, &node_budget);
    Graph graph = importer.Import(model.graph());
    graph.ir_version = model.ir_version();
    graph.producer = model.producer_name() +
                     (model.producer_version().empty() ? "" : " " + model.producer_version());
    if (graph.outputs.empty()) throw Error(Code::kInvalidData, "the graph has no outputs");
    VerifyGraph(graph, "import");
    return graph;
  } catch (const Error& e) {
    throw e.WithContext(source);
  }
}

Graph ImportOnnx(const std::string& path, const ImportLimits& limits) {
  const auto file = MappedFile::Open(path);
  return ImportOnnxBytes(file->bytes(), path, ParentDirectory(path), limits);
}

namespace {

void CollectUnknown(const Graph& graph, std::vector<std::string>* unknown) {
  for (const Node& node : graph.nodes) {
    if (node.schema == nullptr) {
      unknown->push_back(fmt::format("op {} of domain {} at version {} (node {})", node.op,
                                     node.domain.empty() ? "ai.onnx" : node.domain, node.opset,
                                     node.name));
    }
    for (const Branch& branch : node.branches) CollectUnknown(*branch.graph, unknown);
  }
}

}  // namespace

void RequireKnownOps(const Graph& graph) {
  const auto standard = graph.opsets.find("");
  if (standard != graph.opsets.end() && standard->second > kNewestOpset) {
    throw Error(Code::kUnsupported,
                fmt::format("opset {} of ai.onnx is above {}, the newest that is known",
                            standard->second, kNewestOpset),
                "export the model for an older opset, or convert it with "
                "onnx.version_converter.convert_version(model, 28)");
  }
  std::vector<std::string> unknown;
  CollectUnknown(graph, &unknown);
  if (unknown.empty()) return;
  throw Error(
      Code::kUnsupported,
      fmt::format(
          "{} is not known{}", unknown.front(),
          unknown.size() > 1 ? fmt::format("; {} more nodes neither", unknown.size() - 1) : ""),
      "whimbrel scan MODEL lists all of them with what each would take");
}

}  // namespace whimbrel
