// EinsumPlan: an Einsum equation, read once by inference and by the kernel.

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

constexpr int kMaxEinsumInputs = 16;

// Labels: 0..51 are the letters in ASCII order ('A' = 0, 'a' = 26); 52 + k is dim k of the
// ellipsis, counted from the right.
constexpr int kEinsumLetters = 52;
constexpr int kEinsumLabels = kEinsumLetters + kMaxRank;

// The labels of one operand or of the output, in the order of its dims.
struct EinsumTerm {
  int letters = 0;    // without the ellipsis
  int ellipsis = -1;  // how many letters stand before "...", -1: it has none
  std::array<uint8_t, kMaxRank> label{};
};

struct EinsumEquation {
  int inputs = 0;
  std::array<EinsumTerm, kMaxEinsumInputs> input{};
  EinsumTerm output{};  // written or implied
};
// kInvalidData for what is no equation over `inputs` operands; kUnsupported for more labels than a
// tensor has dims.
EinsumEquation ParseEinsum(std::string_view equation, size_t inputs);

// The labels of a tensor of `rank` with this term: -1 when the rank does not fit, else their count,
// which is the rank. A term with an ellipsis takes any rank from its letters on.
int EinsumLabels(const EinsumTerm& term, int rank, std::array<uint8_t, kMaxRank>* labels);

}  // namespace whimbrel
