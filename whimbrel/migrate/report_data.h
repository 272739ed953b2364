// report_data: texts and numbers made safe for a page, and the data behind its charts.

#pragma once

#include <string>
#include <string_view>

#include "whimbrel/base/json.h"

namespace whimbrel {

// Where the charts' logarithmic axis puts "no difference at all".
constexpr double kLeastError = 1e-9;

// Text as it may stand in HTML, between tags or in a quoted attribute.
std::string EscapeHtml(std::string_view text);
// JSON as it may stand inside a <script> element.
std::string JsonForScript(const Json& json);
// A word as a POSIX shell reads it back.
std::string ShellQuoted(const std::string& word);

// What report.js reads; charts of missing stages are left out.
Json ChartData(const Json& manifest);

}  // namespace whimbrel
