// Binding shapes and the fold-while-inferring walk.

#include "whimbrel/graph/specialize.h"

#include <algorithm>

#include <fmt/format.h>

#include "whimbrel/base/config.h"
#include "whimbrel/graph/infer_graph.h"
#include "whimbrel/kernels/evaluate.h"

namespace whimbrel {
namespace {

// What folding may still make and compute in one graph, branches included. A file of 5 KB can ask
// for 200 constants of 256 MiB or for 100 products of 1500 x 1500; what is over is left to the run.
// The base is for made-up values (Expand, ConstantOfShape), the rest lets big files fold theirs.
struct FoldBudget {
  double bytes = 1024.0 * 1024.0 * 1024.0;
  // FLOPs or elements read and written. The reference kernels do 50e6 to 4e9 of them a second.
  double work = 1e9;

  explicit FoldBudget(const Graph& graph) {
    for (const Value& value : graph.values) {
      if (!value.info.constant) continue;
      bytes += 2 * static_cast<double>(value.info.constant->bytes());
      work += static_cast<double>(value.info.constant->bytes());
    }
  }
};

// A full integer value that inference knows, as a tensor.
std::optional<Tensor> TensorOfElements(const ValueInfo& info) {
  if (!info.elements || !AllKnown(*info.elements) || !info.static_shape()) return std::nullopt;
  const Shape shape = ToShape(*info.dims);
  if (shape.elements() != static_cast<int64_t>(info.elements->size())) return std::nullopt;
  if (!IsInteger(info.dtype)) return std::nullopt;
  Tensor tensor = Tensor::Host(info.dtype, shape);
  DispatchType(info.dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      for (size_t i = 0; i < info.elements->size(); ++i)
        tensor.data<T>()[i] = static_cast<T>((*info.elements)[i].value());
    }
  });
  return tensor;
}

double ElementsOf(const ValueInfo& info) {
  double elements = 1;
  for (const Dim& d : *info.dims) elements *= static_cast<double>(d.value());
  return elements;
}

// Of a call whose output shapes are known, in the unit of FoldBudget::work.
double WorkOf(const Node& node, const std::vector<Tensor>& inputs,
              const std::vector<ValueInfo>& inferred) {
  std::vector<const Tensor*> in;
  double elements = 0;
  for (const Tensor& tensor : inputs) {
    in.push_back(tensor.defined() ? &tensor : nullptr);
    if (tensor.defined()) elements += static_cast<double>(tensor.elements());
  }
  std::vector<Tensor> described(inferred.size());
  std::vector<Tensor*> out(inferred.size(), nullptr);
  for (size_t i = 0; i < inferred.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    if (!inferred[i].static_shape() || inferred[i].dtype == DType::kUndefined) return elements;
    elements += ElementsOf(inferred[i]);
    described[i] = Tensor::Described(inferred[i].dtype, ToShape(*inferred[i].dims));
    out[i] = &described[i];
  }
  const OpCall call{.schema = node.schema,
                    .attributes = &node.attributes,
                    .opset = node.opset,
                    .in = in,
                    .out = out,
                    .constant_inputs = ~uint64_t{0}};
  return std::max(elements, CostOf(call).flops);
}

class Folder {
 public:
  Folder(Graph& graph, FoldBudget& budget) : graph_(graph), budget_(budget) {}

