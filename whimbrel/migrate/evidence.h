// evidence: what travels inside a package: coverage, plans, error per layer, versions, options and
// probes.

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "whimbrel/base/json.h"
#include "whimbrel/graph/graph.h"
#include "whimbrel/migrate/align.h"

namespace whimbrel {

// Everything that a package is a function of. Tensors in graph input and output order.
struct PackageParts {
  std::string model_name;    // ModelStem
  std::string model_sha256;  // HashModel
  DeviceKind device = DeviceKind::kCpu;
  int threads = 0;  // resolved: sums are split by it
  FusionSwitches switches;
  AlignTolerance tolerance;
  CompiledGraph compiled;
  std::vector<Tensor> inputs;
  std::vector<Tensor> reference_outputs;
};

// `scan`, `align`: ToJson of the two results, as DumpJson writes them (NaN is null).
PackageContents BuildPackage(const PackageParts& parts, const Json& scan, const Json& align);

// SHA-256 of the tensors with their names, types and shapes.
std::string HashInputs(const std::vector<std::pair<std::string, Tensor>>& inputs);

// Tensors as one file of raw bytes, and their description; reading gives nothing when the file is
// missing, or not the one described.
Json WriteTensors(const std::string& path, const std::vector<Tensor>& tensors);
std::vector<Tensor> ReadTensors(const std::string& path, const Json& description);

}  // namespace whimbrel
