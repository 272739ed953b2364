// bench: latency percentiles, throughput, memory, copies and FLOP/s of a model; a sweep over batch
// sizes.

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/base/threads.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/cli/inputs.h"
#include "whimbrel/migrate/bench.h"

namespace whimbrel {
namespace {

struct BenchVerbOptions {
  ModelOptions model;
  InputOptions inputs;
  double seconds = 3;
  int64_t warmup = 3;
  std::string batch;
  double p99_ms = 0;
  std::string precision = "f32";

  void Visit(ConfigVisitor& v) {
    model.Visit(v);
    inputs.Visit(v);
    v.Field({.name = "seconds",
             .help = "how long the timed loop runs; at least 10 runs are made",
             .min = 0.001,
             .max = 86400},
            seconds);
    v.Field({.name = "warmup", .help = "runs before the clock starts", .min = 1, .max = 1e6},
            warmup);
    v.Field({.name = "batch",
             .help = "batch sizes to sweep, for inputs whose first dim is open: 1,2,4,8,16",
             .value_name = "N,N,..."},
            batch);
    v.Field({.name = "p99-ms",
             .help = "with --batch: the best batch keeps its P99 within this; 0 = no limit",
             .value_name = "MS",
             .min = 0},
            p99_ms);
    v.Field({.name = "precision",
             .help = "number format of weights and activations",
             .choices = {"f32", "bf16", "int8"}},
            precision);
  }
};

std::vector<int64_t> ParseBatches(const std::string& text) {
  std::vector<int64_t> batches;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data() + at, text.data() + comma, value);
    if (status != std::errc() || end != text.data() + comma || value < 1) {
      throw Error(Code::kInvalidArgument, fmt::format("--batch: '{}' is no list of sizes", text),
                  "write --batch 1,2,4,8,16");
    }
    batches.push_back(value);
    at = comma + 1;
  }
  return batches;
}

bool OpenBatch(const TensorSpec& spec) {
  return spec.dims && !spec.dims->empty() && !spec.dims->front().known();
}

// Items in one run: the dim that the model leaves open for them; else the first of an image-like
// input.
int64_t BatchOf(const std::vector<TensorSpec>& specs, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < specs.size(); ++i) {
    if (OpenBatch(specs[i])) return std::max<int64_t>(inputs[i].shape()[0], 1);
  }
  return !inputs.empty() && inputs[0].shape().rank() >= 4
             ? std::max<int64_t>(inputs[0].shape()[0], 1)
             : 1;
}

// --shape texts with the open first dim of each input set to `batch`; other open dims as --shape
// says or 1.
std::vector<std::string> ShapesFor(int64_t batch, const Session& session,
                                   const std::vector<std::string>& given) {
  const std::vector<InputShape> named = ParseInputShapes(given, session.inputs());
  std::vector<std::string> texts;
  for (const TensorSpec& spec : session.inputs()) {
    const auto found = std::ranges::find(named, spec.name, &InputShape::name);
    if (!spec.dims && found == named.end()) continue;
    std::vector<int64_t> dims;
    const size_t rank = spec.dims ? spec.dims->size() : static_cast<size_t>(found->shape.rank());
    for (size_t d = 0; d < rank; ++d) {
      if (d == 0 && OpenBatch(spec)) {
        dims.push_back(batch);
      } else if (found != named.end()) {
        dims.push_back(found->shape[static_cast<int>(d)]);
      } else {
        // A dim that carries the batch's symbol elsewhere (a state of [2, N, 128]) goes with it.
        const auto same = [&](const TensorSpec& other) {
          return OpenBatch(other) && other.dims->front().Same((*spec.dims)[d]);
        };
        const bool is_batch = std::ranges::any_of(session.inputs(), same);
        dims.push_back((*spec.dims)[d].known() ? (*spec.dims)[d].value() : is_batch ? batch : 1);
      }
    }
    texts.push_back(fmt::format("{}:{}", spec.name, fmt::join(dims, "x")));
  }
  return texts;
}

class Runner {
 public:
  Runner(const BenchVerbOptions& options, Output& out) : options_(options), out_(out) {
    if (options.precision != "f32") {
      throw Error(
          Code::kInvalidArgument,
          fmt::format(
              "--precision {} is not available: every kernel of this version computes in float32",
              options.precision),
          "leave --precision out");
    }
    input_options_ = options.inputs;
    if (input_options_.seed < 0) input_options_.seed = 1;
    const SessionOptions session_options = options.model.ToSessionOptions();
    threads_ = session_options.threads > 0 ? session_options.threads : AvailableCores();
    session_ = Session::Open(options.model.model, session_options);
  }

