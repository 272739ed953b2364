// Flags of the proving verbs: tolerances and limits as structs, wrong words refused by name.

#include "whimbrel/cli/evidence_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

TEST(ToleranceOptions, SetsWhatIsNamedAndLeavesTheRest) {
  const ToleranceOptions options{.values = {"matrix=1e-2", "atol=0"}};
  const AlignTolerance tolerance = options.ToTolerance();
  EXPECT_EQ(tolerance.matrix, 1e-2);
  EXPECT_EQ(tolerance.atol, 0);
  EXPECT_EQ(tolerance.elementwise, AlignTolerance().elementwise);
}

TEST(ToleranceOptions, RefusesOtherWords) {
  for (const char* text :
       {"", "matrix", "matrix=", "matrix=-1", "matrix=nan", "matrix=1e-3x", "width=1", "=1"}) {
    const ToleranceOptions options{.values = {text}};
    EXPECT_THROW(options.ToTolerance(), Error) << text;
  }
}

TEST(LimitOptions, ZeroAndEmptyAskNothing) {
  const GateLimits none = LimitOptions().ToLimits();
  EXPECT_EQ(none.coverage_percent, 85);
  EXPECT_FALSE(none.p99_ms.has_value());
  EXPECT_FALSE(none.memory_bytes.has_value());
  const GateLimits all = LimitOptions{.coverage = 99, .p99_ms = 5, .memory = "2K"}.ToLimits();
  EXPECT_EQ(all.coverage_percent, 99);
  EXPECT_EQ(all.p99_ms, 5);
  EXPECT_EQ(all.memory_bytes, 2048U);
}

}  // namespace
}  // namespace whimbrel
