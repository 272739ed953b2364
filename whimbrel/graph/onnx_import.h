// onnx_import: ONNX model files to Graph, opset 7 and up, with external data beside the file.

#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "whimbrel/graph/ir.h"

namespace whimbrel {

// The newest opset of ai.onnx whose operators are known. Nodes of newer ones are imported as
// unknown: an op may mean something else there.
constexpr int kNewestOpset = 28;

struct ImportLimits {
  size_t model_bytes = size_t{2} << 30;  // protobuf's own limit
  int recursion = 64;                    // nested graphs
  int nodes = 1'000'000;
};

// kInvalidData names path and cause (truncated, not ONNX, cycle, missing value, opset below 7...).
// Unknown ops and domains are imported with schema == nullptr: scan reports them, CompileGraph
// refuses.
Graph ImportOnnx(const std::string& path, const ImportLimits& limits = {});
// A model in memory: external data is refused unless `directory` says where it lies.
Graph ImportOnnxBytes(std::span<const std::byte> bytes, const std::string& source,
                      const std::string& directory, const ImportLimits& limits = {});

// Throws kUnsupported naming op, domain, version and node of the first unknown op, with the count
// of the others.
void RequireKnownOps(const Graph& graph);

}  // namespace whimbrel
