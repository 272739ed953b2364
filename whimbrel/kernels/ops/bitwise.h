// bitwise: the schema that BitwiseAnd, BitwiseOr and BitwiseXor share.

#pragma once

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

inline OpSchema BitwiseSchema(std::string_view name) {
  return MakeSchema(
      {.name = name,
       .since = 18,
       .types = kIntegerTypes,
       .inputs = {"A", "B"},
       .output = "C",
       .infer = InferBroadcast,
       .samples = {"i32:3x16@-99..99 i32:3x16@-99..99", "i64:2x3x5 i64:3x1@-9..9", "u8: u8:4",
                   "u16:0x3 u16:3", "i64:1 i64:1", "i8:7x17@-128..127 i8:17@-128..127",
                   "i16:5x9@-999..999 i16:5x1", "u32:4@0..4294967295 u32:4@0..4294967295",
                   "u64:3={18446744073709551615,5,0} u64:3={1,6,18446744073709551614}",
                   "i32:1x64x40x40 i32:1x64x1x1"}});
}

}  // namespace whimbrel
