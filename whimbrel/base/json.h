// Json: the project's JSON type (nlohmann, keys in insertion order); sources include <nlohmann/json.hpp> themselves.

#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace whimbrel {

using Json = nlohmann::ordered_json;

// Parses text; the error names `source`, line and column. Depth is limited to 256.
Json ParseJson(std::string_view text, std::string_view source);

// Two-space indented, newline at the end; NaN and Inf become null.
std::string DumpJson(const Json& json);

}  // namespace whimbrel
