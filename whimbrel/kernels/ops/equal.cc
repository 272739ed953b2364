// Equal: y = a == b, broadcast; NaN equals nothing.
//
// in   A, B  any type, one type, broadcast against each other
// out  C     bool
// Source: ONNX operator Equal (7, 11, 13, 19).

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

// A plain symbol names a dimension, and those are never negative: what Equal(shape, -1) in an
// exported expand() asks. Expressions may be negative.
bool IsPlainSymbol(const Dim& d) {
  return !d.known() && !d.text().empty() && d.text()[0] != '(';
}

Dim ElementsEqual(const Dim& a, const Dim& b) {
  if (a.Same(b)) return 1;
  if (a.known() && b.known()) return 0;
  if (IsPlainSymbol(a) && b.known() && b.value() < 0) return 0;
  if (IsPlainSymbol(b) && a.known() && a.value() < 0) return 0;
  return Dim();
}

void Infer(InferContext& c) {
  InferBroadcastBool(c);
  SetBroadcastElements(c, ElementsEqual);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  BinaryReference<kAllTypes, bool>(call, [](auto a, auto b) { return a == b; });
}

WHIMBREL_REGISTER(MakeSchema({.name = "Equal",
                              .since = 7,
                              .until = 11,
                              .types = kBoolType | kIndexTypes,
                              .out_types = kBoolType,
                              .inputs = {"A", "B"},
                              .output = "C",
                              .infer = Infer,
                              .samples = {"i32:3x4@0..2 i32:4@0..2", "i64:5@0..2 i64:1@0..2",
                                          "bool:6 bool:6"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Equal",
                              .since = 11,
                              .until = 13,
                              .types = kAllTypesTo12,
                              .out_types = kBoolType,
                              .inputs = {"A", "B"},
                              .output = "C",
                              .infer = Infer,
                              .samples = {"f32:3x4={1,2,3,4,5,6,7,8,9,10,11,12} f32:4={1,6,3,12}",
                                          "i32:5@0..2 i32:1@0..2", "u8:6@0..2 u8:6@0..2"}}));
WHIMBREL_REGISTER(MakeSchema({.name = "Equal",
                              .since = 13,
                              .types = kAllTypes,
                              .out_types = kBoolType,
                              .inputs = {"A", "B"},
                              .output = "C",
                              .infer = Infer,
                              .samples = {
                                  "f32:3x16 f32:3x16",
                                  "f32:2x3x5 f32:3x1",
                                  "f32: f32:4",
                                  "f32:0x3 f32:3",
                                  "f32:1 f32:1",
                                  "f16:7x17 f16:17",
                                  "bf16:5x9 bf16:5x1",
                                  "f64:3x3 f64:1x3",
                                  "i32:4x5 i32:5",
                                  "i64:30 i64:30",
                                  "u8:30 u8:30",
                                  "i8:9@-128..127 i8:9@-128..127",
                                  "u16:9 u16:9",
                                  "i16:9 i16:9",
                                  "u32:9 u32:9",
                                  "u64:2={18446744073709551615,5} u64:2={18446744073709551614,5}",
                                  "f32:1x64x40x40 f32:1x64x40x40",
                                  "f32:8 f32:8 nan=1",
                                  "f32:2={0,-0} f32:2={-0,0}",
                                  "bool:3x5 bool:5",
                                  "i64:40@0..2 i64:40@0..2",
                                  "f32:3={nan,inf,-inf} f32:3={nan,inf,inf}"}}));
WHIMBREL_REGISTER(Kernel{.op = "Equal", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
