// IntegerMatMul: exact int32 sums of MatMulInteger and QLinearMatMul with constant B.

#pragma once

#include <span>
#include <string>

#include "whimbrel/kernels/cpu/hwy_product_i16.h"
#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// Inputs of the call.
struct IntegerMatMulInputs {
  size_t a = 0, b = 0, a_zero = 0, b_zero = 0;
};

class IntegerMatMul {
 public:
  // What stands against it, in words; empty when nothing does.
  static std::string Obstacle(const OpCall& call, const IntegerMatMulInputs& inputs);

  IntegerMatMul(const OpCall& call, const IntegerMatMulInputs& inputs);
  size_t bytes() const { return columns_.bytes(); }
  size_t workspace_bytes(const OpCall& call) const;
  // [rows of all matrices, cols]
  void Run(const OpCall& call, std::span<std::byte> workspace, int32_t* sums) const;

 private:
  template <typename T>
  void WidenRows(const OpCall& call, int64_t begin, int64_t end, int16_t* to) const;

  IntegerMatMulInputs inputs_;
  PackedColumns columns_;
};

}  // namespace whimbrel
