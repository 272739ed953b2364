// work: one model on one device with its inputs, opened only as far as the stages need it.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "whimbrel/base/json.h"
#include "whimbrel/graph/graph.h"
#include "whimbrel/migrate/align.h"

namespace whimbrel {

struct WorkOptions {
  std::string model;
  std::string device;
  int threads = 0;
  std::vector<std::pair<std::string, Tensor>> inputs;
  std::string fusion_switch_file;
  AlignTolerance tolerance;
};

class Work {
 public:
  // Hashes the model's files. kInvalidArgument for a package, kNotFound for missing files.
  explicit Work(const WorkOptions& options);

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }  // stem of what is written
  const std::string& model_sha256() const { return model_sha256_; }
  const std::string& inputs_sha256() const { return inputs_sha256_; }
  int threads() const { return threads_; }  // resolved
  const std::shared_ptr<Device>& device() const { return device_; }
  const FusionSwitches& switches() const { return switches_; }
  const AlignTolerance& tolerance() const { return options_.tolerance; }
  std::string scan_target() const;  // for the device
  Json ShapesJson() const;          // by name

  // Read and compiled at the first use.
  const Graph& imported();
  const CompiledGraph& compiled();
  const std::vector<Tensor>& inputs();  // in graph order; kInvalidArgument when one is missing
  std::vector<InputShape> shapes() const;

  // Keys of the stages: SHA-256 of all that their results depend on.
  std::string ScanKey() const;
  std::string CompileKey() const;
  std::string AlignKey() const;
  std::string BenchKey(double seconds) const;
  std::string PackageKey() const;

 private:
  WorkOptions options_;
  std::string path_;
  std::string name_;
  std::string model_sha256_;
  std::string inputs_sha256_;
  std::string tool_;
  int threads_ = 0;
  std::shared_ptr<Device> device_;
  FusionSwitches switches_;
  std::unique_ptr<Graph> imported_;
  std::optional<CompiledGraph> compiled_;
  std::vector<Tensor> ordered_;
};

// JSON as a later reader of the manifest sees it: NaN and Inf are null, numbers as they are
// printed.
Json AsWritten(const Json& json);

// Stages as results to record. `progress`: share done and what is being done, may be empty.
using StageProgress = std::function<void(double fraction, const std::string& detail)>;
Json ScanStage(Work& work);
Json CompileStage(Work& work);
Json AlignStage(Work& work, const StageProgress& progress, std::vector<Tensor>* reference_outputs);
Json BenchStage(Work& work, double seconds, const StageProgress& progress);

}  // namespace whimbrel
