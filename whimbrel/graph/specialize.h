// specialize: a graph for concrete input shapes: constants folded, shape computations gone, decided
// branches inlined.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "whimbrel/graph/ir.h"

namespace whimbrel {

struct InputShape {
  std::string name;
  Shape shape;
};

// Sets the dims of the named inputs. kInvalidArgument for an unknown name, a rank or a fixed dim
// that differs (naming both), or a symbol that would get two values.
void BindInputShapes(Graph& graph, const std::vector<InputShape>& shapes);

// Dims that are still open become 1; returns "NAME: dim 0 (N) = 1" for each, to be shown to the
// user.
std::vector<std::string> BindOpenDimsToOne(Graph& graph);

// In one walk: infers, computes nodes whose inputs are all constant with the reference kernels,
// turns integer values that inference knows completely (Shape of a known shape) into constants,
// replaces an If whose condition is constant by its branch, and drops what is then unused. Values
// keep their names. Folding stops at 1 GiB and 1e9 FLOPs in all (more when the file itself holds
// more); the run does the rest.
void SpecializeGraph(Graph& graph);

}  // namespace whimbrel
