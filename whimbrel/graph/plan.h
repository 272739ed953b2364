// Plan: a specialised graph turned into ordered kernel calls with layouts, shared memory and arena
// offsets.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "whimbrel/graph/ir.h"
#include "whimbrel/graph/memory_planner.h"

namespace whimbrel {

struct PlanOptions {
  DeviceKind device = DeviceKind::kCpu;
  size_t alignment = 64;
  bool only_reference = false;  // rank-0 kernels, plain layout
};

enum class SlotKind : uint8_t {
  kConstant,  // has data
  kInput,     // bound by the caller at each run
  kCapture,   // of a branch: bound by the enclosing plan
  kArena,     // at `offset`
  kDynamic,   // shape known only at run time; memory from the pool
};

// One value in one layout.
struct PlanSlot {
  ValueId value = kNoValue;
  SlotKind kind = SlotKind::kArena;
  Tensor tensor;  // described; constants have data
  int root =
      -1;  // slot whose memory this one uses (itself, or the source of a view or in-place chain)
  size_t offset = 0;
  bool alias = false;  // shares the root's memory
};

struct PlanStep {
  int node = -1;  // index in graph.nodes; -1: a layout conversion
  std::string name;
  const OpSchema* schema = nullptr;
  const Attributes* attributes = nullptr;
  int opset = 0;
  const Kernel* kernel = nullptr;  // nullptr for dynamic steps: chosen at run time
  std::vector<std::string> declined;
  std::vector<int> inputs;   // slots, -1 = left out
  std::vector<int> outputs;  // slots, -1 = not asked for
  uint64_t constant_inputs = 0;
  bool dynamic = false;
  Cost cost;
  std::vector<std::vector<int>> branch_inputs;  // per branch: slots of its captures
};

// Branches are planned by whoever runs the plan (Executable), each as a plan of its own.
struct Plan {
  std::vector<PlanSlot> slots;
  std::vector<PlanStep> steps;
  std::vector<int> inputs;  // slots in graph order
  std::vector<int> outputs;
  std::vector<int> captures;
  std::vector<size_t> staging_offsets;  // per input: arena space for a misaligned caller's copy
  MemoryPlan memory;
  size_t constant_bytes = 0;  // constants that some step reads
};

// The graph must be specialised and outlive the plan (attributes, constants). Throws kUnsupported
// naming op, node, types and every kernel's reason when no kernel accepts a call.
Plan MakePlan(const Graph& graph, const PlanOptions& options);

// Step by step: kernel, layouts, offsets. For tests, `compile --explain` and the package's plan
// section.
std::string ToText(const Plan& plan, const Graph& graph);

}  // namespace whimbrel
