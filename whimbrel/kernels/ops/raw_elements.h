// raw_elements: loops that only move elements, one version per item size instead of per type.

#pragma once

#include <cstdint>

#include "whimbrel/kernels/reference.h"

namespace whimbrel {

// Calls fn.operator()<U>() with an unsigned integer as wide as `type`.
template <typename F>
void DispatchItemSize(const OpCall& call, DType type, F&& fn) {
  switch (ItemSize(type)) {
    case 1:
      return fn.template operator()<uint8_t>();
    case 2:
      return fn.template operator()<uint16_t>();
    case 4:
      return fn.template operator()<uint32_t>();
    case 8:
      return fn.template operator()<uint64_t>();
    default:
      ThrowTypeUnsupported(call, type);
  }
}

}  // namespace whimbrel
