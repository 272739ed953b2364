// command: a verb of the program: help, options struct and function; verbs register themselves.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "whimbrel/base/config.h"
#include "whimbrel/cli/output.h"

namespace whimbrel {

// Groups of `whimbrel --help`, in the order of the work.
enum class Stage : uint8_t { kLook, kConvert, kProve, kShip, kTool };
std::string_view StageTitle(Stage stage);

struct CommandInfo {
  std::string_view name;  // "run"
  Stage stage = Stage::kTool;
  std::string_view
      summary;  // one line of `whimbrel --help`: "run a model on files and write its outputs"
  std::string_view description =
      {};  // what `whimbrel run --help` adds; lines of at most 96 columns
  std::vector<std::string_view> examples = {};  // 2 to 4 whole command lines
};

// One use of a verb: the options with their defaults in place, to be filled and run.
class Command {
 public:
  virtual ~Command() = default;
  virtual void Visit(ConfigVisitor& visitor) = 0;
  virtual int Run(Output& out) const = 0;  // the exit code; throws Error
};

struct CommandEntry {
  CommandInfo info;
  std::function<std::unique_ptr<Command>()> make;
};

// By stage, then in order of name.
std::vector<const CommandEntry*> Commands();
const CommandEntry* FindCommand(std::string_view name);  // nullptr when unknown
void AddCommand(CommandEntry entry);

// Registers a verb when the program starts. Options is a struct with defaults in place and
// `void Visit(ConfigVisitor& visitor)`, which names each field once:
//
//   struct GateOptions {
//     std::string folder;
//     double p99_ms = 0;
//     void Visit(ConfigVisitor& v) {
//       v.Field({.name = "DIR", .help = "folder that migrate wrote", .positional = true,
//                .required = true}, folder);
//       v.Field({.name = "p99-ms", .help = "limit of the P99 latency in ms; 0 = no limit",
//                .value_name = "MS", .min = 0}, p99_ms);
//     }
//   };
//   int RunGate(const GateOptions& options, Output& out) { ... return passed ? 0 : 1; }
//   const RegisterCommand<GateOptions> kRegistered({.name = "gate", ...}, RunGate);
//
// The flag is --p99-ms, the environment variable WHIMBREL_GATE_P99_MS, the YAML key gate: p99-ms.
// Range, choices and `required` are checked before run is called. A default that is 0 or empty is
// not shown in help: say in `help` what it means. --json, --config, --log-level, --log-file,
// --verbose/-v and --help are there on every verb.
template <typename Options>
class RegisterCommand {
 public:
  RegisterCommand(CommandInfo info, int (*run)(const Options& options, Output& out)) {
    AddCommand({std::move(info), [run] { return std::make_unique<Typed>(run); }});
  }

 private:
  class Typed : public Command {
   public:
    explicit Typed(int (*run)(const Options&, Output&)) : run_(run) {}
    void Visit(ConfigVisitor& visitor) override { options_.Visit(visitor); }
    int Run(Output& out) const override { return run_(options_, out); }

   private:
    Options options_;
    int (*run_)(const Options&, Output&);
  };
};

}  // namespace whimbrel
