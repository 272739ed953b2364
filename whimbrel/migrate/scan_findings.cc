// The findings, one function each.

#include "whimbrel/migrate/scan_findings.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "whimbrel/base/file.h"
#include "whimbrel/migrate/ascend_ops.h"
#include "whimbrel/migrate/model_files.h"
#include "whimbrel/migrate/scan_rules.h"

namespace whimbrel {
namespace {

using Findings = std::vector<ScanFinding>;

// Calls fn(graph, node, "If_3/") for every node, branches included.
template <typename F>
void WalkNodes(const Graph& graph, const std::string& prefix, F& fn) {
  for (const Node& node : graph.nodes) {
    fn(graph, node, prefix);
    for (const Branch& branch : node.branches)
      WalkNodes(*branch.graph, prefix + node.name + "/", fn);
  }
}

void FindUnknown(const Graph& graph, bool ascend, Findings& findings) {
  std::set<std::string> told;
  auto visit = [&](const Graph&, const Node& node, const std::string& prefix) {
    const bool known =
        ascend ? FindAscendOp(DomainName(node), node.op) != nullptr : node.schema != nullptr;
    if (known || !told.insert(std::string(DomainName(node)) + "::" + node.op).second) return;
    const bool domain = ascend ? KnownAscendDomain(DomainName(node)) : node.domain.empty();
    findings.push_back(
        {domain ? "unknown-op" : "unknown-domain",
         fmt::format(
             "op {} of domain {}, version {}, is not known for this target: first at node {}",
             node.op, DomainName(node), node.opset, prefix + node.name),
         prefix + node.name});
  };
  WalkNodes(graph, "", visit);
}

// How often something was met, and where first.
struct Sighting {
  int64_t count = 0;
  std::string first;
};

void FindControlFlow(const Graph& graph, Findings& findings) {
  std::map<std::string, Sighting> seen;
  auto visit = [&](const Graph&, const Node& node, const std::string& prefix) {
    if (!node.domain.empty() || (node.op != "If" && node.op != "Loop" && node.op != "Scan")) return;
    Sighting& sighting = seen[node.op];
    if (sighting.count++ == 0) sighting.first = prefix + node.name;
  };
  WalkNodes(graph, "", visit);
  for (const auto& [op, sighting] : seen) {
    findings.push_back({"control-flow",
                        fmt::format("{} {} nodes decide at run time what is computed; a static "
                                    "graph needs that decided, unrolled or on the host",
                                    sighting.count, op),
                        sighting.first});
  }
}

void FindDynamicDims(const Graph& imported, Findings& findings) {
  for (const ValueId id : imported.inputs) {
    const Value& input = imported.value(id);
    if (!input.info.dims) {
      findings.push_back(
          {"dynamic-dims", "the model gives no rank; --shape names one", input.name});
    } else if (!AllKnown(*input.info.dims)) {
      findings.push_back(
          {"dynamic-dims",
           fmt::format(
               "{} has open dims: give --shape per bucket; scan counts FLOPs with them as 1",
               ToString(*input.info.dims)),
           input.name});
    }
  }
}

void FindOpset(const Graph& imported, Findings& findings) {
  const auto found = imported.opsets.find("");
  if (found != imported.opsets.end() && found->second > kNewestAscendOpset) {
    findings.push_back(
        {"opset-above-18",
         fmt::format(
             "the model uses opset {}, ATC knows up to {}: export it again with an older one",
             found->second, kNewestAscendOpset),
         "model"});
  }
  std::set<std::string> told;
  auto visit = [&](const Graph&, const Node& node, const std::string& prefix) {
    const AscendOp* op = FindAscendOp(DomainName(node), node.op);
    if (op == nullptr || op->last_opset == 0 || node.opset > kNewestAscendOpset) return;
    if (node.opset >= op->first_opset && node.opset <= op->last_opset) return;
    if (!told.insert(node.op).second) return;
    findings.push_back(
        {"opset-range",
         fmt::format(
             "{} is registered for opsets {} to {}, the model uses {}: check the first ATC run",
             node.op, op->first_opset, op->last_opset, node.opset),
         prefix + node.name});
  };
  WalkNodes(imported, "", visit);
}

bool Static(const Graph& graph, const std::vector<ValueId>& ids) {
  return std::all_of(ids.begin(), ids.end(), [&](ValueId id) {
    return id == kNoValue || graph.value(id).info.static_shape();
  });
}

// Nodes whose inputs have known shapes and whose outputs have not.
void FindDataDependent(const Graph& bound, Findings& findings) {
  std::map<std::string, Sighting> seen;
  auto visit = [&](const Graph& graph, const Node& node, const std::string& prefix) {
    if (node.schema == nullptr || !node.branches.empty()) return;
    if (!Static(graph, node.inputs) || Static(graph, node.outputs)) return;
    Sighting& sighting = seen[node.op];
    if (sighting.count++ == 0) sighting.first = prefix + node.name;
  };
  WalkNodes(bound, "", visit);
  for (const auto& [op, sighting] : seen) {
    findings.push_back(
        {"data-dependent-shape",
         fmt::format("{} {} nodes: the shape of the output depends on an input's values",
                     sighting.count, op),
         sighting.first});
  }
}

void FindTypes(const Graph& bound, bool ascend, Findings& findings) {
  int64_t doubles = 0;
  int64_t strings = 0;
  std::string first_double;
  std::string first_string;
  auto visit = [&](const Graph& graph, const Node& node, const std::string& prefix) {
    bool has_double = false;
    bool has_string = false;
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const ValueId id : *ids) {
        if (id == kNoValue) continue;
        has_double = has_double || graph.value(id).info.dtype == DType::kDouble;
        has_string = has_string || graph.value(id).info.dtype == DType::kString;
      }
    }
    if (has_double && doubles++ == 0) first_double = prefix + node.name;
    if (has_string && strings++ == 0) first_string = prefix + node.name;
  };
  WalkNodes(bound, "", visit);
  if (doubles > 0) {
    findings.push_back(
        {"fp64",
         fmt::format("{} nodes compute in float64{}", doubles,
                     ascend ? ": AI Core has no float64, they run on AI CPU; cast to float32"
                            : ": twice the memory and half the speed of float32"),
         first_double});
  }
  if (strings > 0) {
    findings.push_back({"strings",
                        fmt::format("{} nodes use strings: do that on the host", strings),
                        first_string});
  }
}

