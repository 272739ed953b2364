// The list of verbs.

#include "whimbrel/cli/command.h"

#include <algorithm>
#include <deque>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

// A deque: entries keep their address. Filled before main, read afterwards.
std::deque<CommandEntry>& Entries() {
  static std::deque<CommandEntry> entries;
  return entries;
}

}  // namespace

std::string_view StageTitle(Stage stage) {
  switch (stage) {
    case Stage::kLook:
      return "Look before moving";
    case Stage::kConvert:
      return "Convert and run";
    case Stage::kProve:
      return "Prove";
    case Stage::kShip:
      return "Ship";
    case Stage::kTool:
      return "About this machine and program";
  }
  return "";
}

void AddCommand(CommandEntry entry) {
  WHIMBREL_CHECK(FindCommand(entry.info.name) == nullptr);
  Entries().push_back(std::move(entry));
}

std::vector<const CommandEntry*> Commands() {
  std::vector<const CommandEntry*> commands;
  for (const CommandEntry& entry : Entries()) commands.push_back(&entry);
  std::ranges::sort(commands, [](const CommandEntry* a, const CommandEntry* b) {
    return a->info.stage != b->info.stage ? a->info.stage < b->info.stage
                                          : a->info.name < b->info.name;
  });
  return commands;
}

const CommandEntry* FindCommand(std::string_view name) {
  for (const CommandEntry& entry : Entries()) {
    if (entry.info.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace whimbrel
