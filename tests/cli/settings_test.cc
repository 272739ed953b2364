// Settings: one rule for flags, environment and file.

#include "whimbrel/cli/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "whimbrel/base/error.h"
#include "whimbrel/cli/parse.h"

namespace whimbrel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Options {
  std::string model;
  std::vector<std::string> inputs;
  int64_t threads = 4;
  double limit = 0;
  bool quick = false;
  bool color = true;
  std::string mode = "fast";

  void Visit(ConfigVisitor& v) {
    v.Field({.name = "MODEL", .help = "", .positional = true, .required = true}, model);
    v.Field({.name = "input", .help = ""}, inputs);
    v.Field({.name = "threads", .help = "", .min = 0, .max = 64}, threads);
    v.Field({.name = "p99-ms", .help = "", .min = 0}, limit);
    v.Field({.name = "quick", .help = "", .short_flag = "q"}, quick);
    v.Field({.name = "color", .help = ""}, color);
    v.Field({.name = "mode", .help = "", .choices = {"fast", "exact"}}, mode);
  }
};

std::vector<FieldDescription> Fields() {
  Options options;
  return DescribeFields([&](ConfigVisitor& v) { options.Visit(v); });
}

Options Parsed(const std::vector<std::string>& words,
               const std::vector<std::string>& environment = {}) {
  Settings settings = ParseWords("try", Fields(), words).settings;
  MergeSettings(SettingsFromEnvironment("try", Fields(), environment), settings);
  Options options;
  ApplySettings(settings, [&](ConfigVisitor& v) { options.Visit(v); });
  return options;
}

std::string ErrorOf(const std::vector<std::string>& words,
                    const std::vector<std::string>& environment = {}) {
  try {
    Parsed(words, environment);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    return std::string(e.what()) + " | " + e.hint();
  }
  return "no error";
}

TEST(ParseWords, ARepeatedFlagTakesOneValueEachAndLeavesTheModelAlone) {
  const Options options = Parsed({"--input", "a=1", "m.onnx", "--input", "b=2"});
  EXPECT_EQ(options.model, "m.onnx");
  EXPECT_THAT(options.inputs, ElementsAre("a=1", "b=2"));
}

TEST(ParseWords, DefaultsStayWhereNothingIsSaid) {
  const Options options = Parsed({"m.onnx"});
  EXPECT_EQ(options.threads, 4);
  EXPECT_TRUE(options.color);
  EXPECT_FALSE(options.quick);
}

TEST(ParseWords, FlagsAreSwitchedOnAndOff) {
  EXPECT_TRUE(Parsed({"m.onnx", "-q"}).quick);
  EXPECT_FALSE(Parsed({"m.onnx", "--no-color"}).color);
  EXPECT_FALSE(Parsed({"m.onnx", "--quick=false"}).quick);
}

TEST(ParseWords, ValuesMayFollowAnEqualsSign) {
  EXPECT_EQ(Parsed({"m.onnx", "--threads=7"}).threads, 7);
  EXPECT_EQ(Parsed({"m.onnx", "--p99-ms", "2.5"}).limit, 2.5);
}

TEST(ParseWords, UnknownFlagsNameTheNearest) {
  EXPECT_THAT(ErrorOf({"m.onnx", "--thread", "2"}), HasSubstr("did you mean --threads?"));
  EXPECT_THAT(ErrorOf({"m.onnx", "two.onnx"}), HasSubstr("'two.onnx'"));
}

TEST(ApplySettings, ChecksRangesChoicesAndWhatIsRequired) {
  EXPECT_THAT(ErrorOf({"m.onnx", "--threads", "65"}),
              HasSubstr("--threads: 65 is out of range | give 0 to 64"));
  EXPECT_THAT(ErrorOf({"m.onnx", "--threads", "99999999999999999999"}), HasSubstr("64 bits"));
  EXPECT_THAT(ErrorOf({"m.onnx", "--p99-ms", "nan"}), HasSubstr("out of range"));
  EXPECT_THAT(ErrorOf({"m.onnx", "--mode", "exat"}), HasSubstr("did you mean exact?"));
  EXPECT_THAT(ErrorOf({"--quick"}), HasSubstr("missing: MODEL"));
}

TEST(SettingsFromEnvironment, FlagsGoFirstAndListsAreJoinedBySemicolons) {
  const std::vector<std::string> environment{"WHIMBREL_TRY_THREADS=2", "WHIMBREL_TRY_INPUT=a=1;b=2",
                                             "WHIMBREL_ISA=avx2", "HOME=/"};
  EXPECT_EQ(Parsed({"m.onnx"}, environment).threads, 2);
  EXPECT_EQ(Parsed({"m.onnx", "--threads", "3"}, environment).threads, 3);
  EXPECT_THAT(Parsed({"m.onnx"}, environment).inputs, ElementsAre("a=1", "b=2"));
}

TEST(SettingsFromEnvironment, UnknownVariablesOfThePartNameTheNearest) {
  EXPECT_THAT(ErrorOf({"m.onnx"}, {"WHIMBREL_TRY_THREAD=2"}),
              HasSubstr("did you mean WHIMBREL_TRY_THREADS?"));
}

}  // namespace
}  // namespace whimbrel
