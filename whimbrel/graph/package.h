// package: the .wbl file: manifest, compiled graphs and plans per bucket, memory-mapped weights,
// probes; every byte is hashed.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "whimbrel/base/json.h"
#include "whimbrel/graph/compile.h"
#include "whimbrel/graph/executable.h"

namespace whimbrel {

// One set of input shapes and the graph compiled for it. Weights are shared between buckets.
struct PackageBucket {
  std::vector<InputShape> shapes;  // in graph input order
  std::shared_ptr<const Graph> graph;
  // The plan as text, made for the CPU of the machine that wrote the package. Set by reading;
  // writing makes it anew.
  std::string plan = {};
};

// Inputs with the outputs that the package must give, checked at load.
struct PackageProbe {
  size_t bucket = 0;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;  // of the reference run
  double rtol = 1e-3;
  double atol = 1e-4;
};

// Which bytes of a mapped weights section are known to be good.
class PackageWeights;

struct PackageContents {
  // Pure function of model, options, target and tool version: no time, host or measured figure.
  std::shared_ptr<const Json> manifest;
  std::vector<PackageBucket> buckets;
  std::vector<PackageProbe> probes;
  // Set by reading; null for contents made in memory.
  std::shared_ptr<PackageWeights> weights = nullptr;
};

// Layout of the file, little endian:
//   header   64 bytes: magic "WHIMBRL1", format version u32, flags u32 (0), index offset u64, index
//   bytes u64,
//            SHA-256 of the index (32 bytes)
//   sections "manifest", "graphs", "plans", "weights", "probes", each starting at a multiple of 64;
//            padding belongs to the section before it
//   index    JSON: per section name, offset, bytes and the SHA-256 of each 1 MiB chunk; ends the
//   file
// The index is checked before anything else is believed; together with the header no byte is
// outside a hash. Returns the SHA-256 of the file. Atomic; equal contents give equal bytes on equal
// instruction sets. Throws kInvalidArgument for probes or shapes that do not fit their bucket, and
// what MakePlan throws.
std::string WritePackage(const std::string& path, const PackageContents& contents);

enum class VerifyMode : uint8_t {
  kAuto,  // full below 1 GiB, else weights chunk by chunk before their first use
  kFull,
  kLazy,
};

// Weights are views of the mapped file. A damaged byte is kInvalidData naming path and section,
// another format version or an op of a newer tool kUnsupported.
PackageContents ReadPackage(const std::string& path, VerifyMode mode = VerifyMode::kAuto);
// Call before the first use of a bucket's constants. Checks those chunks of the weights that the
// bucket's graph reads and that no earlier call has checked; nothing is left to do after
// VerifyMode::kFull. Thread-safe.
void VerifyWeights(const PackageContents& contents, size_t bucket);
bool LooksLikePackage(const std::string& path);

// Runs every probe; throws kInvalidData naming the first differing output with figures. Outputs
// must have the expected type and shape, and |got - expected| <= atol + rtol * |expected|; NaN
// equals NaN.
void CheckProbes(const PackageContents& contents, const std::string& source,
                 const std::shared_ptr<Device>& device, int threads);

}  // namespace whimbrel
