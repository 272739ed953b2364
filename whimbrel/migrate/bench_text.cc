// The bench's answer as JSON and as text.

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/migrate/bench.h"

namespace whimbrel {
namespace {

constexpr size_t kBins = 40;

Json OptionalJson(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Samples from the least to P99 in equal bins; the last bin holds all beyond, so that one hiccup
// does not squeeze the rest into one bar.
Json HistogramJson(const BenchResult& result) {
  const auto& samples = result.samples_ms;
  if (samples.empty()) return nullptr;
  const double from = samples.front();
  const double width = std::max((result.latency.p99_ms - from) / (kBins - 1), 1e-6);
  std::array<int64_t, kBins> counts{};
  for (const double sample : samples) {
    ++counts[std::min(static_cast<size_t>((sample - from) / width), kBins - 1)];
  }
  return Json{
      {"from_ms", from}, {"bin_ms", width}, {"counts", counts}, {"last_bin", "all slower ones"}};
}

std::string Mib(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

Json ToJson(const BenchResult& result) {
  Json ops = Json::array();
  for (const OpTime& op : result.ops) {
    ops.push_back(Json{{"op", op.op}, {"calls", op.calls}, {"ms", op.ms}, {"share", op.share}});
  }
  const CopyStats& copies = result.copies_per_run;
  const LatencyFigures& l = result.latency;
  return Json{
      {"device", result.device},
      {"threads", result.threads},
      {"batch", result.batch},
      {"iterations", result.iterations},
      {"warmup", result.warmup},
      {"latency_ms",
       {{"min", l.min_ms},
        {"mean", l.mean_ms},
        {"p50", l.p50_ms},
        {"p95", l.p95_ms},
        {"p99", l.p99_ms},
        {"max", l.max_ms}}},
      {"throughput_per_s", result.throughput_per_s},
      {"peak_memory_bytes", result.peak_memory_bytes},
      {"modelled", result.modelled},
      {"memory",
       {{"arena_bytes", result.memory.arena_bytes},
        {"workspace_bytes", result.memory.workspace_bytes},
        {"constant_bytes", result.memory.constant_bytes},
        {"prepared_bytes", result.memory.prepared_bytes}}},
      {"flops_per_run", result.flops_per_run},
      {"gflops", result.gflops},
      {"machine_gflops", result.machine_gflops},
      {"flops_of_limit", result.flops_of_limit},
      {"copies_per_run",
       {{"host_to_device_bytes", copies.host_to_device_bytes},
        {"device_to_host_bytes", copies.device_to_host_bytes},
        {"device_to_device_bytes", copies.device_to_device_bytes},
        {"alignment_bytes", copies.alignment_bytes},
        {"copies", copies.copies}}},
      {"power_w", OptionalJson(result.power_w)},
      {"energy_j_per_item", OptionalJson(result.energy_j_per_item)},
      {"power_reason", result.power_reason.empty() ? Json(nullptr) : Json(result.power_reason)},
      {"ops", std::move(ops)},
      {"histogram", HistogramJson(result)},
      {"advice", result.advice}};
}

std::string ToText(const BenchResult& result) {
  const LatencyFigures& l = result.latency;
  const std::string_view times = result.modelled ? " (modelled)" : "";
  std::string text = fmt::format(
      "device      {}, {} threads, batch {}\n"
      "latency{}  P50 {:.3f} ms, P95 {:.3f} ms, P99 {:.3f} ms (min {:.3f}, mean {:.3f}, max "
      "{:.3f}; {} runs after {} to warm up)\n"
      "throughput  {:.2f} per s{}\n"
      "memory      peak {} resident; activations {}, workspace {}, weights {}, packed weights {}\n"
      "arithmetic  {:.3f} GFLOP a run, {:.2f} GFLOP/s, {:.1f} % of this machine's {:.1f}\n",
      result.device, result.threads, result.batch, times, l.p50_ms, l.p95_ms, l.p99_ms, l.min_ms,
      l.mean_ms, l.max_ms, result.iterations, result.warmup, result.throughput_per_s, times,
      Mib(result.peak_memory_bytes), Mib(result.memory.arena_bytes),
      Mib(result.memory.workspace_bytes), Mib(result.memory.constant_bytes),
      Mib(result.memory.prepared_bytes), result.flops_per_run * 1e-9, result.gflops,
      result.flops_of_limit * 100, result.machine_gflops);
  const CopyStats& c = result.copies_per_run;
  text += fmt::format(
      "copies      host to device {} B, device to host {} B, device to device {} B, for alignment "
      "{} B a run\n",
      c.host_to_device_bytes, c.device_to_host_bytes, c.device_to_device_bytes, c.alignment_bytes);
  if (result.power_w) {
    text += fmt::format("power       {:.1f} W, {:.4g} J per item\n", *result.power_w,
                        *result.energy_j_per_item);
  } else {
    text += fmt::format("power       unknown: {}\n", result.power_reason);
  }
  for (size_t i = 0; i < std::min<size_t>(result.ops.size(), 8); ++i) {
    const OpTime& op = result.ops[i];
    text += fmt::format("{}{:<22} {:>9.3f} ms {:>5.1f} %  {} calls\n",
                        i == 0 ? "ops         " : "            ", op.op, op.ms, op.share * 100,
                        op.calls);
  }
  for (const std::string& line : result.advice) text += fmt::format("advice: {}\n", line);
  return text;
}

}  // namespace whimbrel
