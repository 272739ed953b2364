// GlobalPool: inference and schema that GlobalAveragePool and GlobalMaxPool share: all spatial axes
// become 1.

#pragma once

#include <string_view>
#include <vector>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

// Entries 1 to 22 without bf16 and from 22 on with it.
OpSchema GlobalPoolSchema(std::string_view name, int since, std::vector<std::string_view> samples);

// Elements in one plane, and the number of planes.
struct GlobalPoolSize {
  int64_t planes, plane_size;
};
GlobalPoolSize GlobalPoolSizeOf(const OpCall& call);

}  // namespace whimbrel
