// Rows of f32: softmax and layer normalization, for the best target of this machine.

#pragma once

#include <cstdint>

namespace whimbrel {

// y = e^(x - max) / sum, or its logarithm, over each of the columns of x[count, stride]: `width`
// neighbouring columns. With stride = width = 1 the row lies in one piece. y may be x.
using SoftmaxFunction = void (*)(const float* x, int64_t count, int64_t stride, int64_t width,
                                 float* y);
SoftmaxFunction FindSoftmax(bool logarithm);

// y[i] = (x[i] - mean) / sqrt(variance + epsilon) * scale[i] + bias[i]; bias may be nullptr. With
// `centered` false: mean is taken as 0 (RMS normalization). y may be x.
struct NormalizeRow {
  const float* scale = nullptr;
  const float* bias = nullptr;
  float epsilon = 0;
  bool centered = true;
};
using NormalizeFunction = void (*)(const float* x, int64_t count, const NormalizeRow& how,
                                   float* y);
NormalizeFunction FindNormalizeRow();

}  // namespace whimbrel
