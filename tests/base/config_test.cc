// "Did you mean": the nearest known word.

#include "whimbrel/base/config.h"

#include <string>

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

const std::vector<std::string_view> kKnown = {"device", "out", "p99-ms", "calibration", "threads"};

TEST(NearestWord, FindsMisspeltSwappedAndCutWords) {
  EXPECT_EQ(NearestWord("devcie", kKnown), "device");
  EXPECT_EQ(NearestWord("devices", kKnown), "device");
  EXPECT_EQ(NearestWord("otu", kKnown), "out");
  EXPECT_EQ(NearestWord("p99_ms", kKnown), "p99-ms");
  EXPECT_EQ(NearestWord("calib", kKnown), "calibration");
  EXPECT_EQ(NearestWord("threads", kKnown), "threads");
}

TEST(NearestWord, FindsNothingWhenNothingIsNear) {
  EXPECT_EQ(NearestWord("zebra", kKnown), "");
  EXPECT_EQ(NearestWord("", kKnown), "");
  EXPECT_EQ(NearestWord("x", {"y"}), "");
  EXPECT_EQ(NearestWord("device", {}), "");
  EXPECT_EQ(NearestWord(std::string(100'000, 'a'), kKnown), "");
}

struct Sample {
  bool flag = false;
  std::string text = "x";
  void Visit(ConfigVisitor& visitor) {
    visitor.Field({.name = "flag", .help = "a switch"}, flag);
    visitor.Field({.name = "text", .help = "a word", .choices = {"x", "y"}}, text);
  }
};

class Names : public ConfigVisitor {
 public:
  void Field(const FieldInfo& info, bool& value) override {
    seen += info.name;
    value = true;
  }
  void Field(const FieldInfo&, int64_t&) override {}
  void Field(const FieldInfo&, double&) override {}
  void Field(const FieldInfo& info, std::string& value) override {
    seen += info.name;
    value = info.choices.back();
  }
  void Field(const FieldInfo&, std::vector<std::string>&) override {}
  std::string seen;
};

TEST(ConfigVisitor, SeesEveryFieldByNameAndMaySetIt) {
  Sample sample;
  Names names;
  sample.Visit(names);
  EXPECT_EQ(names.seen, "flagtext");
  EXPECT_TRUE(sample.flag);
  EXPECT_EQ(sample.text, "y");
}

}  // namespace
}  // namespace whimbrel
