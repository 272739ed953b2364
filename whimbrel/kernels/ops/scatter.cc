// Scatter: the older name of ScatterElements, without reduction.
//
// in   data     any type, rank >= 1
//      indices  i32 | i64, same rank; negative: from the end
//      updates  type of data, shape of indices
// attr axis     int, default 0
// out  output   like data
// Deprecated at 11, and taken there too: exporters went on to write it.
// Source: ONNX operator Scatter (9, 11).

#include "whimbrel/kernels/ops/scatter.h"

namespace whimbrel {
namespace {

WHIMBREL_REGISTER(
    ScatterElementsSchema("Scatter", 9, INT_MAX, kAllTypesTo12,
                          {"f32:3x3 i64:2x3={1,0,2,0,2,1} f32:2x3",
                           "f32:1x5 i64:1x2={1,3} f32:1x2 axis=1", "i32:5 i32:3={0,-1,2} i32:3",
                           "f16:7x17 i64:7x2={0,1,0,1,0,1,0,1,0,1,0,1,-1,-2} f16:7x2 axis=1",
                           "f32:3x4 i64:0x4 f32:0x4", "bool:3 i64:1={1} bool:1 opset=11"}));
WHIMBREL_REGISTER(Kernel{.op = "Scatter", .name = "reference", .run = RunScatterElements});

}  // namespace
}  // namespace whimbrel
