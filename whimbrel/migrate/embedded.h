// embedded: texts of migrate/data/ and Chart.js as the build compiled them in.

#pragma once

#include <string_view>

namespace whimbrel {

extern const std::string_view kOnnxOpsCsv;
extern const std::string_view kFunctionBodiesCsv;
extern const std::string_view kReportCss;
extern const std::string_view kReportJs;
extern const std::string_view kChartJs;  // 3.9.1, MIT

}  // namespace whimbrel
