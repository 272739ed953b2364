// The error class and its table.

#include "whimbrel/base/error.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

constexpr int kCodeCount = static_cast<int>(Code::kInternal) + 1;

TEST(ErrorTable, DescribesEveryCodeUnderItsOwnNumber) {
  std::set<std::string_view> names;
  for (int i = 0; i < kCodeCount; ++i) {
    const Code code = static_cast<Code>(i);
    const CodeInfo& info = Describe(code);
    EXPECT_EQ(info.code, code) << i;
    EXPECT_FALSE(info.name.empty()) << i;
    EXPECT_TRUE(names.insert(info.name).second) << info.name << " stands twice";
    EXPECT_TRUE(info.exit_code >= 0 && info.exit_code <= 5) << info.name;
    EXPECT_TRUE(info.http_status >= 200 && info.http_status < 600) << info.name;
    EXPECT_TRUE(info.grpc_status >= 0 && info.grpc_status <= 16) << info.name;
    // Only success has no topic for the doctor, exit code 0 and gRPC OK.
    EXPECT_EQ(info.doctor_topic.empty(), code == Code::kOk) << info.name;
    EXPECT_EQ(info.exit_code == 0, code == Code::kOk) << info.name;
    EXPECT_EQ(info.grpc_status == 0, code == Code::kOk) << info.name;
    EXPECT_EQ(info.http_status < 400, code == Code::kOk) << info.name;
  }
  EXPECT_THROW(Describe(static_cast<Code>(kCodeCount)), std::out_of_range);
}

TEST(Error, KeepsCodeMessageAndHint) {
  const Error error(Code::kNotFound, "no input x", "see --help");
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_STREQ(error.what(), "no input x");
  EXPECT_EQ(error.hint(), "see --help");
}

TEST(Error, PutsContextBeforeTheMessageAndKeepsTheRest) {
  const Error error = Error(Code::kUnsupported, "no kernel", "use f32").WithContext("node conv_1");
  EXPECT_STREQ(error.what(), "node conv_1: no kernel");
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_EQ(error.hint(), "use f32");
}

TEST(Check, ThrowsAnInternalErrorThatNamesConditionAndPlace) {
  WHIMBREL_CHECK(1 + 1 == 2);
  try {
    WHIMBREL_CHECK(1 + 1 == 3);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInternal);
    const std::string what = error.what();
    EXPECT_NE(what.find("1 + 1 == 3"), std::string::npos) << what;
    EXPECT_NE(what.find("error_test.cc:"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace whimbrel
