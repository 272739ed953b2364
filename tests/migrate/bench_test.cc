// bench: percentiles, the sweep's choice, energy counters, and a run that allocates nothing.

#include "whimbrel/migrate/bench.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "whimbrel/migrate/machine.h"

// Counts every allocation of this program.
static std::atomic<int64_t> allocations{0};

// Not inlined: g++ 12 would take malloc and delete for a pair that does not match.
[[gnu::noinline]] void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// The form that does not throw ends here too: a sanitizer minds memory of one family freed by another.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace whimbrel {
namespace {

using testing::HasSubstr;

TEST(Percentile, IsByNearestRank) {
  const std::vector<double> sorted{1, 2, 3, 4};
  EXPECT_EQ(Percentile(sorted, 50), 2);
  EXPECT_EQ(Percentile(sorted, 51), 3);
  EXPECT_EQ(Percentile(sorted, 99), 4);
  EXPECT_EQ(Percentile({7}, 1), 7);
}

SweepPoint Point(int64_t batch, double per_s, double p99) {
  SweepPoint point;
  point.batch = batch;
  point.result.throughput_per_s = per_s;
  point.result.latency.p99_ms = p99;
  return point;
}

TEST(BestBatch, IsTheFastestWithinTheLimit) {
  const std::vector<SweepPoint> points{Point(1, 10, 5), Point(2, 18, 9), Point(4, 30, 20)};
  EXPECT_EQ(BestBatch(points, std::nullopt), 2U);
  EXPECT_EQ(BestBatch(points, 10.0), 1U);
  EXPECT_EQ(BestBatch(points, 1.0), std::nullopt);
}

TEST(Bench, MeasuresAModel) {
  const std::string path = std::string(WHIMBREL_TEST_DATA) + "/derived/rnet_extdata/model.onnx";
  const Graph imported = ImportOnnx(path);
  const CompiledGraph compiled = CompileGraph(imported, {});
  const auto device = OpenDevice("cpu:0");
  const auto stream = device->CreateStream({.threads = 1});
  Executable executable(compiled.graph, device);
  std::vector<Tensor> inputs;
  for (const InputShape& shape : compiled.shapes) {
    Tensor tensor = Tensor::Host(DType::kFloat, shape.shape);
    for (float& value : tensor.values<float>()) value = 0.5F;
    inputs.push_back(tensor);
  }
  BenchOptions options;
  options.seconds = 0.05;
  options.min_iterations = 12;
  const BenchResult result = Bench(executable, *stream, 1, inputs, options);
  EXPECT_GE(result.iterations, 12);
  EXPECT_LE(result.latency.min_ms, result.latency.p50_ms);
  EXPECT_LE(result.latency.p50_ms, result.latency.p99_ms);
  EXPECT_GT(result.throughput_per_s, 0);
  EXPECT_GT(result.flops_per_run, 1e5);
  EXPECT_GT(result.machine_gflops, 0.1);
  EXPECT_GT(result.peak_memory_bytes, uint64_t{1} << 20);
  EXPECT_FALSE(result.ops.empty());
  EXPECT_EQ(result.copies_per_run.host_to_device_bytes, 0U);
  const Json json = ToJson(result);
  for (const char* key : {"device", "threads", "batch", "iterations", "latency_ms",
                          "throughput_per_s", "peak_memory_bytes", "modelled"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  int64_t counted = 0;
  for (const Json& count : json["histogram"]["counts"]) counted += count.get<int64_t>();
  EXPECT_EQ(counted, static_cast<int64_t>(result.samples_ms.size()));
}

// One Relu: no library below has a say (oneDNN makes a small map for each primitive that it runs).
Graph ReluGraph() {
  Graph graph;
  graph.opsets[""] = 13;
  ValueInfo info;
  info.dtype = DType::kFloat;
  info.dims = Dims{64, 64};
  Node node;
  node.op = node.name = "Relu";
  node.opset = 13;
  node.schema = Registry::Get().Find("", "Relu", 13);
  node.inputs = {graph.AddValue("x", info)};
  node.outputs = {graph.AddValue("y")};
  graph.inputs = node.inputs;
  graph.outputs = node.outputs;
  graph.nodes.push_back(node);
  return graph;
}

TEST(Bench, TheTimedLoopAllocatesNothing) {
  const CompiledGraph compiled = CompileGraph(ReluGraph(), {});
  const auto device = OpenDevice("cpu:0");
  const auto stream = device->CreateStream({.threads = 2});
  Executable executable(compiled.graph, device);
  const std::vector<Tensor> inputs{
      Tensor::FromValues(Shape{64, 64}, std::vector<float>(64 * 64, -1.0F))};
  // Between the first and the last slice told of, hundreds of runs happen.
  int64_t first = -1;
  int64_t last = -1;
  BenchOptions options;
  options.seconds = 0.1;
  options.progress = [&](double) {
    last = allocations.load();
    if (first < 0) first = last;
  };
  const BenchResult result = Bench(executable, *stream, 2, inputs, options);
  EXPECT_GT(result.iterations, 10);
  EXPECT_EQ(last - first, 0);
}

class EnergyFolder {
 public:
  EnergyFolder() {
    std::string pattern = testing::TempDir() + "whimbrel-rapl-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~EnergyFolder() { std::filesystem::remove_all(root_); }
  void Write(const std::string& folder, const std::string& file, double value) {
    std::filesystem::create_directories(root_ + "/" + folder);
    std::ofstream(root_ + "/" + folder + "/" + file) << std::fixed << value;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

TEST(EnergyMeter, AddsPackagesAndMindsTheWrap) {
  EnergyFolder folder;
  folder.Write("intel-rapl:0", "energy_uj", 100);
  folder.Write("intel-rapl:0", "max_energy_range_uj", 1e7);
  folder.Write("intel-rapl:1", "energy_uj", 9e6);
  folder.Write("intel-rapl:1", "max_energy_range_uj", 1e7);
  folder.Write("intel-rapl:0:0", "energy_uj", 5);  // part of package 0
  EnergyMeter meter(folder.root());
  EXPECT_EQ(meter.reason(), "");
  meter.Start();
  folder.Write("intel-rapl:0", "energy_uj", 2000100);
  folder.Write("intel-rapl:1", "energy_uj", 1e6);
  ASSERT_TRUE(meter.Joules().has_value());
  EXPECT_NEAR(*meter.Joules(), 2 + 2, 1e-9);
}

TEST(EnergyMeter, SaysWhyItShowsNothing) {
  EnergyFolder folder;
  const EnergyMeter meter(folder.root());
  EXPECT_THAT(meter.reason(), HasSubstr("RAPL"));
  EXPECT_EQ(meter.Joules(), std::nullopt);
}

}  // namespace
}  // namespace whimbrel
