// pipeline: scan, compile, align, bench, package and gate in order, resumable, with one manifest and one report.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "whimbrel/migrate/align.h"
#include "whimbrel/migrate/bench.h"
#include "whimbrel/migrate/gate.h"
#include "whimbrel/migrate/scan.h"

namespace whimbrel {

struct MigrateOptions {
  std::string model;
  std::string to = "cpu:0";
  std::string out;
  int threads = 0;
  std::vector<InputShape> shapes;
  // Inputs by name for align and bench; the missing ones are filled from `seed`.
  std::vector<std::pair<std::string, Tensor>> inputs;
  std::string inputs_text;  // how the inputs were given, part of the stage keys and shown in the report
  uint64_t seed = 1;
  std::string fusion_switch_file;
  GateLimits limits;
  AlignTolerance tolerance;
  double bench_seconds = 3;
  bool restart = false;  // forget what earlier runs left
  std::function<void(const std::string& stage, double fraction, const std::string& detail)> progress;
};

struct StageOutcome {
  std::string name;
  bool reused = false;  // its key was found in the manifest and its files were whole
  double seconds = 0;
};

struct MigrateResult {
  std::string directory;
  std::string package;   // path of the .wbl
  std::string report;    // path of report.html
  std::string manifest;
  std::vector<StageOutcome> stages;
  ScanResult scan;
  AlignResult align;
  BenchResult bench;
  GateResult gate;
};

// Each stage has a key: SHA-256 of its inputs, options and the tool version; what is recorded under the same key
// in DIR/manifest.json is not done again. Every file is written atomically, so that a killed run leaves either
// the old or the new one. The package's bytes depend on the key only (DESIGN.md "Words").
MigrateResult Migrate(const MigrateOptions& options);

Json ToJson(const MigrateResult& result);
std::string ToText(const MigrateResult& result);

}  // namespace whimbrel
