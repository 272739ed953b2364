// Verdicts counted over nodes and FLOPs.

#include "whimbrel/migrate/scan.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "whimbrel/migrate/scan_findings.h"
#include "whimbrel/migrate/scan_rules.h"

namespace whimbrel {
namespace {

constexpr size_t kNamedNodes = 5;

struct Target {
  std::string_view name;
  std::string_view soc;
  NodeVerdict (*judge)(const Graph&, const Node&);
};
constexpr std::array kTargets{Target{"cpu", "", JudgeForCpu},
                              Target{"ascend910b", "Ascend910B", JudgeForAscend910b}};

const Target& FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return target;
  }
  throw Error(Code::kInvalidArgument, fmt::format("there is no scan target {}", name),
              fmt::format("targets: {}", fmt::join(ScanTargets(), ", ")));
}

// Nodes that cannot work, with why.
using Contradictions = std::map<std::string, std::string>;

// Infers node by node, so that one node that cannot be inferred hides no other. Returns the first
// error.
std::string InferWhatCanBe(Graph& graph, Contradictions* contradictions = nullptr) {
  std::string first;
  for (Node& node : graph.nodes) {
    try {
      InferNode(graph, node);
    } catch (const Error& e) {
      if (first.empty()) first = e.what();
      if (contradictions != nullptr) contradictions->emplace(node.name, e.what());
      for (const ValueId id : node.outputs) {
        if (id != kNoValue) graph.value(id).info = {};
      }
    }
  }
  return first;
}

NodeVerdict JudgeSafely(const Target& target, const Graph& graph, const Node& node) {
  try {
    return target.judge(graph, node);
  } catch (const Error& e) {
    return {Verdict::kCustom, e.what(), "days"};
  }
}

struct Tally {
  std::map<std::string, Verdict> by_node;  // "If_3/Conv_1"
  std::map<std::tuple<std::string, std::string, Verdict, std::string>, ScanOp> ops;
};

void JudgeGraph(const Target& target, const Graph& graph, const std::string& prefix,
                const Contradictions& contradictions, Tally& tally) {
  for (const Node& node : graph.nodes) {
    const std::string name = prefix + node.name;
    const auto wrong = contradictions.find(name);
    const NodeVerdict verdict = wrong == contradictions.end()
                                    ? JudgeSafely(target, graph, node)
                                    : NodeVerdict{Verdict::kCustom, wrong->second, "fix the model"};
    tally.by_node[name] = verdict.verdict;
    ScanOp& op =
        tally.ops[{std::string(DomainName(node)), node.op, verdict.verdict, verdict.reason}];
    op.op = node.op;
    op.domain = DomainName(node);
    op.version = node.opset;
    op.verdict = verdict.verdict;
    op.reason = verdict.reason;
    op.effort = verdict.effort;
    ++op.count;
    if (op.nodes.size() < kNamedNodes) op.nodes.push_back(name);
    for (const Branch& branch : node.branches)
      JudgeGraph(target, *branch.graph, name + "/", contradictions, tally);
  }
}

// The cost of a node of a specialised graph; 0 where a shape is known at run time only.
double FlopsOf(const Graph& graph, const Node& node) {
  std::vector<Tensor> tensors(node.inputs.size() + node.outputs.size());
  std::vector<const Tensor*> in(node.inputs.size(), nullptr);
  std::vector<Tensor*> out(node.outputs.size(), nullptr);
  OpCall call{.schema = node.schema, .attributes = &node.attributes, .opset = node.opset};
  const auto describe = [&](ValueId id, Tensor& tensor) {
    const ValueInfo& info = graph.value(id).info;
    if (info.constant) {
      tensor = *info.constant;
    } else if (info.static_shape() && info.dtype != DType::kUndefined) {
      tensor = Tensor::Described(info.dtype, ToShape(*info.dims));
    } else {
      return false;
    }
    return true;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    if (!describe(node.inputs[i], tensors[i])) return 0;
    in[i] = &tensors[i];
    if (graph.is_constant(node.inputs[i]) && i < 64) call.constant_inputs |= uint64_t{1} << i;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Tensor& tensor = tensors[node.inputs.size() + i];
    if (node.outputs[i] == kNoValue) continue;
    if (!describe(node.outputs[i], tensor)) return 0;
    out[i] = &tensor;
  }
  call.in = in;
  call.out = out;
  return CostOf(call).flops;
}

