// The instruction set and its cap; each case in a process of its own, since the word is read once.

#include "whimbrel/base/cpu.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

// 0..2: the set with this word set; 100 + code: the error.
int ActiveUnder(const char* word) {
  if (word == nullptr) {
    unsetenv("WHIMBREL_ISA");
  } else {
    setenv("WHIMBREL_ISA", word, 1);
  }
  try {
    return static_cast<int>(ActiveIsa());
  } catch (const Error& error) {
    return 100 + static_cast<int>(error.code());
  }
}

class IsaDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(IsaDeathTest, IsPortableWhenAskedFor) {
  EXPECT_EXIT(_exit(ActiveUnder("portable")), testing::ExitedWithCode(0), "");
}

TEST_F(IsaDeathTest, IsAtMostAvx2WhenAskedFor) {
  const auto at_most_avx2 = [](int status) {
    return WIFEXITED(status) && WEXITSTATUS(status) <= 1;
  };
  EXPECT_EXIT(_exit(ActiveUnder("avx2")), at_most_avx2, "");
}

TEST_F(IsaDeathTest, IsTheBestOneWhenNothingOrTheHighestIsAsked) {
  EXPECT_EXIT(
      {
        const int best = ActiveUnder(nullptr);
        _exit(best <= 2 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  const auto a_set = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) <= 2; };
  EXPECT_EXIT(_exit(ActiveUnder("avx512")), a_set, "");
  EXPECT_EXIT(_exit(ActiveUnder("")), a_set, "");
}

TEST_F(IsaDeathTest, RefusesAnUnknownWord) {
  EXPECT_EXIT(_exit(ActiveUnder("sse9")),
              testing::ExitedWithCode(100 + static_cast<int>(Code::kInvalidArgument)), "");
}

TEST_F(IsaDeathTest, IsReadOnce) {
  EXPECT_EXIT(
      {
        const int first = ActiveUnder("portable");
        _exit(first == 0 && ActiveUnder("avx512") == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Isa, HasTheNamesThatTheVariableTakes) {
  EXPECT_EQ(IsaName(Isa::kPortable), "portable");
  EXPECT_EQ(IsaName(Isa::kAvx2), "avx2");
  EXPECT_EQ(IsaName(Isa::kAvx512), "avx512");
}

TEST(CpuModelName, IsOneLine) {
  EXPECT_EQ(CpuModelName().find('\n'), std::string_view::npos);
  EXPECT_EQ(CpuModelName(), CpuModelName());
}

}  // namespace
}  // namespace whimbrel
