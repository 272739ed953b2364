// ElementwiseChain's program: its steps, their text form and what each computes.
//
// A program is a list of words, run in order on one value that starts as input 0:
//   NAME            relu sigmoid tanh exp log sqrt reciprocal neg abs floor ceil round sign erf
//   gelu
//                   gelu_tanh hardswish softplus softsign mish sin cos
//   NAME:A[:B]      clip:LO:HI  hardsigmoid:ALPHA:BETA  leakyrelu:ALPHA  elu:ALPHA  celu:ALPHA
//                   selu:ALPHA:GAMMA  thresholdedrelu:ALPHA  silu:BETA (v * sigmoid(BETA * v))
//   NAME:OPERAND    add sub rsub mul div rdiv max min pow rpow prelu; OPERAND is the number of an
//                   input ("mul:0" multiplies by input 0 itself) or a constant ("pow:c2").
//                   "sub" is v - operand, "rsub" operand - v; likewise div / rdiv and pow / rpow.
//   mulx            short for mul:0
// Examples: x * sigmoid(x) = {"sigmoid", "mulx"}; x * clip(x + 3, 0, 6) / 6 =
// {"add:c3", "clip:0:6", "mulx", "mul:c0.16666667"}. Inputs broadcast against each other.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

enum class StepOp : uint8_t {
  kAdd,
  kSub,
  kRsub,
  kMul,
  kDiv,
  kRdiv,
  kMax,
  kMin,
  kPow,
  kRpow,
  kPrelu,  // take an operand
  kRelu,
  kClip,
  kHardSigmoid,
  kLeakyRelu,
  kThresholdedRelu,
  kHardSwish,
  kSqrt,
  kReciprocal,
  kNeg,
  kAbs,
  kFloor,
  kCeil,
  kRound,
  kSign,
  kSoftsign,
  kSigmoid,
  kTanh,
  kExp,
  kLog,
  kErf,
  kGelu,
  kGeluTanh,
  kSilu,
  kSoftplus,
  kMish,
  kElu,
  kCelu,
  kSelu,
  kSin,
  kCos,
};

constexpr size_t kMaxChainSteps = 32;
constexpr size_t kMaxChainInputs = 8;

struct ChainStep {
  StepOp op = StepOp::kRelu;
  int operand = -1;  // input that stands on the right; -1 = the constant `a`
  double a = 0;
  double b = 0;
};

constexpr bool TakesOperand(StepOp op) {
  return op <= StepOp::kPrelu;
}
std::string_view StepName(StepOp op);

// kInvalidData naming the word that is not understood or an input that is not there.
std::vector<ChainStep> ParseChain(std::span<const std::string> program, size_t inputs);

// One step in double; `operand` is looked at by steps that take one.
double ApplyStep(const ChainStep& step, double value, double operand);

}  // namespace whimbrel
