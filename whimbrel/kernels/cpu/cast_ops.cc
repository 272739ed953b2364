// Cast and CastLike between the usual types by vectorised loops, in either layout.

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/float_convert.h"
#include "whimbrel/kernels/cpu/hwy_cast.h"
#include "whimbrel/kernels/kernels.h"

namespace whimbrel {
namespace {

constexpr bool IsHalfWidth(DType type) {
  return type == DType::kFloat16 || type == DType::kBFloat16;
}

bool Accepts(const OpCall& call, std::string* why) {
  const DType from = call.x(0).dtype(), to = call.y(0).dtype();
  if (FindCast(from, to) != nullptr) return true;
  if (from == DType::kFloat && IsHalfWidth(to)) return true;
  if (IsHalfWidth(from) && to == DType::kFloat) return true;
  *why = fmt::format("there is no loop from {} to {}", DTypeName(from), DTypeName(to));
  return false;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Tensor& x = call.x(0);
  Tensor& y = call.y(0);
  if (x.elements() == 0) return;
  if (IsHalfWidth(y.dtype())) return FromFloat(y.dtype(), x.data<float>(), y.raw(), x.elements());
  if (IsHalfWidth(x.dtype())) return ToFloat(x.dtype(), x.raw(), y.data<float>(), x.elements());
  const CastFunction cast = FindCast(x.dtype(), y.dtype());
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(y.raw());
  const auto from_bytes = static_cast<int64_t>(ItemSize(x.dtype()));
  const auto to_bytes = static_cast<int64_t>(ItemSize(y.dtype()));
  ParallelFor(x.elements(), 65536, [&](int64_t begin, int64_t end) {
    cast(from + begin * from_bytes, to + begin * to_bytes, end - begin);
  });
}

WHIMBREL_REGISTER(Kernel{.op = "Cast",
                         .name = "loops",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = Accepts,
                         .run = Run});
WHIMBREL_REGISTER(Kernel{.op = "CastLike",
                         .name = "loops",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = Accepts,
                         .run = Run});

}  // namespace
}  // namespace whimbrel
