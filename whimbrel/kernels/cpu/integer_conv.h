// IntegerConv: exact int32 sums of ConvInteger and QLinearConv on channels-last data with constant
// weights.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "whimbrel/kernels/cpu/hwy_product_i16.h"
#include "whimbrel/kernels/ops/quantized_product.h"

namespace whimbrel {

class IntegerConv {
 public:
  // What stands against it, in words; empty when nothing does.
  static std::string Obstacle(const OpCall& call, const ConvInputs& inputs);

  IntegerConv(const OpCall& call, const ConvInputs& inputs);
  size_t bytes() const;
  size_t workspace_bytes() const;
  // Channels-last, without bias.
  void Run(const OpCall& call, std::span<std::byte> workspace, int32_t* sums) const;

 private:
  template <typename T>
  void Pack(const Tensor& weights, const T* zero, bool zero_per_channel);
  template <typename T>
  void RunTyped(const OpCall& call, std::span<std::byte> workspace, int32_t* sums) const;
  // Calls fn(tap, input position) for the taps of an output position; -1: padding.
  template <typename F>
  void EachTap(int64_t position, F fn) const;

  ConvInputs inputs_;
  ConvGeometry g_;
  int64_t taps_, row_, blocks_, slots_;  // slots: blocks that have scratch memory at a time
  std::vector<PackedColumns> groups_;
  std::vector<int16_t> depthwise_;  // [tap][channel]
};

}  // namespace whimbrel
