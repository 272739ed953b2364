// gate: the checks that decide whether a package may ship, each with figure and limit.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "whimbrel/base/json.h"

namespace whimbrel {

struct GateLimits {
  double coverage_percent = 85;
  std::optional<double> p99_ms;
  std::optional<uint64_t> memory_bytes;
};

struct GateCheck {
  std::string name;    // coverage, alignment, probes, p99, memory
  std::string figure;  // "97.3 %"
  std::string limit;   // ">= 85 %"; "not asked" when no limit was given
  bool asked = true;
  bool pass = true;
  std::string detail;  // what to do when it fails
};

struct GateResult {
  bool pass = true;
  std::vector<GateCheck> checks;
};

// Judges the manifest.json of a migrated folder and reloads its package for the probes. A missing
// stage is a failed check that says which command makes it. kInvalidData when manifest.json is
// damaged.
GateResult Gate(const std::string& directory, const GateLimits& limits);

Json ToJson(const GateResult& result);
std::string ToText(const GateResult& result);

}  // namespace whimbrel
