// One sentence per stage, and the summary of a migration.

#include "whimbrel/migrate/stage_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/migrate/manifest.h"
#include "whimbrel/migrate/pipeline.h"

namespace whimbrel {
namespace {

double Number(const Json& json) {
  return json.is_number() ? json.get<double>() : 0;
}

std::string AlignText(const Json& r) {
  double worst = 0;
  std::string name;
  for (const Json& layer : r.at("layers")) {
    // An infinite ratio was written as null.
    const double ratio =
        layer.at("worst_ratio").is_null() ? 1e300 : layer.at("worst_ratio").get<double>();
    if (ratio <= worst) continue;
    worst = ratio;
    name = layer.at("name").get<std::string>();
  }
  std::string text =
      fmt::format("{}: {} layers", r.at("verdict").get<std::string>(), r.at("layers").size());
  if (r.at("first_bad_layer").is_string())
    return text +
           fmt::format(", first over tolerance: {}", r.at("first_bad_layer").get<std::string>());
  if (!name.empty())
    text += fmt::format(", worst at {:.1f} % of its tolerance ({})", worst * 100, name);
  return text;
}

std::string TextOf(std::string_view stage, const Json& r) {
  if (stage == "scan") {
    const Json& c = r.at("coverage");
    return fmt::format("{:.1f} % of {} nodes are direct on {}", Number(c.at("count_percent")),
                       c.at("direct").get<int64_t>() + c.at("adapt").get<int64_t>() +
                           c.at("custom").get<int64_t>(),
                       r.at("target").get<std::string>());
  }
  if (stage == "compile") {
    return fmt::format("{} nodes became {}, {} steps", r.at("nodes_before").get<int64_t>(),
                       r.at("nodes_after").get<int64_t>(), r.at("steps").get<int64_t>());
  }
  if (stage == "align") return AlignText(r);
  if (stage == "bench") {
    const Json& l = r.at("latency_ms");
    return fmt::format("P50 {:.2f} ms, P99 {:.2f} ms, {:.1f} per s, peak {:.1f} MiB{}",
                       Number(l.at("p50")), Number(l.at("p99")), Number(r.at("throughput_per_s")),
                       Number(r.at("peak_memory_bytes")) / (1 << 20),
                       r.at("modelled").get<bool>() ? " (times modelled)" : "");
  }
  if (stage == "package") {
    return fmt::format("{:.1f} MiB, {} probes, SHA-256 {}", Number(r.at("bytes")) / (1 << 20),
                       r.at("probes").get<int64_t>(),
                       r.at("sha256").get<std::string>().substr(0, 16));
  }
  return "";
}

}  // namespace

std::string StageText(const Json& manifest, std::string_view stage) {
  if (stage == "gate") {
    const Json* checks = Member(Member(&manifest, "gate"), "checks");
    if (checks == nullptr) return "";
    const auto passed = std::count_if(checks->begin(), checks->end(),
                                      [](const Json& c) { return c.at("pass").get<bool>(); });
    return fmt::format("{} of {} checks pass", passed, checks->size());
  }
  const Json* result = Member(Member(Member(&manifest, "stages"), stage), "result");
  return result == nullptr ? "" : TextOf(stage, *result);
}

Json ToJson(const MigrateResult& result) {
  Json stages = Json::array();
  for (const StageOutcome& stage : result.stages) {
    stages.push_back(Json{{"name", stage.name},
                          {"reused", stage.reused},
                          {"seconds", stage.seconds},
                          {"text", stage.text}});
  }
  Json json = ToJson(result.gate);
  json["directory"] = result.directory;
  json["package"] = result.package;
  json["package_sha256"] = result.contents->at("package").at("sha256");
  json["manifest"] = result.manifest;
  json["report"] = result.report;
  json["stages"] = std::move(stages);
  json["notes"] = result.notes;
  return json;
}

std::string ToText(const MigrateResult& result) {
  std::string text;
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", note);
  for (const StageOutcome& stage : result.stages) {
    const std::string time = stage.reused           ? "unchanged"
                             : stage.name == "gate" ? ""
                                                    : fmt::format("{:.2f} s", stage.seconds);
    text += fmt::format("{:<8} {:>10}  {}\n", stage.name, time, stage.text);
  }
  text += "\n" + ToText(result.gate) + "\n";
  text += fmt::format("package  {}\nmanifest {}\nreport   {}\n", result.package, result.manifest,
                      result.report);
  return text;
}

}  // namespace whimbrel
