// The page, section by section.

#include "whimbrel/migrate/report.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/migrate/embedded.h"
#include "whimbrel/migrate/manifest.h"
#include "whimbrel/migrate/report_data.h"
#include "whimbrel/migrate/stage_text.h"

namespace whimbrel {
namespace {

constexpr double kMib = 1 << 20;
constexpr std::string_view kScheme = "https://";

constexpr size_t kShownLayers = 40;

double Number(const Json& json) {
  return json.is_number() ? json.get<double>() : std::nan("");
}
std::string Text(const Json& json) {
  return json.is_string() ? json.get<std::string>() : json.dump();
}
std::string E(const Json& json) {
  return EscapeHtml(Text(json));
}

std::string ErrorText(const Json& json) {
  return json.is_number() ? fmt::format("{:.2e}", json.get<double>()) : "not finite";
}

struct Cell {
  std::string html;            // escaped already
  std::string_view kind = {};  // class: "n", "pass", "fail", "key"
};

class HtmlTable {
 public:
  explicit HtmlTable(const std::vector<Cell>& header) {
    text_ = "<div class=\"scroll\"><table>";
    if (!header.empty()) Add("th", header);
  }
  HtmlTable& Row(const std::vector<Cell>& cells) {
    Add("td", cells);
    return *this;
  }
  std::string End() { return text_ + "</table></div>\n"; }