void FindPrecision(const Graph& bound, Findings& findings) {
  int64_t count = 0;
  std::string first;
  auto visit = [&](const Graph& graph, const Node& node, const std::string& prefix) {
    const bool matrix =
        node.op == "MatMul" || node.op == "Gemm" || node.op == "Conv" || node.op == "ConvTranspose";
    if (!matrix || !node.domain.empty() || node.inputs.empty() || node.inputs[0] == kNoValue)
      return;
    if (graph.value(node.inputs[0]).info.dtype == DType::kFloat && count++ == 0)
      first = prefix + node.name;
  };
  WalkNodes(bound, "", visit);
  if (count == 0) return;
  findings.push_back(
      {"matrix-precision",
       fmt::format("{} float32 matrix ops: the 910 family computes them as fp16 or HF32 by default "
                   "(precision_mode); align with that in mind",
                   count),
       first});
}

void FindExternalData(const std::string& model, Findings& findings) {
  if (!FileExists(model) || IsDirectory(model)) return;
  const std::vector<std::string> files = ModelFiles(model);
  for (size_t i = 1; i < files.size(); ++i) {
    findings.push_back(
        {"external-data", "weights lie in a file beside the model: move both together", files[i]});
  }
}

}  // namespace

std::vector<ScanFinding> FindFindings(const Graph& imported, const Graph& bound,
                                      const std::string& model, std::string_view target) {
  const bool ascend = target != "cpu";
  Findings findings;
  FindUnknown(bound, ascend, findings);
  FindControlFlow(bound, findings);
  FindDynamicDims(imported, findings);
  FindDataDependent(bound, findings);
  FindTypes(bound, ascend, findings);
  if (ascend) {
    FindOpset(imported, findings);
    FindPrecision(bound, findings);
  }
  FindExternalData(model, findings);
  return findings;
}

}  // namespace whimbrel
