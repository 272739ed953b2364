// graph: IR, ONNX import, passes, planner, executor and package: from a model file to something
// that runs.

#pragma once

#include "whimbrel/graph/compile.h"
#include "whimbrel/graph/executable.h"
#include "whimbrel/graph/infer_graph.h"
#include "whimbrel/graph/ir.h"
#include "whimbrel/graph/memory_planner.h"
#include "whimbrel/graph/onnx_import.h"
#include "whimbrel/graph/package.h"
#include "whimbrel/graph/plan.h"
#include "whimbrel/graph/session.h"
#include "whimbrel/graph/specialize.h"
