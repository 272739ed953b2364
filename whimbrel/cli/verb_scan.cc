// scan: what a model would take on a target: verdict per op, coverage, findings; no vendor SDK is
// needed.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/cli/inputs.h"
#include "whimbrel/graph/graph.h"
#include "whimbrel/migrate/scan.h"

namespace whimbrel {
namespace {

struct ScanVerbOptions {
  std::string model;
  std::string target = "ascend910b";
  std::vector<std::string> shapes;
  double fail_under = 0;
  std::string csv;

  void Visit(ConfigVisitor& v) {
    v.Field({.name = "MODEL",
             .help = "ONNX file, or folder that holds model.onnx",
             .positional = true,
             .required = true},
            model);
    v.Field({.name = "target",
             .help = "what to judge for",
             .value_name = "T",
             .choices = ScanTargets()},
            target);
    v.Field({.name = "shape",
             .help = "dims of an input; open dims count as 1 in FLOPs",
             .value_name = "NAME:DIMS"},
            shapes);
    v.Field({.name = "fail-under",
             .help = "exit 1 when less than this share of the nodes is direct, in %; 0 = never",
             .value_name = "PERCENT",
             .min = 0,
             .max = 100},
            fail_under);
    v.Field({.name = "csv",
             .help = "write the op table here as CSV too",
             .value_name = "FILE",
             .writes = true},
            csv);
  }
};

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string ToCsv(const ScanResult& result) {
  std::string text = "op,domain,version,count,verdict,effort,reason,nodes\n";
  for (const ScanOp& op : result.ops) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", CsvField(op.op), CsvField(op.domain),
                        op.version, op.count, VerdictName(op.verdict), op.effort,
                        CsvField(op.reason), CsvField(fmt::format("{}", fmt::join(op.nodes, " "))));
  }
  return text;
}

std::vector<TensorSpec> InputSpecs(const Graph& graph) {
  std::vector<TensorSpec> specs;
  for (const ValueId id : graph.inputs)
    specs.push_back({graph.value(id).name, graph.value(id).info.dtype, graph.value(id).info.dims});
  return specs;
}

int RunScan(const ScanVerbOptions& options, Output& out) {
  const std::string path = ResolveModelPath(options.model);
  if (LooksLikePackage(path)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} is a package: its ops are compiled already", path),
                "scan the ONNX file it was made from; the package's manifest holds that coverage");
  }
  const Graph graph = ImportOnnx(path);
  const ScanResult result =
      Scan(graph, path, options.target, ParseInputShapes(options.shapes, InputSpecs(graph)));
  if (!options.csv.empty()) WriteFileAtomic(options.csv, std::string_view(ToCsv(result)));
  const bool pass = result.count_percent >= options.fail_under;
  if (out.json()) {
    Json json = ToJson(result);
    if (options.fail_under > 0) json["gate"] = {{"fail_under", options.fail_under}, {"pass", pass}};
    out.Result(json);
  } else {
    out.Text(ToText(result));
    if (!pass)
      out.Text(fmt::format("FAIL: {:.1f} % direct, {:g} % asked by --fail-under\n",
                           result.count_percent, options.fail_under));
  }
  return pass ? 0 : Describe(Code::kGateNotMet).exit_code;
}

const RegisterCommand<ScanVerbOptions> kRegistered(
    {.name = "scan",
     .stage = Stage::kLook,
     .summary = "tell what a model would take on a target: verdict per op, coverage, findings",
     .description = "direct: runs as it is. adapt: runs on AI CPU or host, needs a rewrite from "
                    "direct ops, or hits a\n"
                    "noted limit. custom: somebody must write a kernel.",
     .examples = {"whimbrel scan model.onnx --target ascend910b",
                  "whimbrel scan model.onnx --target cpu --json",
                  "whimbrel scan model.onnx --target ascend910b --fail-under 85 --csv ops.csv"}},
    RunScan);

}  // namespace
}  // namespace whimbrel
