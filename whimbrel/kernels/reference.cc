// What reference kernels share.

#include "whimbrel/kernels/reference.h"

#include <fmt/format.h>

namespace whimbrel {

void ThrowTypeUnsupported(const OpCall& call, DType type) {
  throw Error(Code::kUnsupported, fmt::format("{}: no kernel for type {}", call.schema->name, DTypeName(type)));
}

}  // namespace whimbrel
