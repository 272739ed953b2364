// evidence_flags: what the verbs that prove and ship share: tolerances, limits of the gate, inputs
// with a default seed, progress per stage.

#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "whimbrel/base/config.h"
#include "whimbrel/cli/inputs.h"
#include "whimbrel/cli/output.h"
#include "whimbrel/migrate/align.h"
#include "whimbrel/migrate/gate.h"

namespace whimbrel {

// --tolerance NAME=VALUE
struct ToleranceOptions {
  std::vector<std::string> values;
  void Visit(ConfigVisitor& visitor);
  AlignTolerance ToTolerance() const;  // kInvalidArgument naming the word and the known names
};

// --coverage, --p99-ms, --memory
struct LimitOptions {
  double coverage = 85;
  double p99_ms = 0;
  std::string memory;
  void Visit(ConfigVisitor& visitor);
  GateLimits ToLimits() const;
};

struct NamedInputs {
  std::vector<std::pair<std::string, Tensor>> tensors;  // every input of the model, in graph order
  std::string text;                          // "x=page.jpg (mean=127.5,...); y filled with seed 1"
  std::vector<std::string> assumed;          // as in ModelInputs
  std::vector<std::string> seeded_integers;  // as in ModelInputs
};

// Opens the model, reads its inputs and closes it again. Missing inputs are filled with --seed, 1
// when not given. kInvalidArgument for a package: `verb` works on ONNX files.
NamedInputs ReadNamedInputs(const ModelOptions& model, const InputOptions& inputs,
                            std::string_view verb, Output& out);

// Tells stages on stderr: a bar on a terminal, a line per stage elsewhere.
std::function<void(const std::string& stage, double fraction, const std::string& detail)>
StageTeller(const Output& out);

}  // namespace whimbrel
