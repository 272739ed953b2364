// The five checks.

#include "whimbrel/migrate/gate.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/graph/package.h"
#include "whimbrel/migrate/manifest.h"

namespace whimbrel {
namespace {

constexpr double kMib = 1 << 20;

GateCheck MissingStage(std::string name, std::string limit, std::string_view stage) {
  return {
      .name = std::move(name),
      .figure = "unknown",
      .limit = std::move(limit),
      .asked = true,
      .pass = false,
      .detail = fmt::format("stage {} is not in manifest.json: run whimbrel migrate again", stage)};
}

GateCheck CheckCoverage(const Manifest& manifest, double least) {
  const std::string limit = fmt::format(">= {:g} %", least);
  const Json* scan = manifest.Result("scan");
  if (scan == nullptr) return MissingStage("coverage", limit, "scan");
  const double percent = scan->at("coverage").at("count_percent").get<double>();
  GateCheck check{.name = "coverage",
                  .figure = fmt::format("{:.1f} %", percent),
                  .limit = limit,
                  .asked = true,
                  .pass = percent >= least,
                  .detail = ""};
  if (!check.pass) {
    check.detail =
        fmt::format("{} nodes to adapt, {} to write kernels for: whimbrel scan names them",
                    scan->at("coverage").at("adapt").get<int64_t>(),
                    scan->at("coverage").at("custom").get<int64_t>());
  }
  return check;
}

GateCheck CheckAlignment(const Manifest& manifest) {
  const std::string limit = "every layer and end to end";
  const Json* align = manifest.Result("align");
  if (align == nullptr) return MissingStage("alignment", limit, "align");
  const auto good = [](const Json& list) {
    return std::count_if(list.begin(), list.end(),
                         [](const Json& item) { return item.at("ok").get<bool>(); });
  };
  const Json& layers = align->at("layers");
  const Json& outputs = align->at("outputs");
  GateCheck check{.name = "alignment",
                  .figure = fmt::format("{} of {} layers, {} of {} outputs", good(layers),
                                        layers.size(), good(outputs), outputs.size()),
                  .limit = limit,
                  .asked = true,
                  .pass = align->at("verdict") == "pass",
                  .detail = ""};
  if (!check.pass) {
    const Json& first = align->at("first_bad_layer");
    check.detail = first.is_string()
                       ? fmt::format("first layer over tolerance: {}", first.get<std::string>())
                       : "errors add up to more than the end to end tolerance";
  }
  return check;
}

// Reloads the package: every hash is checked, then the probes run.
GateCheck CheckPackage(const std::string& directory, const Manifest& manifest) {
  const std::string limit = "all pass after reload";
  const Json* package = Member(&manifest.json(), "package");
  if (package == nullptr || package->is_null()) return MissingStage("probes", limit, "package");
  GateCheck check{
      .name = "probes", .figure = "", .limit = limit, .asked = true, .pass = false, .detail = ""};
  const std::string path = JoinPath(directory, FileName(package->at("file").get<std::string>()));
  try {
    const PackageContents contents = ReadPackage(path, VerifyMode::kFull);
    if (Sha256Hex(MappedFile::Open(path)->bytes()) != package->at("sha256").get<std::string>()) {
      throw Error(Code::kInvalidData,
                  fmt::format("{} is another package than the one that manifest.json names", path));
    }
    check.figure = fmt::format("{} probes", contents.probes.size());
    if (contents.probes.empty()) {
      check.detail = "the package holds no probe: its alignment failed end to end";
      return check;
    }
    const auto device = OpenDevice(manifest.json().at("target").at("device").get<std::string>());
    CheckProbes(contents, path, device, manifest.json().at("options").at("threads").get<int>());
    check.figure = fmt::format("{} of {} pass", contents.probes.size(), contents.probes.size());
    check.pass = true;
  } catch (const Error& e) {
    if (check.figure.empty()) check.figure = "not readable";
    check.detail = e.what();
  }
  return check;
}

GateCheck CheckP99(const Manifest& manifest, std::optional<double> most) {
  const std::string limit = most ? fmt::format("<= {:g} ms", *most) : "not asked";
  const Json* bench = manifest.Result("bench");
  if (bench == nullptr) return MissingStage("p99", limit, "bench");
  const double p99 = bench->at("latency_ms").at("p99").get<double>();
  const bool modelled = bench->at("modelled").get<bool>();
  GateCheck check{.name = "p99",
                  .figure = fmt::format("{:.3f} ms{}", p99, modelled ? " (modelled)" : ""),
                  .limit = limit,
                  .asked = most.has_value(),
                  .pass = !most || p99 <= *most,
                  .detail = ""};
  if (!check.pass)
    check.detail =
        "try more --threads, a smaller input, or bench --batch to see what batching costs";
  return check;
}

GateCheck CheckMemory(const Manifest& manifest, std::optional<uint64_t> most) {
  const std::string limit =
      most ? fmt::format("<= {:.1f} MiB", static_cast<double>(*most) / kMib) : "not asked";
  const Json* bench = manifest.Result("bench");
  if (bench == nullptr) return MissingStage("memory", limit, "bench");
  const auto peak = bench->at("peak_memory_bytes").get<uint64_t>();
  GateCheck check{.name = "memory",
                  .figure = fmt::format("{:.1f} MiB", static_cast<double>(peak) / kMib),
                  .limit = limit,
                  .asked = most.has_value(),
                  .pass = !most || peak <= *most,
                  .detail = ""};
  if (!check.pass)
    check.detail = "whimbrel bench shows what activations, weights and packed weights take";
  return check;
}

}  // namespace

GateResult Gate(const std::string& directory, const GateLimits& limits) {
  const Manifest manifest = Manifest::Require(directory);
  GateResult result;
  try {
    result.checks = {CheckCoverage(manifest, limits.coverage_percent), CheckAlignment(manifest),
                     CheckPackage(directory, manifest), CheckP99(manifest, limits.p99_ms),
                     CheckMemory(manifest, limits.memory_bytes)};
  } catch (const Json::exception& e) {
    throw Error(Code::kInvalidData,
                fmt::format("{}/manifest.json is not of this form: {}", directory, e.what()),
                "run whimbrel migrate again: it makes the file anew");
  }
  result.pass = std::all_of(result.checks.begin(), result.checks.end(),
                            [](const GateCheck& check) { return check.pass; });
  return result;
}

Json ToJson(const GateResult& result) {
  Json checks = Json::array();
  for (const GateCheck& check : result.checks) {
    checks.push_back(Json{{"name", check.name},
                          {"figure", check.figure},
                          {"limit", check.limit},
                          {"asked", check.asked},
                          {"pass", check.pass},
                          {"detail", check.detail}});
  }
  return Json{{"verdict", result.pass ? "pass" : "fail"}, {"checks", std::move(checks)}};
}

std::string ToText(const GateResult& result) {
  size_t figure_width = 0;
  for (const GateCheck& check : result.checks)
    figure_width = std::max(figure_width, check.figure.size());
  std::string text;
  for (const GateCheck& check : result.checks) {
    text += fmt::format("{:<4}  {:<10} {:<{}}  {}\n",
                        !check.asked ? "-"
                        : check.pass ? "pass"
                                     : "FAIL",
                        check.name, check.figure, figure_width, check.limit);
    if (!check.detail.empty()) text += fmt::format("      {}\n", check.detail);
  }
  return text + (result.pass ? "PASS: every check that was asked\n" : "FAIL\n");
}

}  // namespace whimbrel
