// migrate: the main job: scan, compile, align, bench, package and gate, resumable, with a manifest
// and a report.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/cli/evidence_flags.h"
#include "whimbrel/cli/inputs.h"
#include "whimbrel/graph/graph.h"
#include "whimbrel/migrate/pipeline.h"
#include "whimbrel/migrate/report_data.h"

namespace whimbrel {
namespace {

struct MigrateVerbOptions {
  std::string model;
  std::string to = "cpu:0";
  std::vector<std::string> shapes;
  InputOptions inputs;
  int64_t threads = 0;
  std::string fusion_switch_file;
  ToleranceOptions tolerance;
  LimitOptions limits;
  double seconds = 3;
  bool restart = false;
  std::string output;

  void Visit(ConfigVisitor& v) {
    v.Field({.name = "MODEL",
             .help = "ONNX file, or folder that holds model.onnx",
             .positional = true,
             .required = true},
            model);
    v.Field({.name = "to",
             .help = "device to migrate to; 'whimbrel devices' lists them",
             .value_name = "D"},
            to);
    v.Field({.name = "output",
             .help = "folder for manifest.json, the package and report.html",
             .value_name = "DIR",
             .short_flag = "o",
             .required = true},
            output);
    v.Field({.name = "shape",
             .help = "dims of an input: x:1x3x48x192; open dims count as 1",
             .value_name = "NAME:DIMS"},
            shapes);
    inputs.Visit(v);
    v.Field({.name = "threads",
             .help = "compute threads; 0 = all cores this process may use",
             .min = 0,
             .max = 1024},
            threads);
    v.Field({.name = "fusion-switch-file",
             .help = "JSON file that turns passes off, see 'whimbrel compile --help'",
             .value_name = "FILE"},
            fusion_switch_file);
    tolerance.Visit(v);
    limits.Visit(v);
    v.Field({.name = "seconds", .help = "how long the bench runs", .min = 0.001, .max = 86400},
            seconds);
    v.Field({.name = "restart", .help = "forget what earlier runs left in DIR"}, restart);
  }
};

// What was typed, as a shell reads it back; defaults are left out.
std::string CommandLine(const MigrateVerbOptions& o) {
  std::string line = "whimbrel migrate " + ShellQuoted(o.model) + " --to " + ShellQuoted(o.to);
  const auto add = [&](std::string_view flag, const std::string& value) {
    line += fmt::format(" {} {}", flag, ShellQuoted(value));
  };
  for (const std::string& shape : o.shapes) add("--shape", shape);
  for (const std::string& input : o.inputs.inputs) add("--input", input);
  if (!o.inputs.image.empty()) add("--image", o.inputs.image);
  if (o.inputs.seed >= 0) add("--seed", std::to_string(o.inputs.seed));
  if (o.threads > 0) add("--threads", std::to_string(o.threads));
  if (!o.fusion_switch_file.empty()) add("--fusion-switch-file", o.fusion_switch_file);
  for (const std::string& tolerance : o.tolerance.values) add("--tolerance", tolerance);
  if (o.limits.coverage != LimitOptions().coverage)
    add("--coverage", fmt::format("{:g}", o.limits.coverage));
  if (o.limits.p99_ms > 0) add("--p99-ms", fmt::format("{:g}", o.limits.p99_ms));
  if (!o.limits.memory.empty()) add("--memory", o.limits.memory);
  add("-o", o.output);
  return line;
}

bool CanBeRead(const std::string& model) {
  try {
    ImportOnnx(ResolveModelPath(model));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A model that is whole and still cannot be opened lacks an op: its scan is what its owner needs.
NamedInputs ReadInputsOrReport(const ModelOptions& model, const InputOptions& inputs,
                               const MigrateOptions& migrate, Output& out) {
  try {
    return ReadNamedInputs(model, inputs, "migrate", out);
  } catch (const Error& e) {
    if (e.code() != Code::kUnsupported || !CanBeRead(model.model)) throw;
    const std::string report = ReportRefusal(migrate, e);
    throw Error(e.code(), e.what(), fmt::format("{} shows what it would take", report));
  }
}

int RunMigrate(const MigrateVerbOptions& options, Output& out) {
  MigrateOptions migrate;
  migrate.limits = options.limits.ToLimits();
  migrate.tolerance = options.tolerance.ToTolerance();
  ModelOptions model;
  model.model = options.model;
  model.shapes = options.shapes;
  model.device = options.to;
  model.threads = options.threads;
  model.fusion_switch_file = options.fusion_switch_file;
  migrate.model = options.model;
  migrate.to = options.to;
  migrate.out = options.output;
  migrate.threads = static_cast<int>(options.threads);
  migrate.fusion_switch_file = options.fusion_switch_file;
  migrate.bench_seconds = options.seconds;
  migrate.restart = options.restart;
  migrate.command = CommandLine(options);
  migrate.progress = StageTeller(out);
  NamedInputs inputs = ReadInputsOrReport(model, options.inputs, migrate, out);
  migrate.inputs = std::move(inputs.tensors);
  migrate.inputs_text = inputs.text;
  const MigrateResult result = WithMadeUpExplained(inputs, [&] { return Migrate(migrate); });
  if (out.json()) {
    out.Result(ToJson(result));
  } else {
    out.Text(ToText(result));
  }
  return result.gate.pass ? 0 : Describe(Code::kGateNotMet).exit_code;
}

const RegisterCommand<MigrateVerbOptions> kRegistered(
    {.name = "migrate",
     .stage = Stage::kShip,
     .summary = "the whole way: scan, compile, align, bench, package, gate, report",
     .description =
         "The same command again resumes: only what changed is done again. The package is written\n"
         "whatever the gate says; exit 1 when a check fails. Inputs that --input does not give are "
         "made\n"
         "up (--seed, default 1).",
     .examples = {"whimbrel migrate model.onnx --to cpu:0 -o out/model",
                  "whimbrel migrate model.onnx --to cpu:0 --shape x:1x3x640x640 --p99-ms 50 "
                  "--memory 512M -o out/model",
                  "whimbrel migrate model.onnx --to cpu:0 --input x=photo.jpg --image "
                  "order=bgr,mean=127.5,std=127.5 -o out/model"}},
    RunMigrate);

}  // namespace
}  // namespace whimbrel
