// elementwise: schemas, inference of integer elements and integer arithmetic of elementwise ops.

#pragma once

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "whimbrel/kernels/reference.h"

namespace whimbrel {

// Type sets of older opsets: bfloat16 came with 13 in most operators, 8 and 16 bit integers with 14
// in the arithmetic ones.
constexpr TypeMask kBFloat16Type = TypeBit(DType::kBFloat16);
constexpr TypeMask kFloatTypesTo12 = kFloatTypes & ~kBFloat16Type;
constexpr TypeMask kNumericTypesTo12 = kNumericTypes & ~kBFloat16Type;
constexpr TypeMask kAllTypesTo12 = kAllTypes & ~kBFloat16Type;
constexpr TypeMask kWideIntegerTypes = TypeBit(DType::kInt32) | TypeBit(DType::kInt64) |
                                       TypeBit(DType::kUint32) | TypeBit(DType::kUint64);

// One range of opsets of an op whose inputs all have type T; `out_types` 0 = the output has it too.
struct ElementwiseSchema {
  std::string_view name;
  int since = 1;
  int until = INT_MAX;
  TypeMask types = kFloatTypes;
  TypeMask out_types = 0;
  std::vector<std::string_view> inputs = {"X"};
  std::string_view output = "Y";
  bool variadic = false;  // the last input repeats
  std::vector<AttributeSpec> attributes = {};
  void (*infer)(InferContext&) = InferLikeFirst;
  Cost (*cost)(const OpCall&) = nullptr;
  std::vector<std::string_view> samples = {};
};
OpSchema MakeSchema(const ElementwiseSchema& e);

// Add, Sub, Mul and Div have the same three versions: since is 7, 13 or 14.
OpSchema ArithmeticSchema(std::string_view name, int since, void (*infer)(InferContext&),
                          std::vector<std::string_view> samples);

// Cost of ops that only move bytes.
Cost MoveCost(const OpCall& call);
// n - 1 operations per output element for n inputs.
Cost VariadicCost(const OpCall& call);

// The most elements of an integer tensor that inference follows one by one.
constexpr int64_t kMaxElements = 64;

// Whether inference follows elements of this type: integers that fit a Dim, and bool as 0 and 1.
bool HoldsElements(DType dtype);
// Elements of a rank 0 or 1 input, also of a constant bool one; nullopt when not known or too many.
std::optional<Dims> SmallElements(const InferContext& c, size_t i);
// `value` as an element of integer type (or bool) `dtype`; unknown when that type cannot hold it.
Dim FitElement(const Dim& value, DType dtype);
// Sets output 0's elements: op over the broadcast elements of inputs a and b. Call after SetOut.
using DimOp = Dim (*)(const Dim&, const Dim&);
void SetBroadcastElements(InferContext& c, DimOp op, size_t a = 0, size_t b = 1);
// InferBroadcast that also folds the elements of all inputs.
void InferArithmetic(InferContext& c, DimOp op);

// Integer arithmetic modulo 2^bits. In uint64_t, because uint16_t * uint16_t would overflow an int.
template <typename T>
constexpr T WrapAdd(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename T>
constexpr T WrapSub(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <typename T>
constexpr T WrapMul(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// True for negative values; false for unsigned types, without the compiler's warning.
template <typename T>
constexpr bool IsNegative(T x) {
  if constexpr (std::is_unsigned_v<T>) {
    return false;
  } else {
    return x < 0;
  }
}

// y = f(... f(f(x0, x1), x2) ..., xn) with broadcasting, f on WideOf<T>: float types are rounded
// once, at the end.
template <TypeMask mask, typename F>
void VariadicReference(const OpCall& call, F f) {
  DispatchReference<mask>(call, call.x(0).dtype(), [&]<typename T>() {
    // One block of results is kept on the stack while the inputs pass over it.
    constexpr int64_t kBlock = 256;
    T* y = call.y(0).data<T>();
    ParallelFor(call.y(0).elements(), 16384, [&](int64_t begin, int64_t end) {
      std::array<WideOf<T>, kBlock> sum{};
      for (int64_t start = begin; start < end; start += kBlock) {
        const int64_t stop = std::min(start + kBlock, end);
        for (size_t k = 0; k < call.in.size(); ++k) {
          const T* x = call.x(k).data<T>();
          const BroadcastWalk<1> walk(call.y(0).shape(), {&call.x(k).shape()});
          walk.Run(start, stop, [&](int64_t i, const std::array<int64_t, 1>& at) {
            WideOf<T>& s = sum[static_cast<size_t>(i - start)];
            s = k == 0 ? Widen(x[at[0]]) : f(s, Widen(x[at[0]]));
          });
        }
        for (int64_t i = start; i < stop; ++i)
          y[i] = Narrow<T>(sum[static_cast<size_t>(i - start)]);
      }
    });
  });
}

// Lower and upper bound in one: NaN stays NaN, and `high` wins when the bounds cross.
template <typename T>
constexpr T Clamp(T x, T low, T high) {
  if (x < low) x = low;
  return x > high ? high : x;
}

}  // namespace whimbrel
