// parse: the words after a verb as settings of its fields.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/cli/settings.h"

namespace whimbrel {

struct ParsedWords {
  Settings settings;
  bool help = false;
};

// kInvalidArgument for an unknown flag (with the nearest), a flag without its value, one word too
// many.
ParsedWords ParseWords(std::string_view verb, const std::vector<FieldDescription>& fields,
                       const std::vector<std::string>& words);

}  // namespace whimbrel
