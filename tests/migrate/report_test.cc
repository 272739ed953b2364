// The report: names from a model cannot leave their place, and nothing outside the page is asked
// for.

#include "whimbrel/migrate/report.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/migrate/report_data.h"

namespace whimbrel {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kEvil = "</script><img src=x onerror=\"alert('1')\">";

Json Layer() {
  return Json{
      {"name", kEvil},      {"op", "Conv"},           {"cosine", 1},
      {"max_abs", nullptr}, {"max_rel", 0},           {"ok", false},
      {"tolerance", 1e-3},  {"worst_ratio", nullptr}, {"chained", {{"worst_ratio", nullptr}}}};
}

Json Manifest() {
  return Json{
      {"format", 1},
      {"tool", {{"version", "1"}}},
      {"model", {{"path", kEvil}, {"name", kEvil}, {"sha256", "00"}}},
      {"target", {{"device", "cpu:0"}, {"description", "x"}, {"emulated", false}}},
      {"options",
       {{"command", kEvil},
        {"inputs", kEvil},
        {"inputs_sha256", ""},
        {"shapes", {{kEvil, {1, 2}}}},
        {"threads", 1},
        {"isa", "avx2"},
        {"fusion_switches", ""}}},
      {"stages",
       {{"scan",
         {{"seconds", 1},
          {"result",
           {{"target", "cpu"},
            {"coverage",
             {{"count_percent", 0},
              {"flops_percent", 0},
              {"direct", 0},
              {"adapt", 0},
              {"custom", 1}}},
            {"ops", Json::array({Json{{"op", kEvil},
                                      {"domain", kEvil},
                                      {"version", 1},
                                      {"count", 1},
                                      {"verdict", "custom"},
                                      {"reason", kEvil},
                                      {"effort", "weeks"}}})},
            {"findings", Json::array({Json{{"id", "x"}, {"text", kEvil}, {"where", kEvil}}})}}}}},
        {"align",
         {{"seconds", 1},
          {"result",
           {{"verdict", "fail"},
            {"first_bad_layer", kEvil},
            {"outputs", Json::array()},
            {"layers", Json::array({Layer()})}}}}}}},
      {"package", nullptr},
      {"gate", nullptr},
      {"verdict", nullptr},
      {"error", {{"stage", "bench"}, {"text", kEvil}, {"hint", kEvil}}}};
}

TEST(Report, EscapesWhatTheModelSays) {
  const std::string page = MakeReport(Manifest());
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x"));
  EXPECT_THAT(page, HasSubstr("\\u003c/script\\u003e"));
}

TEST(Report, AsksForNothingOutsideThePage) {
  const std::string page = MakeReport(Manifest());
  for (const char* word : {"http://", "https://", "src=\"", "href=\"", "@import"})
    EXPECT_THAT(page, Not(HasSubstr(word))) << word;
  EXPECT_THAT(page, HasSubstr("Chart.js v3.9.1"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
}

TEST(Report, RefusesAnotherForm) {
  EXPECT_THROW(MakeReport(Json::object()), Error);
}

TEST(ShellQuoted, IsReadBackByAShell) {
  EXPECT_EQ(ShellQuoted("x:1x3"), "x:1x3");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuoted(""), "''");
}

TEST(EscapeHtml, ReplacesFiveCharacters) {
  EXPECT_EQ(EscapeHtml("<a b='c' d=\"e\">&"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;");
}

}  // namespace
}  // namespace whimbrel
