// gru_cell: the elementwise parts of one GRU step, vectorised. Gates lie in ONNX's order z, r, h.

#pragma once

#include <cstdint>

namespace whimbrel {

// The reset gate scales the product: input and state are [3][hidden] sums.
// z = sigmoid(iz + sz), r = sigmoid(ir + sr); out = (1 - z) tanh(ih + r sh) + z h.
void GruCell(const float* input, const float* state, int64_t hidden, const float* h, float* out);

// The reset gate scales the state, so that the step is two parts with a product between them.
// z = sigmoid(iz + sz), reset = sigmoid(ir + sr) h, of [2][hidden] sums.
void GruGates(const float* input, const float* state, int64_t hidden, const float* h, float* z,
              float* reset);
// out = (1 - z) tanh(input + state) + z h, of [hidden] sums.
void GruMix(const float* input, const float* state, int64_t hidden, const float* z, const float* h,
            float* out);

}  // namespace whimbrel
