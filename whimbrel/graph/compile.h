// compile: an imported graph made ready for one set of input shapes: specialised, then rewritten by
// the passes.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/graph/ir.h"
#include "whimbrel/graph/specialize.h"

namespace whimbrel {

// Which passes run. The vendor's file form: {"Switch":{"GraphFusion":{"ConvBnAct":"off"}}}; "ALL"
// stands for every pass. Unknown names are errors that name the nearest pass.
class FusionSwitches {
 public:
  static FusionSwitches FromFile(const std::string& path);
  static FusionSwitches FromJson(std::string_view text, std::string_view source);
  void Set(std::string_view pass, bool on);  // kInvalidArgument for an unknown pass
  bool on(std::string_view pass) const;
  // "ConvBnAct=off ..." for the package key; empty when all are on.
  std::string ToText() const;

 private:
  std::vector<std::string> off_;
};

// What a pass did to one node, for `compile --explain`.
struct PassNote {
  std::string pass;
  std::string node;
  std::string text;  // "took bn_1, relu_2"
};

// A graph rewrite. Passes keep the names of the values that survive.
struct Pass {
  std::string_view name;
  std::string_view summary;
  int order = 0;  // ascending
  void (*run)(Graph& graph, std::vector<PassNote>& notes) = nullptr;
};
const std::vector<Pass>& Passes();  // by order
struct RegisterPass {
  explicit RegisterPass(const Pass& pass);
};

struct CompileOptions {
  std::vector<InputShape> shapes;  // dims left open become 1 and are listed in `assumed`
  FusionSwitches switches;
  bool optimize = true;  // false: specialise only
};

struct CompiledGraph {
  std::shared_ptr<const Graph> graph;
  std::vector<InputShape> shapes;    // of every input, as bound
  std::vector<std::string> assumed;  // "x: dim 0 (N) = 1"
  std::vector<PassNote> notes;
};

// Throws kUnsupported for unknown ops (RequireKnownOps), kInvalidArgument for shapes that do not
// fit, kInvalidData for a model that contradicts itself.
CompiledGraph CompileGraph(const Graph& imported, const CompileOptions& options);

}  // namespace whimbrel
