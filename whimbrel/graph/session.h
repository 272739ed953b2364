// Session: a model file opened for running: compiles for the shapes that come and keeps the
// executables.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "whimbrel/graph/compile.h"
#include "whimbrel/graph/executable.h"
#include "whimbrel/graph/package.h"

namespace whimbrel {

struct SessionOptions {
  std::string device = "cpu:0";
  int threads = 0;  // 0 = all available cores
  FusionSwitches switches;
  bool only_reference = false;
  VerifyMode verify = VerifyMode::kAuto;
  size_t max_executables = 8;  // least recently used shapes are dropped beyond this
};

struct TensorSpec {
  std::string name;
  DType dtype = DType::kUndefined;
  std::optional<Dims> dims;  // nullopt = rank unknown
};

// Not thread-safe.
class Session {
 public:
  // MODEL: an ONNX file, a .wbl, or a folder holding model.onnx. A package's probes are run here.
  static std::unique_ptr<Session> Open(const std::string& path, const SessionOptions& options);

  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  bool is_package() const { return package_ != nullptr; }
  const Graph* imported() const { return imported_.get(); }          // null for packages
  const PackageContents* package() const { return package_.get(); }  // null for ONNX files
  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& device_handle() const { return device_; }
  Stream& stream() const { return *stream_; }

  // The executable for these input shapes (graph input order); compiles it when new. A package
  // serves only its buckets: another shape is kInvalidArgument naming them.
  Executable& Prepare(const std::vector<Shape>& shapes);
  // Open dims as 1, or the first bucket of a package; `assumed` lists what was assumed.
  Executable& PrepareDefault(const std::vector<InputShape>& shapes,
                             std::vector<std::string>* assumed);
  // Runs on the stream and returns the outputs as copies that stay valid.
  std::vector<Tensor> Run(const std::vector<Tensor>& inputs);

 private:
  Session() = default;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  SessionOptions options_;
  std::unique_ptr<Graph> imported_;
  std::unique_ptr<PackageContents> package_;
  std::vector<TensorSpec> inputs_;
  std::vector<TensorSpec> outputs_;
  struct Entry {
    std::unique_ptr<Executable> executable;
    uint64_t last_use = 0;
  };
  std::map<std::string, Entry> executables_;
  uint64_t clock_ = 0;
};

// The file that MODEL means: itself, or model.onnx / the only .onnx of a folder. And the stem that
// artefacts take: of the file name, or the folder's name when MODEL is a folder or the file is
// model.onnx.
std::string ResolveModelPath(const std::string& model);
std::string ModelStem(const std::string& model);

}  // namespace whimbrel
