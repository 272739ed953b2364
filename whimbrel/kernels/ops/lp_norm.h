// lp_norm: the sum of |x|^p and its root, for LpPool and GlobalLpPool.

#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

class LpNorm {
 public:
  explicit LpNorm(const Attributes& attributes) : p_(attributes.Int("p", 2)) {}
  static void Check(const InferContext& c) {
    const int64_t p = c.attrs().Int("p", 2);
    if (p < 1 || p > 1024) c.Fail("p must be 1 to 1024, is " + std::to_string(p));
  }
  double Power(double x) const {
    const double a = std::abs(x);
    return p_ == 1 ? a : (p_ == 2 ? a * a : std::pow(a, static_cast<double>(p_)));
  }
  double Root(double sum) const {
    return p_ == 1 ? sum : (p_ == 2 ? std::sqrt(sum) : std::pow(sum, 1 / static_cast<double>(p_)));
  }

 private:
  int64_t p_;
};

}  // namespace whimbrel
