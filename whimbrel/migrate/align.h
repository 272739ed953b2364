// align: the fast plan against the float64 reference, layer by layer in bounded memory, first
// divergence named.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "whimbrel/base/json.h"
#include "whimbrel/graph/graph.h"

namespace whimbrel {

// |a - b| <= tolerance * max(1, |ref|) per element of a layer; the end-to-end rule is |a - b| <=
// atol + rtol |ref|.
struct AlignTolerance {
  double elementwise = 1e-5;
  double matrix = 1e-3;
  double rtol = 1e-3;
  double atol = 1e-4;
  // Layers and outputs of 16-bit floats: elementwise, matrix and end to end are never below these.
  double float16 = 2e-2;
  double bfloat16 = 8e-2;
};

// How far one tensor is from another.
struct ErrorFigures {
  double cosine = 1;  // of the two as vectors; 1 when both are all zero
  double max_abs = 0;
  double max_rel = 0;      // |a - b| / max(|ref|, 1e-6)
  double worst_ratio = 0;  // largest |a - b| over what the tolerance allows; > 1 fails
  int64_t worst_index = -1;
  int64_t elements = 0;
  int64_t nan_mismatch = 0;
};

struct AlignLayer {
  std::string name;  // of the plan's step; "If_0/then_branch/Conv_3" inside branches
  std::string op;    // FusedConv, ...
  std::string kernel;
  std::string output;
  std::vector<std::string> origins;  // the model's nodes it stands for
  ErrorFigures own;                  // on the reference's own inputs: this layer's error alone
  ErrorFigures chained;              // error carried from the input to here
  double tolerance = 0;
  bool ok = true;
};

struct AlignResult {
  bool pass = true;
  std::string first_bad_layer;  // empty when none
  std::vector<AlignLayer> layers;
  struct Output {
    std::string name;
    ErrorFigures figures;
    bool ok = true;
  };
  std::vector<Output> outputs;  // end to end
  std::string reference;        // "reference"
  std::string device;
  std::string inputs;                     // "seed 1" or the files
  size_t peak_bytes = 0;                  // most tensor memory that the reference side held at once
  std::vector<Tensor> reference_outputs;  // in graph order: what a probe expects
};

struct AlignOptions {
  std::string device = "cpu:0";
  int threads = 0;
  AlignTolerance tolerance;
  FusionSwitches switches;
  std::vector<InputShape> shapes;
  std::function<void(size_t done, size_t total, const std::string& layer)> progress;
};

// Runs the imported graph with reference kernels and the compiled plan side by side. A layer is
// judged as soon as the reference has its outputs, and tensors are dropped after their last use.
// Branches of If are followed into the one that the reference takes. Tensors that a fusion removed
// are compared at the fusion's output.
AlignResult Align(const Graph& imported, const std::vector<Tensor>& inputs,
                  const AlignOptions& options);

// The reference's outputs alone: what probes are made from.
std::vector<Tensor> RunReference(const Graph& imported, const std::vector<Tensor>& inputs);

ErrorFigures Compare(const Tensor& value, const Tensor& reference, double rtol, double atol);

Json ToJson(const AlignResult& result);
std::string ToText(const AlignResult& result);

}  // namespace whimbrel
