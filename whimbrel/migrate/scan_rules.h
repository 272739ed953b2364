// scan_rules: the verdict on one node for one target, with its reason in words.

#pragma once

#include <string>
#include <string_view>

#include "whimbrel/migrate/scan.h"

namespace whimbrel {

struct NodeVerdict {
  Verdict verdict = Verdict::kDirect;
  std::string reason;
  std::string effort;  // "none", "hours", "days", "weeks"
};

// `graph` holds the node; infos of its values are used as far as they are known.
NodeVerdict JudgeForCpu(const Graph& graph, const Node& node);
NodeVerdict JudgeForAscend910b(const Graph& graph, const Node& node);

// "ai.onnx" for the standard domain.
std::string_view DomainName(const Node& node);
// The newest opset that ATC's parser knows (ONNX 1.12 plus opset 18 plugins).
constexpr int kNewestAscendOpset = 18;

}  // namespace whimbrel
