// Inputs: names that hold separators, shapes, seeded values, byte sizes.

#include "whimbrel/cli/inputs.h"

#include <gtest/gtest.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

using Pair = std::pair<std::string, std::string>;

std::vector<TensorSpec> Specs() {
  return {{"serving_default_input_2:0", DType::kFloat, Dims{Dim::Symbol("N"), Dim(3)}},
          {"a=b", DType::kInt64, Dims{}},
          {"x", DType::kFloat, Dims{Dim(), Dim(3)}}};
}

TEST(SplitNamed, SplitsAtTheLastSeparator) {
  EXPECT_EQ(SplitNamed("serving_default_input_2:0:1x3", ':', Specs(), "--shape"),
            Pair("serving_default_input_2:0", "1x3"));
  EXPECT_EQ(SplitNamed("a=b=f.npy", '=', Specs(), "--input"), Pair("a=b", "f.npy"));
  EXPECT_EQ(SplitNamed("a=b:", ':', Specs(), "--shape"), Pair("a=b", ""));
}

TEST(SplitNamed, PrefersTheSplitThatNamesAnInput) {
  EXPECT_EQ(SplitNamed("x=dir=1/f.npy", '=', Specs(), "--input"), Pair("x", "dir=1/f.npy"));
  EXPECT_EQ(SplitNamed("y=dir=1/f.npy", '=', Specs(), "--input"), Pair("y=dir", "1/f.npy"));
}

TEST(SplitNamed, RefusesTextWithoutNameOrSeparator) {
  EXPECT_THROW(SplitNamed("f.npy", '=', Specs(), "--input"), Error);
  EXPECT_THROW(SplitNamed("=f.npy", '=', Specs(), "--input"), Error);
}

TEST(ParseInputShapes, TakesBothFormsAndScalars) {
  const std::vector<InputShape> shapes =
      ParseInputShapes({"x:2x3", "serving_default_input_2:0:5,3", "a=b:"}, Specs());
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].shape, Shape({2, 3}));
  EXPECT_EQ(shapes[1].shape, Shape({5, 3}));
  EXPECT_EQ(shapes[2].shape.rank(), 0);
}

TEST(ParseInputShapes, WhatDoesNotFitIsWrongUse) {
  for (const char* text : {"x:2x4", "x:2", "y:1", "x:1xq", "x:-1x3", "x"}) {
    try {
      ParseInputShapes({text}, Specs());
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInvalidArgument) << text << ": " << e.what();
    }
  }
  EXPECT_THROW(ParseInputShapes({"x:2x3", "x:2x3"}, Specs()), Error);
}

TEST(SeededTensor, IsTheSameForTheSameSeedAndPlaceAndStaysInRange) {
  const Tensor a = SeededTensor(DType::kFloat, Shape{1000}, 7, 0);
  EXPECT_TRUE(BitEqual(a, SeededTensor(DType::kFloat, Shape{1000}, 7, 0)));
  EXPECT_FALSE(BitEqual(a, SeededTensor(DType::kFloat, Shape{1000}, 7, 1)));
  EXPECT_FALSE(BitEqual(a, SeededTensor(DType::kFloat, Shape{1000}, 8, 0)));
  double sum = 0;
  for (const float v : a.values<float>()) {
    EXPECT_LE(std::abs(v), 1.0f);
    sum += v;
  }
  EXPECT_LT(std::abs(sum), 100);  // 5 standard deviations are 91
  for (const int64_t v : IntegerValues(SeededTensor(DType::kInt64, Shape{1000}, 7, 0))) {
    EXPECT_TRUE(v >= 0 && v <= 9);
  }
  EXPECT_THROW(SeededTensor(DType::kString, Shape{1}, 7, 0), Error);
}

TEST(ExplainMadeUp, NamesTheIntegersOfTheSeedAndTheAssumedDims) {
  const Error index(Code::kInvalidData, "Gather: index 9 is outside [-4, 4)", "look at the data");
  EXPECT_EQ(ExplainMadeUp(index, {}, {}).hint(), "look at the data");
  const Error named = ExplainMadeUp(index, {}, {"ids", "rows"});
  EXPECT_EQ(named.code(), Code::kInvalidData);
  EXPECT_EQ(named.hint(),
            "made-up integers are 0 to 9, --input NAME=FILE gives real ones: ids, rows; "
            "look at the data");
  const Error assumed = ExplainMadeUp(index, {"x: dim 0 (N) = 1"}, {"ids"});
  EXPECT_EQ(assumed.code(), Code::kInvalidArgument);
  EXPECT_NE(assumed.hint().find("real ones: ids; these dims were assumed"), std::string::npos);
}

TEST(ExplainMadeUp, LeavesOtherErrorsAlone) {
  const Error file(Code::kInvalidData, "cannot make the folder out: Not a directory", "check");
  EXPECT_EQ(ExplainMadeUp(file, {"x: dim 0 (N) = 1"}, {"ids"}).hint(), "check");
  const Error used(Code::kInvalidArgument, "out is in use by another migrate", "wait");
  EXPECT_EQ(ExplainMadeUp(used, {"x: dim 0 (N) = 1"}, {"ids"}).hint(), "wait");
  const Error memory(Code::kOutOfMemory, "arena of 8 bytes", "");
  EXPECT_EQ(ExplainMadeUp(memory, {"x: dim 0 (N) = 1"}, {"ids"}).hint(), "");
}

TEST(Printable, LeavesNoControlCharactersButLineEndsAndTabs) {
  EXPECT_EQ(Printable("a\tb\n"), "a\tb\n");
  EXPECT_EQ(Printable("x\x1b[31mred\x07\x7f\r"), "x?[31mred???");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J \xc3\xa9 \xe6\x97\xa5 \xc2\xb5"),
            "??2J \xc3\xa9 \xe6\x97\xa5 \xc2\xb5");
  EXPECT_EQ(Printable("\xc2"), "\xc2");
}

TEST(ParseBytes, TakesUnitsAndRefusesTheRest) {
  EXPECT_EQ(ParseBytes("4096", "--memory"), 4096u);
  EXPECT_EQ(ParseBytes("1.5GiB", "--memory"), uint64_t{3} << 29);
  EXPECT_EQ(ParseBytes("2m", "--memory"), uint64_t{2} << 20);
  for (const char* text : {"", "G", "-1", "1Q", "1GiBB", "nan", "1e30T"}) {
    EXPECT_THROW(ParseBytes(text, "--memory"), Error) << text;
  }
}

TEST(FormatBytes, RoundsToTheNextUnit) {
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes((uint64_t{1} << 20) - 1), "1.0 MiB");
}

}  // namespace
}  // namespace whimbrel
