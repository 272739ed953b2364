// align: the fast plan against the float64 reference, layer by layer; names the first layer over
// tolerance.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/cli/evidence_flags.h"
#include "whimbrel/cli/inputs.h"
#include "whimbrel/migrate/align.h"

namespace whimbrel {
namespace {

struct AlignVerbOptions {
  ModelOptions model;
  InputOptions inputs;
  ToleranceOptions tolerance;
  std::string reference = "reference";

  void Visit(ConfigVisitor& v) {
    model.Visit(v);
    inputs.Visit(v);
    v.Field({.name = "ref",
             .help = "what to compare with: the reference kernels (float64 sums, no fusions)",
             .choices = {"reference"}},
            reference);
    tolerance.Visit(v);
  }
};

int RunAlign(const AlignVerbOptions& options, Output& out) {
  AlignOptions align;
  align.tolerance = options.tolerance.ToTolerance();
  const NamedInputs inputs = ReadNamedInputs(options.model, options.inputs, "align", out);
  const SessionOptions session = options.model.ToSessionOptions();
  align.device = session.device;
  align.threads = session.threads;
  align.switches = session.switches;
  align.progress = [&](size_t done, size_t total, const std::string& layer) {
    out.Progress(fmt::format("layers {}", layer.substr(0, 50)), static_cast<int64_t>(done),
                 static_cast<int64_t>(total));
  };
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : inputs.tensors) tensors.push_back(tensor);
  AlignResult result = WithMadeUpExplained(inputs, [&] {
    return Align(ImportOnnx(ResolveModelPath(options.model.model)), tensors, align);
  });
  result.inputs = inputs.text;
  if (out.json()) {
    out.Result(ToJson(result));
  } else {
    out.Text(ToText(result));
  }
  return result.pass ? 0 : Describe(Code::kGateNotMet).exit_code;
}

const RegisterCommand<AlignVerbOptions> kRegistered(
    {.name = "align",
     .stage = Stage::kProve,
     .summary = "compare a compiled model with the float64 reference, layer by layer",
     .description = "Each layer is judged on the reference's own inputs; the chained error from "
                    "the input is shown\n"
                    "beside it and decides end to end. Exit 1 when a layer or an output is over "
                    "its tolerance.\n"
                    "Inputs that --input does not give are made up (--seed, default 1).",
     .examples =
         {"whimbrel align model.onnx",
          "whimbrel align model.onnx --input x=photo.jpg --image order=bgr,mean=127.5,std=127.5",
          "whimbrel align model.onnx --shape x:1x3x224x224 --tolerance elementwise=1e-4 --json"}},
    RunAlign);

}  // namespace
}  // namespace whimbrel
