// The 16-bit number formats, exhaustively where they can be.

#include "whimbrel/base/number.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

// What a format is: enough to round exactly by integer arithmetic on doubles, independent of the
// code under test.
struct Format {
  int mantissa_bits;
  int min_exponent;  // of the smallest normal number
  int max_exponent;
};
constexpr Format kHalf{10, -14, 15};
constexpr Format kBfloat16{7, -126, 127};

// Nearest value of the format to `value`, ties to even; every step is exact in double.
double RoundExactly(double value, Format format) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const int unit_exponent = exponent - format.mantissa_bits;
  // Doubles below the smallest normal one do not occur in these tests' scaled range.
  const double units = std::nearbyint(std::ldexp(value, -unit_exponent));
  const double rounded = std::ldexp(units, unit_exponent);
  const double limit = std::ldexp(1.0, format.max_exponent + 1);
  return std::fabs(rounded) >= limit ? std::copysign(INFINITY, value) : rounded;
}

uint64_t BitsOf(double value) {
  return std::bit_cast<uint64_t>(value);
}

void ExpectHalf(double value) {
  const double got = static_cast<double>(Half(value));
  ASSERT_EQ(BitsOf(got), BitsOf(RoundExactly(value, kHalf))) << std::hexfloat << value;
}

void ExpectBfloat16(double value) {
  const double got = static_cast<double>(BFloat16(value));
  ASSERT_EQ(BitsOf(got), BitsOf(RoundExactly(value, kBfloat16))) << std::hexfloat << value;
}

// A double with random bits and an exponent in [low, high].
double RandomDouble(std::mt19937_64& random, int low, int high) {
  const uint64_t bits = random();
  const int exponent =
      low + static_cast<int>((bits >> 1 & 0x7ff) % static_cast<uint64_t>(high - low + 1));
  const double mantissa =
      std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  return std::ldexp((bits >> 63) != 0 ? -mantissa : mantissa, exponent);
}

TEST(Half, ReadsEveryBitPatternAsIeeeSays) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const uint32_t exponent = bits >> 10 & 31;
    const double mantissa = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    const float value = Half::ToFloat(half);
    if (exponent == 31 && mantissa != 0) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else if (exponent == 31) {
      ASSERT_EQ(value, sign * INFINITY) << bits;
    } else {
      const double expected = exponent == 0
                                  ? std::ldexp(mantissa, -24)
                                  : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
      ASSERT_EQ(BitsOf(value), BitsOf(sign * expected)) << bits;
    }
  }
}

TEST(Half, ReturnsEveryBitPatternFromFloatAndDouble) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const bool nan = (bits & 0x7fff) > 0x7c00;
    const auto expected = static_cast<uint16_t>(nan ? half | 0x200 : half);  // a NaN becomes quiet
    ASSERT_EQ(Half::FromFloat(Half::ToFloat(half)), expected) << bits;
    ASSERT_EQ(Half::FromDouble(Half::ToFloat(half)), expected) << bits;
  }
}

TEST(BFloat16, ReturnsEveryBitPatternFromFloatAndDouble) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    BFloat16 value;
    value.bits = static_cast<uint16_t>(bits);
    const bool nan = (bits & 0x7fff) > 0x7f80;
    const auto expected = static_cast<uint16_t>(nan ? bits | 0x40 : bits);
    ASSERT_EQ(BFloat16::FromFloat(static_cast<float>(value)), expected) << bits;
    ASSERT_EQ(BFloat16::FromDouble(static_cast<double>(value)), expected) << bits;
  }
}

TEST(Half, RoundsTheMiddleOfEveryTwoNeighboursToTheEvenOne) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    // Beyond the largest half the next step would be 2^16.
    const double above = high == 0x7c00 ? 65536.0 : Half::ToFloat(high);
    const double middle = (Half::ToFloat(low) + above) / 2;
    const uint16_t even = bits % 2 == 0 ? low : high;
    ASSERT_EQ(Half::FromDouble(middle), even) << bits;
    ASSERT_EQ(Half::FromFloat(static_cast<float>(middle)), even) << bits;
    // A hair off the middle, less than a float can tell: rounding twice would fail here.
    ASSERT_EQ(Half::FromDouble(std::nextafter(middle, 0.0)), low) << bits;
    ASSERT_EQ(Half::FromDouble(std::nextafter(middle, 1e9)), high) << bits;
    ASSERT_EQ(Half::FromDouble(std::nextafter(-middle, 0.0)), low | 0x8000) << bits;
  }
}

TEST(BFloat16, RoundsTheMiddleOfEveryTwoNeighboursToTheEvenOne) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    BFloat16 low;
    low.bits = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const double above =
        high == 0x7f80 ? 0x1p128 : double{std::bit_cast<float>(uint32_t{high} << 16)};
    const double middle = (static_cast<double>(low) + above) / 2;
    const uint16_t even = bits % 2 == 0 ? low.bits : high;
    ASSERT_EQ(BFloat16::FromDouble(middle), even) << bits;
    ASSERT_EQ(BFloat16::FromDouble(std::nextafter(middle, 0.0)), low.bits) << bits;
    ASSERT_EQ(BFloat16::FromDouble(std::nextafter(middle, 1e300)), high) << bits;
  }
}

TEST(Half, RoundsRandomDoublesOnce) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1'000'000; ++i) ExpectHalf(RandomDouble(random, -30, 18));
  for (int i = 0; i < 100'000; ++i) ExpectHalf(RandomDouble(random, -900, 900));
}

TEST(BFloat16, RoundsRandomDoublesOnce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1'000'000; ++i) ExpectBfloat16(RandomDouble(random, -140, 129));
  for (int i = 0; i < 100'000; ++i) ExpectBfloat16(RandomDouble(random, -900, 800));
}

TEST(Half, RoundsRandomFloatsOnce) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(BitsOf(Half::ToFloat(Half::FromFloat(value))), BitsOf(RoundExactly(value, kHalf)))
        << std::hexfloat << value;
    ASSERT_EQ(BitsOf(static_cast<double>(BFloat16(value))), BitsOf(RoundExactly(value, kBfloat16)))
        << std::hexfloat << value;
  }
}

TEST(Half, KeepsSignOfZeroInfinityAndNan) {
  EXPECT_EQ(Half(-0.0).bits, 0x8000);
  EXPECT_EQ(Half(-1e-300).bits, 0x8000);
  EXPECT_EQ(Half(65519.999).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0).bits, 0x7c00);
  EXPECT_EQ(Half(-1e300).bits, 0xfc00);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::nan("")))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::nanf("")))));
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

TEST(RoundToOdd, GivesTheOddNeighbourWhenAFloatCannotHoldTheValue) {
  std::mt19937_64 random(4);
  EXPECT_EQ(RoundToOdd(1.5), 1.5f);
  for (int i = 0; i < 100'000; ++i) {
    const double value = RandomDouble(random, -150, 127);
    const float odd = RoundToOdd(value);
    if (std::isinf(odd) || double{odd} == value) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(odd) & 1u, 1u) << std::hexfloat << value;
    const float other = std::nextafter(odd, double{odd} < value ? INFINITY : -INFINITY);
    ASSERT_TRUE((double{odd} < value) == (value < double{other})) << std::hexfloat << value;
  }
}

}  // namespace
}  // namespace whimbrel