  BenchResult Run(const std::vector<std::string>& shapes) {
    const ModelInputs inputs = ReadInputs(input_options_, shapes, *session_, out_);
    std::vector<Shape> dims;
    for (const Tensor& tensor : inputs.tensors) dims.push_back(tensor.shape());
    Executable* executable = WithMadeUpExplained(inputs, [&] { return &session_->Prepare(dims); });
    BenchOptions bench;
    bench.seconds = options_.seconds;
    bench.warmup = options_.warmup;
    bench.batch = BatchOf(session_->inputs(), inputs.tensors);
    bench.progress = [&](double fraction) {
      out_.Progress(fmt::format("batch {}", bench.batch), static_cast<int64_t>(fraction * 100),
                    100);
    };
    assumed_ = inputs.assumed;
    return WithMadeUpExplained(inputs, [&] {
      return Bench(*executable, session_->stream(), threads_, inputs.tensors, bench);
    });
  }

  std::vector<SweepPoint> Sweep() {
    if (!options_.inputs.inputs.empty()) {
      throw Error(Code::kInvalidArgument,
                  "--batch makes up its inputs: --input has one batch size only",
                  "leave --input or --batch out");
    }
    if (session_->is_package()) {
      throw Error(Code::kInvalidArgument,
                  "a package serves the shapes it was made for: --batch needs the ONNX file",
                  "leave --batch out");
    }
    if (std::ranges::none_of(session_->inputs(), OpenBatch)) {
      throw Error(Code::kInvalidArgument, "--batch: no input has an open first dim",
                  "export the model with a dynamic batch, or leave --batch out");
    }
    std::vector<SweepPoint> points;
    for (const int64_t batch : ParseBatches(options_.batch)) {
      points.push_back({batch, Run(ShapesFor(batch, *session_, options_.model.shapes))});
    }
    return points;
  }

  const std::vector<std::string>& assumed() const { return assumed_; }

 private:
  const BenchVerbOptions& options_;
  Output& out_;
  InputOptions input_options_;
  std::unique_ptr<Session> session_;
  int threads_ = 0;
  std::vector<std::string> assumed_;
};

Json SweepJson(const std::vector<SweepPoint>& points, std::optional<size_t> best,
               std::optional<double> limit) {
  // The object is that of the best batch (else of the first), so that readers of a single bench can
  // read it too.
  Json json = ToJson(points[best.value_or(0)].result);
  Json list = Json::array();
  for (size_t i = 0; i < points.size(); ++i) {
    Json point = ToJson(points[i].result);
    for (const char* key : {"ops", "histogram", "machine_gflops"}) point.erase(key);
    point["best"] = best == i;
    list.push_back(std::move(point));
  }
  json["sweep"] = std::move(list);
  json["best_batch"] = best ? Json(points[*best].batch) : Json(nullptr);
  json["p99_limit_ms"] = limit ? Json(*limit) : Json(nullptr);
  return json;
}

std::string SweepText(const std::vector<SweepPoint>& points, std::optional<size_t> best,
                      std::optional<double> limit) {
  Table table({"batch", "per s", "P50 ms", "P95 ms", "P99 ms", "GFLOP/s", "peak memory", ""});
  for (size_t i = 0; i < points.size(); ++i) {
    const BenchResult& r = points[i].result;
    table.Row({std::to_string(points[i].batch), fmt::format("{:.2f}", r.throughput_per_s),
               fmt::format("{:.3f}", r.latency.p50_ms), fmt::format("{:.3f}", r.latency.p95_ms),
               fmt::format("{:.3f}", r.latency.p99_ms), fmt::format("{:.1f}", r.gflops),
               FormatBytes(r.peak_memory_bytes), best == i ? "best" : ""});
  }
  std::string text = table.ToText();
  if (!best) text += fmt::format("no batch keeps its P99 within {:g} ms\n", limit.value_or(0));
  return text;
}

int RunBench(const BenchVerbOptions& options, Output& out) {
  Runner runner(options, out);
  if (options.batch.empty()) {
    const BenchResult result = runner.Run(options.model.shapes);
    if (out.json()) {
      Json json = ToJson(result);
      json["precision"] = options.precision;
      json["assumed"] = runner.assumed();
      out.Result(json);
    } else {
      out.Text(ToText(result));
    }
    return 0;
  }
  const std::vector<SweepPoint> points = runner.Sweep();
  const std::optional<double> limit =
      options.p99_ms > 0 ? std::optional(options.p99_ms) : std::nullopt;
  const std::optional<size_t> best = BestBatch(points, limit);
  if (out.json()) {
    out.Result(SweepJson(points, best, limit));
  } else {
    out.Text(SweepText(points, best, limit));
  }
  return 0;
}

const RegisterCommand<BenchVerbOptions> kRegistered(
    {.name = "bench",
     .stage = Stage::kProve,
     .summary = "measure a model: latency percentiles, throughput, memory, FLOP/s",
     .description = "Inputs that --input does not give are made up (--seed, default 1).",
     .examples = {"whimbrel bench model.onnx",
                  "whimbrel bench model.onnx --shape x:1x3x640x640 --threads 2 --json",
                  "whimbrel bench model.onnx --batch 1,2,4,8,16 --p99-ms 20",
                  "whimbrel bench model.wbl --seconds 10"}},
    RunBench);

}  // namespace
}  // namespace whimbrel
