// infer_graph: types, dims and known values of every value of a graph.

#pragma once

#include "whimbrel/graph/ir.h"

namespace whimbrel {

// A helper of an op blames its argument; where the argument came out of a model, the model is to
// blame.
Error OfModel(const Error& error);

// Infers one node from its inputs' infos; the outputs' infos are replaced. The error names the
// node.
void InferNode(Graph& graph, Node& node);

// Infers every node in order. `graph.inputs` and captures must be described. Branches are inferred
// with the captures' infos; a branch that cannot work with them is marked refused and its outputs
// are unknown.
void InferGraph(Graph& graph);

}  // namespace whimbrel
