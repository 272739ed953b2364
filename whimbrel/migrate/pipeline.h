// pipeline: scan, compile, align, bench, package and gate in order, resumable, with one manifest
// and one report.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "whimbrel/migrate/align.h"
#include "whimbrel/migrate/gate.h"

namespace whimbrel {

struct MigrateOptions {
  std::string model;  // ONNX file, or a folder that holds one
  std::string to = "cpu:0";
  std::string out;  // DIR
  int threads = 0;
  // Every input of the model by name, in any order: what align and bench run on. Their shapes are
  // the package's bucket.
  std::vector<std::pair<std::string, Tensor>> inputs;
  std::string inputs_text;  // how they were given, for the reader of the report
  std::string fusion_switch_file;
  GateLimits limits;
  AlignTolerance tolerance;
  double bench_seconds = 3;
  bool restart = false;  // forget what earlier runs left
  std::string command;   // the line that was typed, shown in the report
  std::function<void(const std::string& stage, double fraction, const std::string& detail)>
      progress;
};

struct StageOutcome {
  std::string name;
  bool reused = false;  // its key was found in the manifest and its files were whole
  double seconds = 0;   // when it was made
  std::string text;     // "100.0 % of 672 nodes are direct"
};

struct MigrateResult {
  std::string directory;
  std::string package;   // path of the .wbl
  std::string report;    // path of report.html
  std::string manifest;  // path of manifest.json
  std::vector<StageOutcome> stages;
  std::vector<std::string> notes;  // "manifest.json was damaged, ..."
  GateResult gate;
  std::shared_ptr<const Json> contents;  // what manifest.json holds
};

// scan, compile, align, bench, package, gate, report. Each stage has a key: SHA-256 of its inputs,
// options and the tool; what is recorded whole under the same key in DIR/manifest.json is not done
// again. Every file is written atomically, so that a killed run leaves either the old or the new
// one. The package's bytes depend on the key only (DESIGN.md "Words"), and it is written whatever
// the gate says. kInvalidArgument when another migrate holds DIR.
MigrateResult Migrate(const MigrateOptions& options);

// For a model that can be read and not be compiled: scans it and writes manifest.json and
// report.html with the error and no verdict, so that its owner sees what is missing. Returns the
// report's path.
std::string ReportRefusal(const MigrateOptions& options, const Error& error);

Json ToJson(const MigrateResult& result);
std::string ToText(const MigrateResult& result);

// What `package` needs: the stages scan, compile and align, and the file; no folder, no figures
// that were measured.
struct PackageRequest {
  std::string model;
  std::string device = "cpu:0";
  int threads = 0;
  std::vector<std::pair<std::string, Tensor>> inputs;  // as in MigrateOptions
  std::string fusion_switch_file;
  AlignTolerance tolerance;
  std::function<void(const std::string& stage, double fraction, const std::string& detail)>
      progress;
};
struct PackageOutcome {
  std::string file;
  std::string sha256;
  bool aligned = true;
  std::string first_bad_layer;
  double coverage_percent = 0;
};
// Writes the same bytes that Migrate writes for the same model, inputs and options.
PackageOutcome MakePackage(const PackageRequest& request, const std::string& path);

}  // namespace whimbrel
