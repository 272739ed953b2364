// Sample: one case string of an op, turned into tensors and attributes for tests, benchmarks and docs.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// Grammar: words by blanks. An input is TYPE:DIMS ("f32:3x16", scalar "f32:", optional left out "-"),
// with "@LO..HI" for the range of random values (default -2..2; integers 0..9) or "={v,v,...}" for exact
// values ("i64:2={1,-1}"); a trailing "!" marks it as constant (weights, axes; "={}" implies it).
// NAME=VALUE is an attribute, typed by the schema ("pads=1,1,1,1", "mode=linear", tensor "value=f32:1={5}").
// opset=N picks the opset (default: the schema's since), outputs=N the outputs asked for (default: those
// that are not optional, at least 1), seed=N the seed, nan=1 puts NaN and Inf in float inputs without
// exact values. Types: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool.
struct Sample {
  std::vector<Tensor> inputs;  // undefined tensor = left out
  std::vector<bool> constant;
  Attributes attributes;
  int opset = 0;
  size_t outputs = 1;
};

// kInvalidArgument naming the word that is not understood.
Sample ParseSample(const OpSchema& schema, std::string_view text);

// The sample's inputs as inference is given them: types, dims, and the values of constants.
std::vector<ValueInfo> SampleInputs(const Sample& sample);

struct SampleRun {
  // kChannelsLast: the tensors that the kernel's LayoutRule names are handed over channels-last.
  Layout layout = Layout::kPlain;
  int in_place_input = -1;  // output 0 is written over (a copy of) this input
  int threads = 0;          // compute team; 0 = all available cores
};

// Infers, allocates and computes a sample with one kernel (prepare, workspace, run) on a cpu stream; the
// outputs come back plain. `why` is filled and an empty vector returned when the kernel declines or the
// run asks what its rules do not allow.
std::vector<Tensor> RunSample(const OpSchema& schema, const Kernel& kernel, const Sample& sample,
                              std::string* why, const SampleRun& how = {});

}  // namespace whimbrel