  void Run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) Visit(std::move(node));
  }

 private:
  void Visit(Node node) {
    InferNode(graph_, node);
    if (node.op == "If" && node.domain.empty() && TryInline(node)) return;
    if (FoldByElements(node) || FoldByValue(node)) return;
    for (Branch& branch : node.branches) SpecializeBranch(branch);
    graph_.nodes.push_back(std::move(node));
  }

  // Captures that are constant outside become constants inside, so that the branch folds on its
  // own.
  void SpecializeBranch(Branch& branch) {
    if (!branch.refused.empty()) {
      Empty(branch);
      return;
    }
    Graph& inner = *branch.graph;
    std::vector<ValueId> outer;
    std::vector<ValueId> captures;
    for (size_t i = 0; i < branch.outer.size(); ++i) {
      const ValueInfo& info = graph_.value(branch.outer[i]).info;
      inner.value(inner.captures[i]).info = info;
      if (info.constant) continue;
      outer.push_back(branch.outer[i]);
      captures.push_back(inner.captures[i]);
    }
    branch.outer = std::move(outer);
    inner.captures = std::move(captures);
    try {
      Folder(inner, budget_).Run();
    } catch (const Error& e) {
      branch.refused = e.what();
      Empty(branch);
    }
  }

  // A refused branch is half inferred or half folded, and only its message is still needed.
  static void Empty(Branch& branch) {
    branch.graph = std::make_shared<Graph>();
    branch.outer.clear();
  }

  bool TryInline(Node& node) {
    const ValueInfo& condition = graph_.value(node.inputs.at(0)).info;
    if (!condition.constant || condition.constant->elements() != 1) return false;
    const bool taken = ElementAsDouble(*condition.constant, 0) != 0;
    const std::string_view wanted = taken ? "then_branch" : "else_branch";
    const auto branch = std::find_if(node.branches.begin(), node.branches.end(),
                                     [&](const Branch& b) { return b.attribute == wanted; });
    if (branch == node.branches.end()) return false;
    if (!branch->refused.empty())
      throw Error(Code::kInvalidData, branch->refused)
          .WithContext("node " + node.name + ", " + std::string(wanted));
    Graph& inner = *branch->graph;
    std::vector<ValueId> map(inner.values.size(), kNoValue);
    for (size_t i = 0; i < branch->outer.size(); ++i)
      map[static_cast<size_t>(inner.captures[i])] = branch->outer[i];
    // A branch output takes the name and id of the If's output, so that users need no change.
    std::vector<std::pair<ValueId, ValueId>>
        copies;  // outer output <- value that cannot be renamed
    for (size_t i = 0; i < node.outputs.size() && i < inner.outputs.size(); ++i) {
      ValueId& slot = map[static_cast<size_t>(inner.outputs[i])];
      const bool made_inside = slot == kNoValue && !inner.is_constant(inner.outputs[i]);
      if (made_inside && node.outputs[i] != kNoValue) {
        slot = node.outputs[i];
      } else {
        copies.emplace_back(node.outputs[i], inner.outputs[i]);
      }
    }
    const auto translate = [&](ValueId id) {
      if (id == kNoValue) return kNoValue;
      ValueId& slot = map[static_cast<size_t>(id)];
      if (slot == kNoValue) {
        Value value = inner.value(id);
        value.name = node.name + "/" + value.name;
        graph_.values.push_back(std::move(value));
        slot = static_cast<ValueId>(graph_.values.size() - 1);
      }
      return slot;
    };
    for (Node& inside : inner.nodes) {
      Node moved = std::move(inside);
      for (ValueId& id : moved.inputs) id = translate(id);
      for (ValueId& id : moved.outputs) id = translate(id);
      for (Branch& b : moved.branches) {
        for (ValueId& id : b.outer) id = translate(id);
      }
      moved.name = node.name + "/" + moved.name;
      for (std::string& origin : moved.origins) origin = node.name + "/" + origin;
      Visit(std::move(moved));
    }
    for (const auto& [output, source] : copies) {
      if (output == kNoValue) continue;
      Node identity;
      identity.name = node.name + "/" + graph_.value(output).name;
      identity.op = "Identity";
      identity.opset = node.opset;
      identity.inputs = {translate(source)};
      identity.outputs = {output};
      identity.schema = Registry::Get().Find("", "Identity", node.opset);
      identity.origins = {node.name};
      Visit(std::move(identity));
    }
    return true;
  }

  bool FoldByElements(const Node& node) {
    std::vector<std::pair<ValueId, Tensor>> values;
    for (ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      const ValueInfo& info = graph_.value(id).info;
      if (info.constant) continue;
      auto tensor = TensorOfElements(info);
      if (!tensor) return false;
      values.emplace_back(id, std::move(*tensor));
    }
    for (auto& [id, tensor] : values)
      graph_.value(id).info.constant = std::make_shared<const Tensor>(std::move(tensor));
    return true;
  }

  bool FoldByValue(const Node& node) {
    if (node.schema == nullptr || !node.branches.empty()) return false;
    std::vector<Tensor> inputs;
    for (ValueId id : node.inputs) {
      if (id == kNoValue) {
        inputs.emplace_back();
      } else if (graph_.is_constant(id)) {
        inputs.push_back(*graph_.value(id).info.constant);
      } else {
        return false;
      }
    }
    if (Registry::Get().Reference(node.domain, node.op) == nullptr) return false;
    std::vector<ValueInfo> inferred;
    double bytes = 0;
    for (ValueId id : node.outputs) {
      inferred.push_back(id == kNoValue ? ValueInfo{} : graph_.value(id).info);
      if (id != kNoValue && inferred.back().static_shape())
        bytes += ElementsOf(inferred.back()) * static_cast<double>(ItemSize(inferred.back().dtype));
    }
    if (bytes > budget_.bytes) return false;  // before WorkOf, which needs a shape that can be
    const double work = WorkOf(node, inputs, inferred);
    if (work > budget_.work) return false;
    budget_.work -= work;
    std::vector<Tensor> outputs;
    try {
      outputs = EvaluateReference({.schema = node.schema,
                                   .attributes = &node.attributes,
                                   .opset = node.opset,
                                   .inputs = inputs,
                                   .constant_inputs = ~uint64_t{0},
                                   .outputs = node.outputs.size(),
                                   .inferred = &inferred},
                                  InlineStream());
    } catch (const Error& e) {
      throw OfModel(e).WithContext(fmt::format("node {} ({})", node.name, node.op));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      ValueInfo& info = graph_.value(node.outputs[i]).info;
      info = {};
      info.dtype = outputs[i].dtype();
      info.dims = ToDims(outputs[i].shape());
      budget_.bytes -= static_cast<double>(outputs[i].bytes());
      info.constant = std::make_shared<const Tensor>(std::move(outputs[i]));
    }
    return true;
  }

  Graph& graph_;
  FoldBudget& budget_;
};

}  // namespace

