// DType: element types under ONNX's numbers, with sizes and names.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "whimbrel/base/number.h"

namespace whimbrel {

// Values are those of onnx.TensorProto.DataType, so that files need no mapping.
enum class DType : uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
};

// Bytes per element; 0 for types that have no tensor here (kUndefined, kString, complex and numbers
// above 16).
size_t ItemSize(DType type);
std::string_view DTypeName(DType type);  // numpy's: "float16"; "type 23" for unknown numbers
// Those names and the short ones ("float", "f16", "u8"); kUndefined when unknown.
DType DTypeFromName(std::string_view name);
constexpr bool IsFloating(DType t) {
  return t == DType::kFloat || t == DType::kDouble || t == DType::kFloat16 || t == DType::kBFloat16;
}
constexpr bool IsInteger(DType t) {
  return t == DType::kUint8 || t == DType::kInt8 || t == DType::kUint16 || t == DType::kInt16 ||
         t == DType::kInt32 || t == DType::kInt64 || t == DType::kUint32 || t == DType::kUint64;
}

// The element type of a C++ type; kUndefined for others.
template <typename T>
inline constexpr DType kDTypeOf = DType::kUndefined;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat;
template <>
inline constexpr DType kDTypeOf<double> = DType::kDouble;
template <>
inline constexpr DType kDTypeOf<Half> = DType::kFloat16;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBFloat16;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kInt8;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kUint8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::kInt16;
template <>
inline constexpr DType kDTypeOf<uint16_t> = DType::kUint16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::kUint32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::kUint64;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;

// Calls fn.template operator()<T>() with the C++ type of `type`; false for types without one.
template <typename F>
bool DispatchType(DType type, F&& fn) {
  switch (type) {
    case DType::kFloat:
      fn.template operator()<float>();
      return true;
    case DType::kDouble:
      fn.template operator()<double>();
      return true;
    case DType::kFloat16:
      fn.template operator()<Half>();
      return true;
    case DType::kBFloat16:
      fn.template operator()<BFloat16>();
      return true;
    case DType::kInt8:
      fn.template operator()<int8_t>();
      return true;
    case DType::kUint8:
      fn.template operator()<uint8_t>();
      return true;
    case DType::kInt16:
      fn.template operator()<int16_t>();
      return true;
    case DType::kUint16:
      fn.template operator()<uint16_t>();
      return true;
    case DType::kInt32:
      fn.template operator()<int32_t>();
      return true;
    case DType::kUint32:
      fn.template operator()<uint32_t>();
      return true;
    case DType::kInt64:
      fn.template operator()<int64_t>();
      return true;
    case DType::kUint64:
      fn.template operator()<uint64_t>();
      return true;
    case DType::kBool:
      fn.template operator()<bool>();
      return true;
    default:
      return false;
  }
}

}  // namespace whimbrel
