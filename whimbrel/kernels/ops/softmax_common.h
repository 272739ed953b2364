// Softmax: the rows that Softmax and LogSoftmax share, with the meaning of axis at each opset.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// Element e of row r lies at (r / inner) * length * inner + r % inner + e * inner.
struct SoftmaxRows {
  int64_t rows = 0, length = 0, inner = 1;
};

// Before opset 13 all dims from axis (default 1) on are one row; from 13 on the axis (default -1)
// alone is.
SoftmaxRows SoftmaxRowsOf(const OpCall& call);

// The three entries: 1 to 11, 11 to 13, 13 on.
OpSchema SoftmaxSchema(std::string_view name, int since, std::vector<std::string_view> samples);

}  // namespace whimbrel
