// Version: the tool's version, which is part of every package's key.

#pragma once

#include <string_view>

namespace whimbrel {

constexpr std::string_view kVersion = "0.1.0";

}  // namespace whimbrel
