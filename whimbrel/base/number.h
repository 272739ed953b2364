// Half and BFloat16: 16-bit storage types with IEEE round-to-nearest-even conversion from float.

#pragma once

#include <bit>
#include <cstdint>

namespace whimbrel {

// IEEE 754 binary16, storage only.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(FromFloat(value)) {}
  explicit Half(double value) : bits(FromDouble(value)) {}
  explicit operator float() const { return ToFloat(bits); }
  explicit operator double() const { return ToFloat(bits); }
  static uint16_t FromFloat(float value);
  // Rounds once: double -> float -> half would round twice.
  static uint16_t FromDouble(double value);
  static float ToFloat(uint16_t bits);
  bool operator==(const Half&) const = default;
};

// bfloat16: the upper half of a binary32, storage only.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(FromFloat(value)) {}
  explicit BFloat16(double value) : bits(FromDouble(value)) {}
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  explicit operator double() const { return static_cast<float>(*this); }
  static uint16_t FromFloat(float value);
  static uint16_t FromDouble(double value);
  bool operator==(const BFloat16&) const = default;
};

// `value` rounded to float towards the odd neighbour, so that a second rounding to 16 bits is exact.
float RoundToOdd(double value);

}  // namespace whimbrel