void BindInputShapes(Graph& graph, const std::vector<InputShape>& shapes) {
  std::map<std::string, int64_t> symbols;
  for (const InputShape& given : shapes) {
    const auto it = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                 [&](ValueId id) { return graph.value(id).name == given.name; });
    if (it == graph.inputs.end()) {
      std::vector<std::string_view> names;
      std::string list;
      for (ValueId id : graph.inputs) {
        names.push_back(graph.value(id).name);
        list += (list.empty() ? "" : ", ") + graph.value(id).name;
      }
      const auto near = NearestWord(given.name, names);
      throw Error(Code::kInvalidArgument,
                  fmt::format("the model has no input {}; its inputs are {}", given.name, list),
                  near.empty() ? "" : fmt::format("did you mean {}?", near));
    }
    ValueInfo& info = graph.value(*it).info;
    if (info.dims) {
      if (info.dims->size() != static_cast<size_t>(given.shape.rank())) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("input {} has rank {} {}, the shape given is {}", given.name,
                                info.dims->size(), ToString(*info.dims), ToString(given.shape)));
      }
      for (int d = 0; d < given.shape.rank(); ++d) {
        const Dim& dim = (*info.dims)[static_cast<size_t>(d)];
        if (dim.known() && dim.value() != given.shape[d]) {
          throw Error(Code::kInvalidArgument,
                      fmt::format("input {}: dimension {} is {} in the model, {} was given",
                                  given.name, d, dim.value(), given.shape[d]));
        }
        if (dim.known() || dim.text().empty()) continue;
        const auto [it_symbol, added] = symbols.emplace(dim.text(), given.shape[d]);
        if (!added && it_symbol->second != given.shape[d]) {
          throw Error(Code::kInvalidArgument,
                      fmt::format("input {}: dimension {} ({}) would be {}, but {} is {} already",
                                  given.name, d, dim.text(), given.shape[d], dim.text(),
                                  it_symbol->second));
        }
      }
    }
    info.dims = ToDims(given.shape);
  }
  // A symbol that one input settled is settled for the inputs that were not given.
  for (ValueId id : graph.inputs) {
    ValueInfo& info = graph.value(id).info;
    if (!info.dims) continue;
    for (Dim& dim : *info.dims) {
      if (dim.known() || dim.text().empty()) continue;
      const auto it = symbols.find(dim.text());
      if (it != symbols.end()) dim = Dim(it->second);
    }
  }
}

std::vector<std::string> BindOpenDimsToOne(Graph& graph) {
  std::vector<std::string> assumed;
  for (ValueId id : graph.inputs) {
    Value& value = graph.value(id);
    if (!value.info.dims)
      throw Error(Code::kInvalidArgument,
                  fmt::format("input {} has no rank in the model", value.name),
                  fmt::format("give --shape {}:DIMS", value.name));
    for (size_t d = 0; d < value.info.dims->size(); ++d) {
      Dim& dim = (*value.info.dims)[d];
      if (dim.known()) continue;
      assumed.push_back(fmt::format("{}: dim {} ({}) = 1", value.name, d, ToString(dim)));
      dim = Dim(1);
    }
  }
  return assumed;
}

void SpecializeGraph(Graph& graph) {
  FoldBudget budget(graph);
  Folder(graph, budget).Run();
  RemoveUnused(graph);
  VerifyGraph(graph, "specialize");
}

}  // namespace whimbrel
