// The scan's answer as JSON and as a table.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/migrate/scan.h"

namespace whimbrel {

Json ToJson(const ScanResult& result) {
  Json ops = Json::array();
  for (const ScanOp& op : result.ops) {
    ops.push_back(Json{{"op", op.op},
                       {"domain", op.domain},
                       {"version", op.version},
                       {"count", op.count},
                       {"verdict", VerdictName(op.verdict)},
                       {"reason", op.reason},
                       {"effort", op.effort},
                       {"nodes", op.nodes}});
  }
  Json findings = Json::array();
  for (const ScanFinding& finding : result.findings) {
    findings.push_back(Json{{"id", finding.id}, {"text", finding.text}, {"where", finding.where}});
  }
  return Json{{"model", result.model},
              {"target", result.target},
              {"soc", result.soc.empty() ? Json(nullptr) : Json(result.soc)},
              {"coverage",
               {{"count_percent", result.count_percent},
                {"flops_percent", result.flops_percent},
                {"direct", result.direct},
                {"adapt", result.adapt},
                {"custom", result.custom}}},
              {"ops", std::move(ops)},
              {"findings", std::move(findings)},
              {"assumed", result.assumed}};
}

std::string ToText(const ScanResult& result) {
  size_t op_width = 2;
  for (const ScanOp& op : result.ops)
    op_width = std::max(op_width, op.domain.size() + op.op.size() + 2);
  op_width = std::min<size_t>(op_width, 48);
  std::string text = fmt::format("{:<{}} {:>7} {:>6}  {:<7} {:<6} {}\n", "op", op_width, "version",
                                 "nodes", "verdict", "effort", "reason");
  for (const ScanOp& op : result.ops) {
    const std::string name = op.domain == "ai.onnx" ? op.op : op.domain + "::" + op.op;
    std::string where;
    if (op.verdict != Verdict::kDirect)
      where = fmt::format(" [{}{}]", op.nodes.front(), op.count > 1 ? ", ..." : "");
    text +=
        fmt::format("{:<{}} {:>7} {:>6}  {:<7} {:<6} {}{}\n", name, op_width, op.version, op.count,
                    VerdictName(op.verdict), op.effort, op.reason.empty() ? "-" : op.reason, where);
  }
  text += "\n";
  for (const ScanFinding& finding : result.findings) {
    text += fmt::format("{}: {} [{}]\n", finding.id, finding.text, finding.where);
  }
  for (const std::string& line : result.assumed) text += fmt::format("assumed {}\n", line);
  text += fmt::format(
      "{} on {}: {:.1f} % of {} nodes and {:.1f} % of the FLOPs are direct ({} direct, {} adapt, "
      "{} custom)\n",
      result.model, result.target, result.count_percent,
      result.direct + result.adapt + result.custom, result.flops_percent, result.direct,
      result.adapt, result.custom);
  return text;
}

}  // namespace whimbrel
