// Escaping, and the charts' numbers.

#include "whimbrel/migrate/report_data.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "whimbrel/migrate/manifest.h"

namespace whimbrel {
namespace {

constexpr size_t kChartOps = 18;

const Json* Stage(const Json& manifest, std::string_view stage) {
  return Member(Member(Member(&manifest, "stages"), stage), "result");
}

// Numbers only where the charts need them: null would end a line.
double Plotted(const Json& ratio, const Json& tolerance) {
  const double value = ratio.is_number() ? ratio.get<double>() * tolerance.get<double>() : 1;
  return std::isfinite(value) ? value : 1;
}

}  // namespace

Json ChartData(const Json& manifest) {
  Json data = {{"least_error", kLeastError}, {"modelled", ""}};
  if (const Json* scan = Stage(manifest, "scan")) {
    Json ops = scan->at("ops");
    // Custom and adapt come first; the tail of direct ops is one bar.
    int64_t rest = 0;
    while (ops.size() > kChartOps) {
      rest += ops.back().at("count").get<int64_t>();
      ops.erase(ops.size() - 1);
    }
    data["coverage"] = Json::array();
    for (const Json& op : ops)
      data["coverage"].push_back(
          Json{{"op", op.at("op")}, {"count", op.at("count")}, {"verdict", op.at("verdict")}});
    if (rest > 0)
      data["coverage"].push_back(Json{{"op", "others"}, {"count", rest}, {"verdict", "direct"}});
  }
  if (const Json* align = Stage(manifest, "align")) {
    data["layers"] = Json::array();
    for (const Json& l : align->at("layers")) {
      data["layers"].push_back(
          Json{{"name", l.at("name")},
               {"own", Plotted(l.at("worst_ratio"), l.at("tolerance"))},
               {"chained", Plotted(l.at("chained").at("worst_ratio"), l.at("tolerance"))},
               {"tolerance", l.at("tolerance")}});
    }
  }
  if (const Json* bench = Stage(manifest, "bench")) {
    const Json& l = bench->at("latency_ms");
    data["histogram"] = bench->at("histogram");
    data["modelled"] = bench->at("modelled").get<bool>() ? " (modelled)" : "";
    data["percentiles"] = Json::array({Json{{"name", "P50"}, {"ms", l.at("p50")}},
                                       Json{{"name", "P95"}, {"ms", l.at("p95")}},
                                       Json{{"name", "P99"}, {"ms", l.at("p99")}}});
    data["op_times"] = Json::array();
    for (size_t i = 0; i < std::min(bench->at("ops").size(), kChartOps); ++i) {
      data["op_times"].push_back(
          Json{{"op", bench->at("ops")[i].at("op")}, {"ms", bench->at("ops")[i].at("ms")}});
    }
  }
  return data;
}

std::string EscapeHtml(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string JsonForScript(const Json& json) {
  const std::string text =
      json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    // "</script>" and "<!--" end or change a script element wherever they stand.
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

// A word as a POSIX shell reads it back.
std::string ShellQuoted(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%") ==
          std::string::npos)
    return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace whimbrel
