// ScatterElements: y = data, then y[i, .., indices[i, .., j], .., j] = f(y[..], updates[i, .., j]).
//
// in   data     any type, rank >= 1
//      indices  i32 | i64, same rank; other dims than the axis at most those of data; negative:
//               from the end
//      updates  type of data, shape of indices
// attr axis     int, default 0
//      reduction  string, from 16: none (default), add, mul; from 18 max, min
// out  output   like data
// Of two updates of one place the last wins. Source: ONNX operator ScatterElements (11, 13, 16,
// 18).

#include "whimbrel/kernels/ops/scatter.h"

namespace whimbrel {
namespace {

WHIMBREL_REGISTER(ScatterElementsSchema("ScatterElements", 11, 13, kAllTypesTo12,
                                        {"f32:3x3 i64:2x3={1,0,2,0,2,1} f32:2x3",
                                         "i32:5 i32:3={0,-1,2} i32:3"}));
WHIMBREL_REGISTER(ScatterElementsSchema("ScatterElements", 13, 16, kAllTypes,
                                        {"bf16:1x5 i64:1x2={1,3} bf16:1x2 axis=1"}));
WHIMBREL_REGISTER(ScatterElementsSchema("ScatterElements", 16, 18, kAllTypes,
                                        {"f32:1x5 i64:1x2={1,1} f32:1x2 axis=1 reduction=add",
                                         "i8:3 i64:2={0,0} i8:2={100,100} reduction=mul"}));
WHIMBREL_REGISTER(ScatterElementsSchema(
    "ScatterElements", 18, INT_MAX, kAllTypes,
    {"f32:3x16 i64:2x16@0..2 f32:2x16", "f32:1 i64:1={0} f32:1", "f32:5 i64:3={2,2,2} f32:3",
     "f32:3x4 i64:0x4 f32:0x4", "f32:0x4 i64:0x2 f32:0x2 axis=1",
     "f32:5 i64:4={1,1,1,-4} f32:4 reduction=add", "f32:5 i64:4={1,1,1,-4} f32:4 reduction=mul",
     "f32:5 i64:4={1,1,1,-4} f32:4 reduction=max", "f32:5 i64:4={1,1,1,-4} f32:4 reduction=min",
     "f16:7x17 i64:7x9@-17..16 f16:7x9 axis=1 reduction=add",
     "bf16:7x17 i32:3x17@0..6 bf16:3x17 reduction=max", "f64:2x3x4 i64:2x2x4@0..2 f64:2x2x4 axis=1",
     "i64:4 i64:2={3,3} i64:2 reduction=add", "u8:4 i64:2={3,3} u8:2 reduction=min",
     "bool:4 i64:3={3,3,0} bool:3 reduction=add", "bool:4 i64:3={3,3,0} bool:3 reduction=mul",
     "f32:8 i64:8@0..7 f32:8 reduction=max nan=1", "f32:8 i64:8@0..7 f32:8 reduction=min nan=1",
     "f32:1000x64 i64:100x64@0..999 f32:100x64"}));
WHIMBREL_REGISTER(Kernel{.op = "ScatterElements", .name = "reference", .run = RunScatterElements});

}  // namespace
}  // namespace whimbrel
