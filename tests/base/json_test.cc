// JSON: what is read, what is refused and where the error says it stands.

#include "whimbrel/base/json.h"

#include <chrono>
#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

std::string ErrorOf(std::string_view text) {
  try {
    ParseJson(text, "c.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidData) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(ParseJson, ReadsEveryKindAndKeepsTheOrderOfKeys) {
  const Json json = ParseJson(
      R"({"z": [1, -2, 2.5, true, null, "\u00e9\n"], "a": {"y": {}, "x": [[]]}, "big": 18446744073709551615})",
      "c.json");
  EXPECT_EQ(json["z"].dump(), R"([1,-2,2.5,true,null,"é\n"])");
  EXPECT_EQ(json["a"].dump(), R"({"y":{},"x":[[]]})");
  EXPECT_EQ(json["big"].get<uint64_t>(), 18446744073709551615u);
  EXPECT_EQ(json.begin().key(), "z");
  EXPECT_EQ(ParseJson("7", "c.json").get<int>(), 7);
  EXPECT_EQ(ParseJson("\"x\"", "c.json").get<std::string>(), "x");
}

TEST(ParseJson, GivesWhatTheLibrarysOwnParserGives) {
  for (const char* text : {"{}", "[]", "[{},[],{\"a\":[{\"b\":1}]},0.1,1e-320,-0,1E5]",
                           "{\"a\":{\"b\":{\"c\":[1,[2,[3]]]}},\"d\":\"\\ud83d\\ude00\"}",
                           " \n\t[ 1 , 2 ]\r\n", "\xef\xbb\xbf[1]"}) {
    EXPECT_EQ(ParseJson(text, "t"), Json::parse(text)) << text;
  }
}

TEST(ParseJson, NamesSourceLineAndColumnOfAMistake) {
  EXPECT_EQ(ErrorOf("{\n \"a\": [1, 2,, 3]}").substr(0, 34), "c.json: line 2, column 13: syntax ");
  EXPECT_EQ(ErrorOf("{\"a\" 1}").substr(0, 26), "c.json: line 1, column 7: ");
  EXPECT_EQ(ErrorOf("[1]\n\n]").substr(0, 26), "c.json: line 3, column 1: ");
  EXPECT_EQ(ErrorOf("").substr(0, 26), "c.json: line 1, column 1: ");
  EXPECT_NE(ErrorOf("[1e999]").find("line 1, column 7: number overflow"), std::string::npos);
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  for (const char* text : {"[1,]", "{\"a\":1,}", "// c\n1", "NaN", "[01]", "'a'", "[1] 2",
                           "\"\xff\"", "\"\\ud800\"", "\"a\nb\"", "{1:2}", "[", "{", "tru"}) {
    EXPECT_NE(ErrorOf(text), "no error") << text;
  }
}

TEST(ParseJson, RefusesAKeyThatStandsTwice) {
  const std::string what = ErrorOf("{\"a\": 1, \"b\": {}, \"a\": 2}");
  EXPECT_NE(what.find("\"a\" twice"), std::string::npos) << what;
  EXPECT_EQ(ErrorOf("[{\"a\": 1}, {\"a\": 2}]"), "no error");
}

TEST(ParseJson, LimitsTheDepthTo256) {
  EXPECT_EQ(ErrorOf(std::string(256, '[') + std::string(256, ']')), "no error");
  const std::string what = ErrorOf(std::string(257, '[') + std::string(257, ']'));
  EXPECT_EQ(what, "c.json: line 1, column 257: nested deeper than 256 levels");
  EXPECT_NE(ErrorOf(std::string(1'000'000, '[')).find("256"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 300; ++i) objects += "{\"a\":";
  EXPECT_NE(ErrorOf(objects).find("256"), std::string::npos);
  EXPECT_EQ(ErrorOf("[\"" + std::string(1000, '[') + "\"]"), "no error");
}

TEST(ParseJson, ReadsAWideObjectInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"key" + std::to_string(i) + "\":0,";
  text.back() = '}';
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ParseJson(text, "t").size(), 100'000u);
  // A look-up for every key would compare 5e9 strings.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(DumpJson, IndentsByTwoEndsTheLineAndWritesNullForNoNumber) {
  Json json;
  json["b"] = {1, 2.5};
  json["a"] = std::nan("");
  json["i"] = INFINITY;
  EXPECT_EQ(DumpJson(json),
            "{\n  \"b\": [\n    1,\n    2.5\n  ],\n  \"a\": null,\n  \"i\": null\n}\n");
}

TEST(DumpJson, WritesBytesThatAreNoUtf8AsReplacementCharacters) {
  EXPECT_EQ(DumpJson(Json("a\xff")), "\"a\xef\xbf\xbd\"\n");
}

}  // namespace
}  // namespace whimbrel
