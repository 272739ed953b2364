// scan: what a model would take on a target: per op a verdict with reason and effort, and the
// coverage.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/base/json.h"
#include "whimbrel/graph/graph.h"

namespace whimbrel {

enum class Verdict : uint8_t {
  kDirect,  // runs as it is
  kAdapt,   // runs elsewhere (AI CPU, host), needs a rewrite from direct ops, or hits a noted limit
  kCustom,  // somebody must write a kernel
};
std::string_view VerdictName(Verdict verdict);  // "direct", ...

struct ScanOp {
  std::string op;
  std::string domain;  // "ai.onnx" for the standard one
  int version = 0;     // opset of the domain in the model
  int64_t count = 0;   // nodes
  Verdict verdict = Verdict::kDirect;
  std::string reason;
  std::string effort;              // "none", "hours", "days", "weeks"
  std::vector<std::string> nodes;  // the first few
};

struct ScanFinding {
  std::string id;  // stable, e.g. "control-flow", "dynamic-dims", "opset-above-18"
  std::string text;
  std::string where;  // node or input
};

struct ScanResult {
  std::string model;
  std::string target;
  std::string soc;
  double count_percent = 0;  // share of direct among nodes
  double flops_percent = 0;  // share of direct among FLOPs; with open dims as 1
  int64_t direct = 0;        // node counts
  int64_t adapt = 0;
  int64_t custom = 0;
  std::vector<ScanOp> ops;  // custom first, then adapt, then direct; by count
  std::vector<ScanFinding> findings;
  std::vector<std::string> assumed;  // open dims taken as 1 for the FLOPs
};

// Targets: "cpu", "ascend910b". kInvalidArgument names the known ones.
std::vector<std::string_view> ScanTargets();

// Never throws for unknown ops or domains: they are custom and named. Data: whimbrel/migrate/data/
// (rule and source in its README); no vendor SDK is needed.
ScanResult Scan(const Graph& imported, const std::string& model, std::string_view target,
                const std::vector<InputShape>& shapes = {});

Json ToJson(const ScanResult& result);
std::string ToText(const ScanResult& result);  // table for people

}  // namespace whimbrel
