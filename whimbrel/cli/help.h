// help: `whimbrel --help` and `whimbrel VERB --help`, made from the registered verbs.

#pragma once

#include <string>
#include <vector>

#include "whimbrel/cli/command.h"
#include "whimbrel/cli/settings.h"

namespace whimbrel {

std::string ProgramHelp();
std::string CommandHelp(const CommandInfo& info, const std::vector<FieldDescription>& fields,
                        const std::vector<FieldDescription>& global_fields);

}  // namespace whimbrel
