// dft: one term of a discrete Fourier transform at a time, for DFT and STFT.

#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// The sum over j < count of at(j) e^(sign 2 pi i j k / n); at gives std::complex<double>. Phases
// are rotated step by step and set anew every 32 steps, which keeps their error below 1e-14.
template <typename F>
std::complex<double> FourierSum(int64_t count, int64_t k, int64_t n, double sign, F at) {
  constexpr int64_t kFresh = 32;
  const auto phase = [&](int64_t turns) {
    const double angle =
        sign * 2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(n);
    return std::complex<double>(std::cos(angle), std::sin(angle));
  };
  const std::complex<double> step = phase(k);
  std::complex<double> sum = 0, turn = 1;
  int64_t turns = 0;  // j k modulo n
  for (int64_t j = 0; j < count; ++j) {
    if (j % kFresh == 0) turn = phase(turns);
    sum += at(j) * turn;
    turn *= step;
    turns = (turns + k) % n;
  }
  return sum;
}

// Elements of a tensor whose last dim, 1 or 2, holds real and imaginary part.
template <typename T>
std::complex<double> ComplexAt(const T* x, int64_t index, bool has_imaginary) {
  if (!has_imaginary) return Widen(x[index]);
  return {Widen(x[2 * index]), Widen(x[2 * index + 1])};
}

}  // namespace whimbrel
