// package: one .wbl file with the compiled model, its coverage, its error per layer and a probe.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/cli/evidence_flags.h"
#include "whimbrel/cli/inputs.h"
#include "whimbrel/migrate/pipeline.h"

namespace whimbrel {
namespace {

struct PackageVerbOptions {
  ModelOptions model;
  InputOptions inputs;
  ToleranceOptions tolerance;
  std::string output;

  void Visit(ConfigVisitor& v) {
    model.Visit(v);
    inputs.Visit(v);
    tolerance.Visit(v);
    v.Field({.name = "output",
             .help = "the package",
             .value_name = "FILE.wbl",
             .short_flag = "o",
             .required = true,
             .writes = true},
            output);
  }
};

int RunPackage(const PackageVerbOptions& options, Output& out) {
  PackageRequest request;
  request.model = options.model.model;
  request.device = options.model.device;
  request.threads = static_cast<int>(options.model.threads);
  request.fusion_switch_file = options.model.fusion_switch_file;
  request.tolerance = options.tolerance.ToTolerance();
  const NamedInputs inputs = ReadNamedInputs(options.model, options.inputs, "package", out);
  request.inputs = inputs.tensors;
  request.progress = StageTeller(out);
  const PackageOutcome outcome =
      WithMadeUpExplained(inputs, [&] { return MakePackage(request, options.output); });
  if (out.json()) {
    out.Result({{"file", outcome.file},
                {"sha256", outcome.sha256},
                {"bytes", FileSize(outcome.file)},
                {"coverage_percent", outcome.coverage_percent},
                {"alignment", outcome.aligned ? "pass" : "fail"},
                {"first_bad_layer",
                 outcome.first_bad_layer.empty() ? Json(nullptr) : Json(outcome.first_bad_layer)}});
  } else {
    out.Text(fmt::format("{}  {}\nsha256    {}\ncoverage  {:.1f} %\nalignment {}{}\n", outcome.file,
                         FormatBytes(FileSize(outcome.file)), outcome.sha256,
                         outcome.coverage_percent, outcome.aligned ? "pass" : "FAIL",
                         outcome.first_bad_layer.empty()
                             ? ""
                             : ": first layer over tolerance is " + outcome.first_bad_layer));
  }
  return outcome.aligned ? 0 : Describe(Code::kGateNotMet).exit_code;
}

const RegisterCommand<PackageVerbOptions> kRegistered(
    {.name = "package",
     .stage = Stage::kShip,
     .summary = "write a .wbl package with coverage, alignment evidence and a probe",
     .description = "Scans, compiles and aligns first. The package is written whatever the "
                    "alignment says; exit 1\n"
                    "when it failed. 'whimbrel migrate' also measures, gates and reports.",
     .examples = {"whimbrel package model.onnx -o model.wbl",
                  "whimbrel package model.onnx --shape x:1x3x640x640 -o model.wbl",
                  "whimbrel package model.onnx --input x=sample.npy -o model.wbl --json"}},
    RunPackage);

}  // namespace
}  // namespace whimbrel
