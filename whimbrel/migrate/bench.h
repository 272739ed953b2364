// bench: latency percentiles, throughput, peak memory and FLOP/s against the machine's measured
// limit.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "whimbrel/base/json.h"
#include "whimbrel/graph/graph.h"

namespace whimbrel {

struct BenchOptions {
  double seconds = 3;
  int64_t min_iterations = 10;
  int64_t warmup = 3;
  int64_t batch = 1;   // items in one run, for the throughput
  bool per_op = true;  // one more pass with a timer around each step
  std::function<void(double fraction)> progress;
};

struct LatencyFigures {
  double min_ms = 0, mean_ms = 0, p50_ms = 0, p95_ms = 0, p99_ms = 0, max_ms = 0;
};

struct OpTime {
  std::string op;
  int64_t calls = 0;
  double ms = 0;  // per run
  double share = 0;
};

struct BenchResult {
  std::string device;
  int threads = 0;
  int64_t batch = 1;
  int64_t iterations = 0;
  int64_t warmup = 0;
  LatencyFigures latency;
  double throughput_per_s = 0;     // items (batch) a second at the mean latency
  uint64_t peak_memory_bytes = 0;  // resident peak of the process
  ExecutableMemory memory;
  double flops_per_run = 0;  // from the registry's costs
  double gflops = 0;
  double machine_gflops = 0;  // measured just before: FMA peak of the same threads
  double flops_of_limit = 0;  // gflops / machine_gflops
  CopyStats copies_per_run;   // bytes by kind
  std::optional<double> power_w;
  std::optional<double> energy_j_per_item;
  std::string power_reason;        // why null
  std::vector<OpTime> ops;         // largest first
  std::vector<double> samples_ms;  // sorted; thinned to at most 2,000 for the chart
  bool modelled = false;           // times from an emulator's cost model
  std::vector<std::string> advice;
};

// `threads` is what the stream was made with, 0 resolved. The timed loop allocates nothing.
BenchResult Bench(Executable& executable, Stream& stream, int threads,
                  const std::vector<Tensor>& inputs, const BenchOptions& options);

// The `percent`-th percentile by nearest rank; `sorted` is ascending and not empty.
double Percentile(const std::vector<double>& sorted, double percent);

// Best single-precision FMA rate of `threads` threads, in GFLOP/s, measured for ~0.1 s.
double MeasureMachineGflops(int threads);

// The contract's object; `histogram` holds the samples in equal bins.
Json ToJson(const BenchResult& result);
std::string ToText(const BenchResult& result);

// One batch size of a sweep.
struct SweepPoint {
  int64_t batch = 1;
  BenchResult result;
};
// Index of the point with the highest throughput whose P99 is at most p99_ms (no limit: of all);
// nullopt when none meets it.
std::optional<size_t> BestBatch(const std::vector<SweepPoint>& points,
                                std::optional<double> p99_ms);

}  // namespace whimbrel