 private:
  void Add(std::string_view tag, const std::vector<Cell>& cells) {
    text_ += "<tr>";
    for (const Cell& cell : cells)
      text_ += fmt::format("<{0} class=\"{1}\">{2}</{0}>", tag, cell.kind, cell.html);
    text_ += "</tr>\n";
  }
  std::string text_;
};

std::string Section(std::string_view title, std::string_view lead, std::string_view chart,
                    const std::string& table) {
  if (chart.empty())
    return fmt::format("<section><h2>{}</h2>\n<p class=\"soft\">{}</p>\n{}</section>\n", title,
                       lead, table);
  return fmt::format(
      "<section><h2>{0}</h2>\n<p class=\"soft\">{1}</p>\n<div class=\"pair\"><div "
      "class=\"chart\"><canvas id=\"{2}\" role=\"img\" "
      "aria-label=\"{0}\"></canvas></div>\n<div>{3}</div></div></section>\n",
      title, lead, chart, table);
}

const Json* Stage(const Json& manifest, std::string_view stage) {
  return Member(Member(Member(&manifest, "stages"), stage), "result");
}

std::string Header(const Json& manifest) {
  const Json& verdict = manifest.at("verdict");
  const Json* error = Member(&manifest, "error");
  const bool failed = error != nullptr && error->is_object();
  std::string word = verdict.is_string() ? verdict.get<std::string>() : "not judged";
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string html = fmt::format(
      "<header><h1>{} on {}</h1>\n<p class=\"soft\">{} &middot; whimbrel {}</p>\n<span "
      "class=\"verdict {}\">{}</span>\n",
      E(manifest.at("model").at("name")), E(manifest.at("target").at("device")),
      E(manifest.at("target").at("description")), E(manifest.at("tool").at("version")),
      verdict == "pass" ? "pass" : "fail", EscapeHtml(word));
  if (failed) {
    html += fmt::format("<p>Stage {} ended with an error: {}</p><p class=\"soft\">{}</p>\n",
                        E(error->at("stage")), E(error->at("text")), E(error->at("hint")));
  }
  if (const Json* checks = Member(Member(&manifest, "gate"), "checks")) {
    HtmlTable table({{"check"}, {"figure"}, {"limit"}, {"result"}, {""}});
    for (const Json& check : *checks) {
      const bool asked = check.at("asked").get<bool>();
      const bool pass = check.at("pass").get<bool>();
      table.Row({{E(check.at("name"))},
                 {E(check.at("figure"))},
                 {E(check.at("limit"))},
                 {!asked ? "not asked"
                  : pass ? "pass"
                         : "fail",
                  !asked ? ""
                  : pass ? "pass"
                         : "fail"},
                 {E(check.at("detail"))}});
    }
    html += table.End();
  }
  if (Member(&manifest, "target") != nullptr && manifest.at("target").at("emulated") == true) {
    html +=
        "<p class=\"soft\">The device is emulated: results are computed, times are modelled.</p>\n";
  }
  return html + "</header>\n";
}

std::string Stages(const Json& manifest) {
  HtmlTable table({{"stage"}, {"seconds", "n"}, {"outcome"}});
  for (const char* stage : {"scan", "compile", "align", "bench", "package"}) {
    const Json* record = Member(Member(&manifest, "stages"), stage);
    if (record == nullptr) continue;
    table.Row({{stage},
               {fmt::format("{:.2f}", Number(record->at("seconds"))), "n"},
               {EscapeHtml(StageText(manifest, stage))}});
  }
  return Section("Stages", "What was done, and what came out of it.", "", table.End());
}

std::string Coverage(const Json& scan) {
  const Json& c = scan.at("coverage");
  HtmlTable table({{"op"}, {"version", "n"}, {"nodes", "n"}, {"verdict"}, {"effort"}, {"reason"}});
  for (const Json& op : scan.at("ops")) {
    const std::string name = op.at("domain") == "ai.onnx"
                                 ? Text(op.at("op"))
                                 : Text(op.at("domain")) + "::" + Text(op.at("op"));
    table.Row({{EscapeHtml(name)},
               {E(op.at("version")), "n"},
               {E(op.at("count")), "n"},
               {E(op.at("verdict"))},
               {E(op.at("effort"))},
               {E(op.at("reason"))}});
  }
  std::string html = Section(
      "Coverage",
      fmt::format("{:.1f} % of the nodes and {:.1f} % of the FLOPs run on {} as they are: {} "
                  "direct, {} to adapt, {} without a kernel.",
                  Number(c.at("count_percent")), Number(c.at("flops_percent")),
                  E(scan.at("target")), E(c.at("direct")), E(c.at("adapt")), E(c.at("custom"))),
      "chart-coverage", table.End());
  if (scan.at("findings").empty()) return html;
  HtmlTable findings({{"finding"}, {"what"}, {"where"}});
  for (const Json& f : scan.at("findings"))
    findings.Row({{E(f.at("id"))}, {E(f.at("text"))}, {E(f.at("where"))}});
  return html +
         Section("Findings", "What to know of the model beyond its ops.", "", findings.End());
}

std::string Alignment(const Json& align) {
  std::vector<const Json*> layers;
  for (const Json& layer : align.at("layers")) layers.push_back(&layer);
  const auto ratio = [](const Json* layer) {
    return layer->at("worst_ratio").is_null() ? HUGE_VAL : Number(layer->at("worst_ratio"));
  };
  std::stable_sort(layers.begin(), layers.end(),
                   [&](const Json* a, const Json* b) { return ratio(a) > ratio(b); });
  HtmlTable table(
      {{"layer"}, {"op"}, {"max abs", "n"}, {"cosine", "n"}, {"of tolerance", "n"}, {""}});
  for (const Json& o : align.at("outputs")) {
    table.Row(
        {{"output " + E(o.at("name"))},
         {"end to end"},
         {ErrorText(o.at("max_abs")), "n"},
         {fmt::format("{:.7f}", Number(o.at("cosine"))), "n"},
         {fmt::format("{:.1f} %", 100 * Number(o.at("worst_ratio"))), "n"},
         {o.at("ok").get<bool>() ? "pass" : "fail", o.at("ok").get<bool>() ? "pass" : "fail"}});
  }
  for (size_t i = 0; i < std::min(layers.size(), kShownLayers); ++i) {
    const Json& l = *layers[i];
    const bool ok = l.at("ok").get<bool>();
    table.Row({{E(l.at("name"))},
               {E(l.at("op"))},
               {ErrorText(l.at("max_abs")), "n"},
               {fmt::format("{:.7f}", Number(l.at("cosine"))), "n"},
               {fmt::format("{:.1f} %", 100 * Number(l.at("worst_ratio"))), "n"},
               {ok ? "pass" : "fail", ok ? "pass" : "fail"}});
  }
  const Json& first = align.at("first_bad_layer");
  return Section("Error per layer",
                 fmt::format("{} layers against the float64 reference. Own: the layer on the "
                             "reference's inputs, which decides; chained: what errors before "
                             "it add. {} No difference is drawn at {:.0e}. The table has the "
                             "outputs and the {} layers nearest to their tolerance.",
                             layers.size(),
                             first.is_string() ? "First over tolerance: " + E(first) + "."
                                               : "No layer is over tolerance.",
                             kLeastError, std::min(layers.size(), kShownLayers)),
                 "chart-errors", table.End());
}

std::string Latency(const Json& bench) {
  const Json& l = bench.at("latency_ms");
  const std::string modelled = bench.at("modelled").get<bool>() ? " (modelled)" : "";
  HtmlTable table({{"figure"}, {"value", "n"}});
  for (const auto& [name, key] :
       std::vector<std::pair<std::string, std::string>>{{"least", "min"},
                                                        {"mean", "mean"},
                                                        {"P50", "p50"},
                                                        {"P95", "p95"},
                                                        {"P99", "p99"},
                                                        {"most", "max"}}) {
    table.Row({{name + modelled}, {fmt::format("{:.3f} ms", Number(l.at(key))), "n"}});
  }
  const Json& m = bench.at("memory");
  table.Row({{"throughput" + modelled},
             {fmt::format("{:.2f} per s", Number(bench.at("throughput_per_s"))), "n"}});
  table.Row({{"threads, batch"}, {E(bench.at("threads")) + ", " + E(bench.at("batch")), "n"}});
  table.Row({{"peak memory of the process"},
             {fmt::format("{:.1f} MiB", Number(bench.at("peak_memory_bytes")) / kMib), "n"}});
  table.Row({{"activations, workspace"},
             {fmt::format("{:.1f}, {:.1f} MiB", Number(m.at("arena_bytes")) / kMib,
                          Number(m.at("workspace_bytes")) / kMib),
              "n"}});
  table.Row({{"weights, packed weights"},
             {fmt::format("{:.1f}, {:.1f} MiB", Number(m.at("constant_bytes")) / kMib,
                          Number(m.at("prepared_bytes")) / kMib),
              "n"}});
  table.Row({{"arithmetic"}, {fmt::format("{:.1f} GFLOP/s", Number(bench.at("gflops"))), "n"}});
  table.Row({{"of this machine's peak"},
             {fmt::format("{:.1f} % of {:.1f} GFLOP/s", 100 * Number(bench.at("flops_of_limit")),
                          Number(bench.at("machine_gflops"))),
              "n"}});
  table.Row({{"energy"},
             {bench.at("power_w").is_number()
                  ? fmt::format("{:.1f} W, {:.4g} J per item", Number(bench.at("power_w")),
                                Number(bench.at("energy_j_per_item")))
                  : "unknown: " + E(bench.at("power_reason"))}});
  for (const Json& advice : bench.at("advice")) table.Row({{"advice"}, {E(advice)}});
  return Section("Latency",
                 fmt::format("{} runs after {} to warm up; the last bar holds all slower ones.",
                             E(bench.at("iterations")), E(bench.at("warmup"))),
                 "chart-latency", table.End());
}

std::string OpTimes(const Json& bench) {
  HtmlTable table({{"op"}, {"calls", "n"}, {"ms a run", "n"}, {"share", "n"}});
  for (const Json& op : bench.at("ops")) {
    table.Row({{E(op.at("op"))},
               {E(op.at("calls")), "n"},
               {fmt::format("{:.3f}", Number(op.at("ms"))), "n"},
               {fmt::format("{:.1f} %", 100 * Number(op.at("share"))), "n"}});
  }
  return Section("Time per op",
                 "Measured in a pass of its own with a clock around each step; fused ops carry the "
                 "name of the fusion.",
                 "chart-ops", table.End());
}

std::string Reproduce(const Json& manifest) {
  const std::string model = ShellQuoted(Text(manifest.at("model").at("path")));
  const std::string device = ShellQuoted(Text(manifest.at("target").at("device")));
  const Json& options = manifest.at("options");
  std::string shapes;
  for (const auto& [name, dims] : options.at("shapes").items()) {
    std::string text;
    for (const Json& dim : dims) {
      if (!text.empty()) text += 'x';
      text += dim.dump();
    }
    shapes += " --shape " + ShellQuoted(name + ":" + text);
  }
  const std::string threads = " --threads " + options.at("threads").dump();
  std::string commands;
  if (const std::string typed = Text(options.at("command")); !typed.empty())
    commands += typed + "\n";
  const Json* target = Member(Stage(manifest, "scan"), "target");
  commands += fmt::format("whimbrel scan {}{} --target {}\n", model, shapes,
                          target == nullptr ? "cpu" : ShellQuoted(Text(*target)));
  commands +=
      fmt::format("whimbrel align {}{} --device {}{} --seed 1\n", model, shapes, device, threads);
  commands += fmt::format("whimbrel bench {}{} --device {}{}\n", model, shapes, device, threads);
  HtmlTable table({});
  const auto row = [&](const std::string& key, const Json& value) {
    if (!Text(value).empty()) table.Row({{key, "key"}, {E(value)}});
  };
  row("model", manifest.at("model").at("path"));
  row("model SHA-256", manifest.at("model").at("sha256"));
  row("inputs", options.at("inputs"));
  row("inputs SHA-256", options.at("inputs_sha256"));
  row("instruction set", options.at("isa"));
  row("switched off", options.at("fusion_switches"));
  if (const Json* package = Member(&manifest, "package");
      package != nullptr && package->is_object()) {
    row("package", package->at("file"));
    row("package SHA-256", package->at("sha256"));
  }
  return Section(
      "Do it again",
      "The first line is what was typed; the others repeat single stages with made-up inputs.", "",
      "<pre><code>" + EscapeHtml(commands) + "</code></pre>\n" + table.End());
}

// The library's comments name two sites. Without the scheme nobody mistakes them for something that
// is loaded.
std::string WithoutAddresses(std::string_view script) {
  std::string text(script);
  for (size_t at = text.find(kScheme); at != std::string::npos; at = text.find(kScheme, at))
    text.erase(at, kScheme.size());
  return text;
}

std::string Page(const Json& manifest) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += fmt::format("<title>{} on {}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
                      E(manifest.at("model").at("name")), E(manifest.at("target").at("device")),
                      kReportCss);
  html += Header(manifest);
  html += Stages(manifest);
  if (const Json* scan = Stage(manifest, "scan")) html += Coverage(*scan);
  if (const Json* align = Stage(manifest, "align")) html += Alignment(*align);
  if (const Json* bench = Stage(manifest, "bench")) html += Latency(*bench) + OpTimes(*bench);
  html += Reproduce(manifest);
  html += "</main>\n<script type=\"application/json\" id=\"data\">" +
          JsonForScript(ChartData(manifest)) + "</script>\n";
  html += "<script>" + WithoutAddresses(kChartJs) + "</script>\n<script>";
  html += kReportJs;
  return html + "</script>\n</body>\n</html>\n";
}

}  // namespace

std::string MakeReport(const Json& manifest) {
  try {
    return Page(manifest);
  } catch (const Json::exception& e) {
    throw Error(Code::kInvalidData,
                fmt::format("the manifest is not of the form that the report needs: {}", e.what()),
                "run whimbrel migrate again with --restart");
  }
}

}  // namespace whimbrel