struct FlopShares {
  double direct = 0;
  double all = 0;
};

void AddFlops(const Graph& graph, const std::string& prefix, const Tally& tally,
              FlopShares& shares) {
  for (const Node& node : graph.nodes) {
    if (node.schema == nullptr) continue;
    for (const Branch& branch : node.branches) {
      if (branch.refused.empty()) AddFlops(*branch.graph, prefix + node.name + "/", tally, shares);
    }
    if (!node.branches.empty()) continue;
    const double flops = FlopsOf(graph, node);
    const std::string origin = prefix + (node.origins.empty() ? node.name : node.origins.front());
    const auto verdict = tally.by_node.find(origin);
    shares.all += flops;
    if (verdict != tally.by_node.end() && verdict->second == Verdict::kDirect)
      shares.direct += flops;
  }
}

void CountNodes(const Tally& tally, ScanResult& result) {
  result.ops.reserve(tally.ops.size());
  for (const auto& [key, op] : tally.ops) {
    result.ops.push_back(op);
    (op.verdict == Verdict::kDirect  ? result.direct
     : op.verdict == Verdict::kAdapt ? result.adapt
                                     : result.custom) += op.count;
  }
  std::stable_sort(result.ops.begin(), result.ops.end(), [](const ScanOp& a, const ScanOp& b) {
    return std::tuple(b.verdict, b.count) < std::tuple(a.verdict, a.count);
  });
  const int64_t all = result.direct + result.adapt + result.custom;
  result.count_percent =
      all == 0 ? 100 : 100 * static_cast<double>(result.direct) / static_cast<double>(all);
}

void CountFlops(const Graph& imported, const std::vector<InputShape>& shapes, const Tally& tally,
                ScanResult& result) {
  result.flops_percent = result.count_percent;
  try {
    const CompiledGraph compiled =
        CompileGraph(imported, {.shapes = shapes, .switches = {}, .optimize = false});
    result.assumed = compiled.assumed;
    FlopShares shares;
    AddFlops(*compiled.graph, "", tally, shares);
    if (shares.all > 0) result.flops_percent = 100 * shares.direct / shares.all;
  } catch (const Error& e) {
    result.findings.push_back(
        {"flops-unknown",
         fmt::format("FLOPs cannot be counted, flops_percent repeats count_percent: {}", e.what()),
         "model"});
  }
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kDirect:
      return "direct";
    case Verdict::kAdapt:
      return "adapt";
    case Verdict::kCustom:
      break;
  }
  return "custom";
}

std::vector<std::string_view> ScanTargets() {
  std::vector<std::string_view> names;
  names.reserve(kTargets.size());
  for (const Target& target : kTargets) names.push_back(target.name);
  return names;
}

ScanResult Scan(const Graph& imported, const std::string& model, std::string_view target_name,
                const std::vector<InputShape>& shapes) {
  const Target& target = FindTarget(target_name);
  ScanResult result;
  result.model = model;
  result.target = target.name;
  result.soc = target.soc;
  Graph bound = CloneGraph(imported);
  BindInputShapes(bound, shapes);
  std::string trouble;
  try {
    BindOpenDimsToOne(bound);
  } catch (const Error& e) {
    trouble = e.what();  // an input without a rank
  }
  // With open dims left open: what fails now fails for every shape.
  Contradictions contradictions;
  Graph open = CloneGraph(imported);
  BindInputShapes(open, shapes);
  InferWhatCanBe(open, &contradictions);
  const std::string inference = InferWhatCanBe(bound);
  if (trouble.empty()) trouble = inference;
  Tally tally;
  JudgeGraph(target, bound, "", contradictions, tally);
  CountNodes(tally, result);
  result.findings = FindFindings(imported, bound, model, target.name);
  if (!trouble.empty()) result.findings.push_back({"not-inferred", trouble, "model"});
  const auto opset = imported.opsets.find("");
  if (opset != imported.opsets.end() && opset->second > kNewestOpset) {
    result.findings.push_back(
        {"opset-too-new",
         fmt::format("opset {} of ai.onnx is above {}, the newest that is known: its ops may mean "
                     "something else",
                     opset->second, kNewestOpset),
         "model"});
  }
  CountFlops(imported, shapes, tally, result);
  return result;
}

}  // namespace whimbrel
