// gate: whether a migrated folder may ship: five checks, each with figure and limit.

#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/cli/evidence_flags.h"
#include "whimbrel/migrate/gate.h"

namespace whimbrel {
namespace {

struct GateVerbOptions {
  std::string folder;
  LimitOptions limits;

  void Visit(ConfigVisitor& v) {
    v.Field(
        {.name = "DIR", .help = "folder that migrate wrote", .positional = true, .required = true},
        folder);
    limits.Visit(v);
  }
};

int RunGate(const GateVerbOptions& options, Output& out) {
  const GateResult result = Gate(options.folder, options.limits.ToLimits());
  if (out.json()) {
    out.Result(ToJson(result));
  } else {
    out.Text(ToText(result));
  }
  return result.pass ? 0 : Describe(Code::kGateNotMet).exit_code;
}

const RegisterCommand<GateVerbOptions> kRegistered(
    {.name = "gate",
     .stage = Stage::kShip,
     .summary = "check a migrated folder: coverage, alignment, probes, P99, memory",
     .description = "Reads DIR/manifest.json and reloads the package. Exit 1 when a check fails.",
     .examples = {"whimbrel gate out/model", "whimbrel gate out/model --p99-ms 20 --memory 512M",
                  "whimbrel gate out/model --json"}},
    RunGate);

}  // namespace
}  // namespace whimbrel
