// The timed loop and the figures around it.

#include "whimbrel/migrate/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "whimbrel/kernels/cpu/fma_peak.h"
#include "whimbrel/migrate/machine.h"

namespace whimbrel {
namespace {

// How often progress is told in one timed loop.
constexpr int kSlices = 20;
// Runs of the pass with a clock around each step, at most.
constexpr int kClockedRuns = 50;
// Samples that are kept for the chart.
constexpr size_t kKeptSamples = 2000;
// Length of the multiply-add loop, and rounds between two looks at the clock.
constexpr double kPeakSeconds = 0.1;
constexpr int64_t kPeakRounds = 100'000;

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// Time per step, summed over runs; booked before the first run.
class StepTimer final : public StepObserver {
 public:
  explicit StepTimer(size_t steps) : seconds_(steps, 0.0) {}
  void Before(size_t) override { start_ = Clock::now(); }
  void After(size_t step) override { seconds_[step] += Seconds(Clock::now() - start_); }
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  std::vector<double> seconds_;
  Clock::time_point start_;
};

// Branches count with the dearer one: it is the one a limit must allow for.
double FlopsOf(const Executable& executable) {
  double flops = 0;
  for (size_t s = 0; s < executable.steps().size(); ++s) {
    const PlanStep& step = executable.steps()[s];
    if (step.branch_inputs.empty()) {
      flops += step.cost.flops;
      continue;
    }
    double dearest = 0;
    for (size_t b = 0; b < step.branch_inputs.size(); ++b) {
      if (const Executable* branch = executable.branch(s, b))
        dearest = std::max(dearest, FlopsOf(*branch));
    }
    flops += dearest;
  }
  return flops;
}

CopyStats PerRun(const CopyStats& before, const CopyStats& after, uint64_t runs) {
  return {.host_to_device_bytes = (after.host_to_device_bytes - before.host_to_device_bytes) / runs,
          .device_to_host_bytes = (after.device_to_host_bytes - before.device_to_host_bytes) / runs,
          .device_to_device_bytes =
              (after.device_to_device_bytes - before.device_to_device_bytes) / runs,
          .alignment_bytes = (after.alignment_bytes - before.alignment_bytes) / runs,
          .copies = (after.copies - before.copies) / runs};
}

// Runs until both `seconds` and `min_iterations` are reached, or `samples` is full. Nothing in here
// allocates: `samples` was booked before, and progress is told between slices only.
void TimedLoop(Executable& executable, Stream& stream, const std::vector<Tensor>& inputs,
               const BenchOptions& options, std::vector<double>& samples) {
  const auto start = Clock::now();
  for (int slice = 1; samples.size() < samples.capacity(); ++slice) {
    const double until = options.seconds * slice / kSlices;
    double now = Seconds(Clock::now() - start);
    const bool last = slice >= kSlices;
    const auto wanted = static_cast<size_t>(std::max<int64_t>(options.min_iterations, 1));
    while (samples.size() < samples.capacity() &&
           (now < until || (last && samples.size() < wanted))) {
      const auto begin = Clock::now();
      executable.Run(stream, inputs);
      const auto end = Clock::now();
      samples.push_back(Seconds(end - begin) * 1e3);
      now = Seconds(end - start);
    }
    if (options.progress) options.progress(static_cast<double>(slice) / kSlices);
    if (last) return;
  }
}

std::vector<OpTime> TimeOps(Executable& executable, Stream& stream,
                            const std::vector<Tensor>& inputs, double budget_s) {
  StepTimer timer(executable.steps().size());
  executable.SetObserver(&timer);
  int runs = 0;
  for (const auto start = Clock::now();
       runs < kClockedRuns && (runs == 0 || Seconds(Clock::now() - start) < budget_s); ++runs) {
    executable.Run(stream, inputs);
  }
  executable.SetObserver(nullptr);
  std::map<std::string, OpTime> by_op;
  double all_ms = 0;
  for (size_t s = 0; s < executable.steps().size(); ++s) {
    const PlanStep& step = executable.steps()[s];
    const std::string name = step.schema == nullptr ? "layout" : std::string(step.schema->name);
    OpTime& op = by_op[name];
    op.op = name;
    ++op.calls;
    op.ms += timer.seconds()[s] * 1e3 / runs;
    all_ms += timer.seconds()[s] * 1e3 / runs;
  }
  std::vector<OpTime> ops;
  for (auto& [name, op] : by_op) {
    op.share = all_ms > 0 ? op.ms / all_ms : 0;
    ops.push_back(op);
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [](const OpTime& a, const OpTime& b) { return a.ms > b.ms; });
  return ops;
}

// Every n-th of the sorted samples, ends included.
std::vector<double> Thinned(const std::vector<double>& sorted) {
  if (sorted.size() <= kKeptSamples) return sorted;
  std::vector<double> thinned;
  for (size_t i = 0; i < kKeptSamples; ++i)
    thinned.push_back(sorted[i * (sorted.size() - 1) / (kKeptSamples - 1)]);
  return thinned;
}

// Runs before the timed loop, and room for its samples: what the fastest of them would give, and a
// reserve.
std::vector<double> WarmUp(Executable& executable, Stream& stream,
                           const std::vector<Tensor>& inputs, const BenchOptions& options) {
  double fastest_s = 1;
  for (int64_t i = 0; i < std::max<int64_t>(options.warmup, 1); ++i) {
    const auto begin = Clock::now();
    executable.Run(stream, inputs);
    fastest_s = std::min(fastest_s, Seconds(Clock::now() - begin));
  }
  // 16 million samples are 128 MiB.
  const double expected = 2 * options.seconds / std::max(fastest_s, 1e-7) + 1000;
  std::vector<double> samples;
  samples.reserve(std::max(static_cast<size_t>(std::min(expected, 16e6)),
                           static_cast<size_t>(std::max<int64_t>(options.min_iterations, 1))));
  return samples;
}

}  // namespace

double Percentile(const std::vector<double>& sorted, double percent) {
  WHIMBREL_CHECK(!sorted.empty());
  const auto rank =
      static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

double MeasureMachineGflops(int threads) {
  RunFmaLoop(kPeakRounds);  // wakes the wide units
  std::vector<double> rates(static_cast<size_t>(std::max(threads, 1)), 0.0);
  std::vector<std::thread> workers;
  workers.reserve(rates.size());
  for (double& rate : rates) {
    workers.emplace_back([&rate] {
      const auto start = Clock::now();
      double flops = 0;
      double elapsed = 0;
      while (elapsed < kPeakSeconds) {
        flops += RunFmaLoop(kPeakRounds);
        elapsed = Seconds(Clock::now() - start);
      }
      rate = flops / elapsed;
    });
  }
  for (std::thread& worker : workers) worker.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0) * 1e-9;
}

BenchResult Bench(Executable& executable, Stream& stream, int threads,
                  const std::vector<Tensor>& inputs, const BenchOptions& options) {
  Device& device = executable.device();
  BenchResult result;
  result.device = device.info().name;
  result.threads = threads;
  result.batch = options.batch;
  result.modelled = device.info().emulated;
  result.machine_gflops = MeasureMachineGflops(threads);
  const bool peak_is_ours = ResetPeakMemory();

  std::vector<double> samples = WarmUp(executable, stream, inputs, options);
  result.warmup = std::max<int64_t>(options.warmup, 1);
  result.advice = executable.advice();
  EnergyMeter energy;
  const CopyStats copies = device.copies();
  energy.Start();
  const auto start = Clock::now();
  TimedLoop(executable, stream, inputs, options, samples);
  const double elapsed_s = Seconds(Clock::now() - start);
  const std::optional<double> joules = energy.Joules();
  result.copies_per_run = PerRun(copies, device.copies(), samples.size());
  result.peak_memory_bytes = PeakMemoryBytes();
  if (!peak_is_ours) {
    result.advice.push_back(
        "peak memory is that of the whole process: /proc/self/clear_refs cannot be written");
  }

  result.iterations = static_cast<int64_t>(samples.size());
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  std::sort(samples.begin(), samples.end());
  const double mean = sum / static_cast<double>(samples.size());
  result.latency = {.min_ms = samples.front(),
                    .mean_ms = mean,
                    .p50_ms = Percentile(samples, 50),
                    .p95_ms = Percentile(samples, 95),
                    .p99_ms = Percentile(samples, 99),
                    .max_ms = samples.back()};
  result.throughput_per_s = static_cast<double>(options.batch) * 1e3 / mean;
  result.memory = executable.memory();
  result.flops_per_run = FlopsOf(executable);
  result.gflops = result.flops_per_run / (mean * 1e6);
  result.flops_of_limit = result.machine_gflops > 0 ? result.gflops / result.machine_gflops : 0;
  result.power_reason = energy.reason();
  if (joules && elapsed_s > 0) {
    result.power_w = *joules / elapsed_s;
    result.energy_j_per_item = *joules / static_cast<double>(result.iterations * options.batch);
  }
  result.samples_ms = Thinned(samples);
  if (options.per_op) result.ops = TimeOps(executable, stream, inputs, options.seconds / 10);
  return result;
}

std::optional<size_t> BestBatch(const std::vector<SweepPoint>& points,
                                std::optional<double> p99_ms) {
  std::optional<size_t> best;
  for (size_t i = 0; i < points.size(); ++i) {
    if (p99_ms && points[i].result.latency.p99_ms > *p99_ms) continue;
    if (!best || points[i].result.throughput_per_s > points[*best].result.throughput_per_s)
      best = i;
  }
  return best;
}

}  // namespace whimbrel
