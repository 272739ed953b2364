// Flags to structs, and progress per stage.

#include "whimbrel/cli/evidence_flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unistd.h>

#include <fmt/format.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

struct ToleranceName {
  std::string_view name;
  double AlignTolerance::*field;
};
constexpr std::array kTolerances{ToleranceName{"elementwise", &AlignTolerance::elementwise},
                                 ToleranceName{"matrix", &AlignTolerance::matrix},
                                 ToleranceName{"rtol", &AlignTolerance::rtol},
                                 ToleranceName{"atol", &AlignTolerance::atol},
                                 ToleranceName{"float16", &AlignTolerance::float16},
                                 ToleranceName{"bfloat16", &AlignTolerance::bfloat16}};

}  // namespace

void ToleranceOptions::Visit(ConfigVisitor& v) {
  v.Field({.name = "tolerance",
           .help = "elementwise (1e-5) and matrix (1e-3): |a-b| <= tol * max(1, |ref|) per layer; "
                   "rtol (1e-3) and atol (1e-4) end to "
                   "end; float16 (2e-2) and bfloat16 (8e-2): the least for layers of that type",
           .value_name = "NAME=VALUE"},
          values);
}

AlignTolerance ToleranceOptions::ToTolerance() const {
  AlignTolerance tolerance;
  for (const std::string& text : values) {
    const size_t equals = text.find('=');
    double AlignTolerance::*field = nullptr;
    for (const ToleranceName& known : kTolerances) {
      if (text.substr(0, equals) == known.name) field = known.field;
    }
    double value = 0;
    const char* begin = text.data() + (equals == std::string::npos ? text.size() : equals + 1);
    const auto [end, status] = std::from_chars(begin, text.data() + text.size(), value);
    if (field == nullptr || status != std::errc() || end != text.data() + text.size() ||
        !(value >= 0) || !std::isfinite(value)) {
      throw Error(Code::kInvalidArgument, fmt::format("--tolerance: '{}' is no tolerance", text),
                  "write NAME=VALUE; names: elementwise, matrix, rtol, atol, float16, bfloat16");
    }
    tolerance.*field = value;
  }
  return tolerance;
}

void LimitOptions::Visit(ConfigVisitor& v) {
  v.Field({.name = "coverage",
           .help = "least share of nodes that are direct, in %",
           .value_name = "PERCENT",
           .min = 0,
           .max = 100},
          coverage);
  v.Field({.name = "p99-ms",
           .help = "limit of the P99 latency in ms; 0 = not asked",
           .value_name = "MS",
           .min = 0},
          p99_ms);
  v.Field({.name = "memory",
           .help = "limit of the peak memory: 512M, 1.5GiB; without it not asked",
           .value_name = "SIZE"},
          memory);
}

GateLimits LimitOptions::ToLimits() const {
  GateLimits limits;
  limits.coverage_percent = coverage;
  if (p99_ms > 0) limits.p99_ms = p99_ms;
  if (!memory.empty()) limits.memory_bytes = ParseBytes(memory, "--memory");
  return limits;
}

NamedInputs ReadNamedInputs(const ModelOptions& model, const InputOptions& inputs,
                            std::string_view verb, Output& out) {
  InputOptions options = inputs;
  if (options.seed < 0) options.seed = 1;
  const std::string path = ResolveModelPath(model.model);
  if (LooksLikePackage(path)) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{} is a package: {} starts from an ONNX file", path, verb),
        "'whimbrel gate DIR' judges what was migrated, 'whimbrel run' and 'bench' take packages");
  }
  const std::unique_ptr<Session> session =
      Session::Open(model.model, model.ToSessionOptions(verb == "migrate" ? "--to" : "--device"));
  ModelInputs read = ReadInputs(options, model.shapes, *session, out);
  NamedInputs named;
  named.assumed = read.assumed;
  named.seeded_integers = read.seeded_integers;
  for (size_t i = 0; i < read.tensors.size(); ++i)
    named.tensors.emplace_back(session->inputs()[i].name, std::move(read.tensors[i]));
  std::vector<std::string> parts = options.inputs;
  if (!options.image.empty()) parts.push_back(fmt::format("pictures with \"{}\"", options.image));
  if (!read.seeded.empty())
    parts.push_back(
        fmt::format("{} filled with seed {}", fmt::join(read.seeded, ", "), options.seed));
  named.text = fmt::format("{}", fmt::join(parts, "; "));
  return named;
}

std::function<void(const std::string&, double, const std::string&)> StageTeller(const Output& out) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  return [&out, terminal](const std::string& stage, double fraction, const std::string& detail) {
    if (terminal) {
      // A layer's name is the model's word: no control characters on a terminal.
      std::string text = detail.substr(0, 60);
      std::replace_if(
          text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
      out.Progress(text.empty() ? stage : fmt::format("{}: {}", stage, text),
                   static_cast<int64_t>(fraction * 100), 100);
    } else if (fraction >= 1) {
      out.Talk(detail.empty() ? fmt::format("{}: done", stage)
                              : fmt::format("{}: {}", stage, detail));
    }
  };
}

}  // namespace whimbrel
