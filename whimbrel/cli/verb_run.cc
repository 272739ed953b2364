// run: a model on files; outputs as .npy, figures and copies on stdout.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/file.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/cli/inputs.h"
#include "whimbrel/tensor/npy.h"

namespace whimbrel {
namespace {

struct RunOptions {
  ModelOptions model;
  InputOptions inputs;
  std::string output_dir;
  bool reference = false;

  void Visit(ConfigVisitor& v) {
    model.Visit(v);
    inputs.Visit(v);
    v.Field({.name = "reference",
             .help = "only the reference kernels (float64 sums, no fusions): slow, and the "
                     "yardstick of align"},
            reference);
    v.Field({.name = "output-dir",
             .help = "folder for output_K.npy in graph output order; made when it is not there",
             .value_name = "DIR"},
            output_dir);
  }
};

// Figures over the finite elements.
struct Figures {
  double min = NAN;
  double max = NAN;
  double mean = NAN;
  int64_t not_finite = 0;
};

Figures FiguresOf(const Tensor& tensor) {
  Figures figures;
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = ElementAsDouble(tensor, i);
    if (!std::isfinite(value)) {
      ++figures.not_finite;
      continue;
    }
    figures.min = count == 0 ? value : std::min(figures.min, value);
    figures.max = count == 0 ? value : std::max(figures.max, value);
    sum += value;
    ++count;
  }
  if (count > 0) figures.mean = sum / static_cast<double>(count);
  return figures;
}

struct WrittenOutput {
  std::string name;
  Tensor tensor;
  Figures figures;
  std::string file;
};

Json OutputsJson(const std::vector<WrittenOutput>& outputs) {
  Json list = Json::array();
  for (const WrittenOutput& o : outputs) {
    const auto dims = o.tensor.shape().dims();
    list.push_back({{"name", o.name},
                    {"dtype", DTypeName(o.tensor.dtype())},
                    {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                    {"min", o.figures.min},  // NaN is written as null
                    {"max", o.figures.max},
                    {"mean", o.figures.mean},
                    {"not_finite", o.figures.not_finite},
                    {"file", o.file.empty() ? Json(nullptr) : Json(o.file)}});
  }
  return list;
}

std::string Number(double value) {
  return std::isnan(value) ? "-" : FormatNumber(value);
}

std::string OutputsText(const std::vector<WrittenOutput>& outputs) {
  Table table({"output", "dtype", "shape", "min", "max", "mean", "file"});
  int64_t not_finite = 0;
  for (const WrittenOutput& o : outputs) {
    table.Row({o.name, std::string(DTypeName(o.tensor.dtype())), ToString(o.tensor.shape()),
               Number(o.figures.min), Number(o.figures.max), Number(o.figures.mean),
               o.file.empty() ? "not written" : o.file});
    not_finite += o.figures.not_finite;
  }
  std::string text = table.ToText();
  if (not_finite > 0)
    text +=
        fmt::format("{} elements are NaN or infinite; the figures leave them out\n", not_finite);
  return text;
}

Json CopiesJson(const CopyStats& before, const CopyStats& after) {
  return {{"host_to_device_bytes", after.host_to_device_bytes - before.host_to_device_bytes},
          {"device_to_host_bytes", after.device_to_host_bytes - before.device_to_host_bytes},
          {"device_to_device_bytes", after.device_to_device_bytes - before.device_to_device_bytes},
          {"alignment_bytes", after.alignment_bytes - before.alignment_bytes},
          {"copies", after.copies - before.copies}};
}

int RunModel(const RunOptions& options, Output& out) {
  SessionOptions session_options = options.model.ToSessionOptions();
  session_options.only_reference = options.reference;
  const std::unique_ptr<Session> session = Session::Open(options.model.model, session_options);
  const ModelInputs inputs = ReadInputs(options.inputs, options.model.shapes, *session, out);
  // Before the work: a folder that cannot be made should not cost a run.
  if (!options.output_dir.empty()) MakeDirectories(options.output_dir);

  std::vector<Shape> shapes;
  for (const Tensor& tensor : inputs.tensors) shapes.push_back(tensor.shape());
  const Executable* executable =
      WithMadeUpExplained(inputs, [&] { return &session->Prepare(shapes); });
  const CopyStats before = session->device().copies();
  const std::vector<Tensor> results =
      WithMadeUpExplained(inputs, [&] { return session->Run(inputs.tensors); });
  const CopyStats after = session->device().copies();

  std::vector<WrittenOutput> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    WrittenOutput output{session->outputs()[i].name, results[i], FiguresOf(results[i]), ""};
    if (!options.output_dir.empty()) {
      output.file = JoinPath(options.output_dir, fmt::format("output_{}.npy", i));
      WriteNpy(output.file, results[i]);
    }
    outputs.push_back(std::move(output));
  }
  for (const std::string& line : executable->advice()) out.Talk("advice: " + line);
  if (out.json()) {
    out.Result({{"model", options.model.model},
                {"device", session->device().info().name},
                {"outputs", OutputsJson(outputs)},
                {"copies", CopiesJson(before, after)},
                {"advice", executable->advice()},
                {"assumed", inputs.assumed},
                {"seeded", inputs.seeded}});
  } else {
    out.Text(OutputsText(outputs));
  }
  return 0;
}

const RegisterCommand<RunOptions> kRegistered(
    {.name = "run",
     .stage = Stage::kConvert,
     .summary = "run a model on files and write its outputs as .npy",
     .description =
         "Inputs keep their type: an array of another type or shape than the input's is an error, "
         "never a cast.\n"
         "NAME=FILE splits at the last '=', NAME:DIMS at the last ':' (names may hold both).",
     .examples = {"whimbrel run det.onnx --input x=page.jpg --image mean=127.5,std=127.5,order=bgr "
                  "--output-dir out",
                  "whimbrel run vad.onnx --input input=a.npy --input state=s.npy --input "
                  "sr=rate.npy --output-dir out",
                  "whimbrel run model.onnx --shape x:1x3x48x192 --seed 1 --json",
                  "whimbrel run model.wbl --seed 1 --reference --output-dir expected"}},
    RunModel);

}  // namespace
}  // namespace whimbrel
