// lstm_cell: the elementwise part of one LSTM step, vectorised.

#pragma once

#include <cstdint>

namespace whimbrel {

// gates: [4][hidden] sums in ONNX's order input, output, forget, cell. c is read and written:
// c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c).
void LstmCell(const float* gates, int64_t hidden, float* c, float* h);

}  // namespace whimbrel
