// FunctionRef: calls what it refers to.

#include "whimbrel/base/function_ref.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

int Apply(FunctionRef<int(int)> function, int value) {
  return function(value);
}

struct Doubler {
  int calls = 0;
  int operator()(int value) {
    ++calls;
    return 2 * value;
  }
};

TEST(FunctionRef, CallsLambdasAndChangesTheirCaptures) {
  int sum = 0;
  EXPECT_EQ(Apply([&](int value) { return sum += value; }, 3), 3);
  EXPECT_EQ(sum, 3);
}

TEST(FunctionRef, RefersToTheObjectInsteadOfCopyingIt) {
  Doubler doubler;
  const FunctionRef<int(int)> first(doubler);
  const FunctionRef<int(int)> second = first;
  EXPECT_EQ(second(4), 8);
  EXPECT_EQ(doubler.calls, 1);
}

TEST(FunctionRef, PassesMoveOnlyArguments) {
  auto take = [](std::unique_ptr<int> value) { return *value; };
  const FunctionRef<int(std::unique_ptr<int>)> function(take);
  EXPECT_EQ(function(std::make_unique<int>(5)), 5);
}

}  // namespace
}  // namespace whimbrel
