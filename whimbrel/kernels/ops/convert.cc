// Conversion between element types.

#include "whimbrel/kernels/ops/convert.h"

#include "whimbrel/kernels/ops/float_to_int.h"

namespace whimbrel {
namespace {

// The nearest double that a second rounding to 16 bits cannot tell from `x`: bits below the 53rd
// are folded into an odd last one.
template <typename T>
double OddDouble(T x) {
  if constexpr (sizeof(T) == 8) {
    constexpr T kLow = std::is_signed_v<T> ? 0x7FF : 0xFFF;
    constexpr T kFits = T{1} << 53;
    if (x > kFits || (std::is_signed_v<T> && x < WrapSub(T{0}, kFits))) {
      return static_cast<double>(
          static_cast<T>((x & static_cast<T>(~kLow)) | ((x & kLow) != 0 ? (kLow + 1) / 2 : 0)));
    }
  }
  return static_cast<double>(x);
}

template <typename To, typename From>
To Convert(From x) {
  constexpr bool kToHalf = std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>;
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return Convert<To>(static_cast<double>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (kToHalf && std::is_integral_v<From>) {
    return To(OddDouble(x));
  } else if constexpr (kToHalf) {
    return To(x);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return FloatToInt<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace

void InferConversion(InferContext& c, DType dtype) {
  c.SetOut(0, dtype, c.in(0).dims);
  if (!HoldsElements(dtype)) return;
  auto elements = SmallElements(c, 0);
  if (!elements) return;
  for (Dim& d : *elements) {
    d = dtype == DType::kBool && d.known() ? Dim(d.value() == 0 ? 0 : 1) : FitElement(d, dtype);
  }
  c.out(0).elements = std::move(elements);
}

void ConvertReference(const OpCall& call) {
  DispatchReference<kAllTypes>(call, call.x(0).dtype(), [&]<typename From>() {
    DispatchReference<kAllTypes>(call, call.y(0).dtype(), [&]<typename To>() {
      const From* x = call.x(0).data<From>();
      To* y = call.y(0).data<To>();
      ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = Convert<To>(x[i]);
      });
    });
  });
}

}  // namespace whimbrel
