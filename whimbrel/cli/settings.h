// settings: values for the fields of an options struct as text, with the place they came from.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/base/config.h"

namespace whimbrel {

enum class FieldType : uint8_t { kBool, kInteger, kNumber, kText, kList };

// A field as its struct's Visit names it.
struct FieldDescription {
  FieldInfo info;
  FieldType type = FieldType::kText;
  std::string key;           // kebab-case, also of a positional ("model")
  std::string default_text;  // empty: nothing to show
};

// Fields of everything that `visit` calls, in order.
std::vector<FieldDescription> DescribeFields(const std::function<void(ConfigVisitor&)>& visit);

struct Setting {
  std::vector<std::string> values;
  std::string origin;  // "--threads", "WHIMBREL_RUN_THREADS", "conf.yaml:3:12"
};
using Settings = std::map<std::string, Setting, std::less<>>;  // by key

// Sets the field from the setting of its key. kInvalidArgument naming origin, value and what is
// allowed. `required` fields without a value are an error that names them all.
void ApplySettings(const Settings& settings, const std::function<void(ConfigVisitor&)>& visit);

// "WHIMBREL_RUN_OUTPUT_DIR" of part "run" and key "output-dir"; without a part
// "WHIMBREL_LOG_LEVEL".
std::string EnvironmentName(std::string_view part, std::string_view key);

// Settings of `fields` that `environment` ("NAME=value" lines) holds. A list's values are joined by
// ';'. A variable with the part's prefix that is no field is kInvalidArgument with the nearest.
Settings SettingsFromEnvironment(std::string_view part, const std::vector<FieldDescription>& fields,
                                 const std::vector<std::string>& environment);

// config_file.cc: what --config says. Top-level keys are the global fields and the verbs; a verb's
// keys are its fields. `parts`: the fields of each part, "" = global. All parts are checked, only
// the settings of part `wanted` come back. kInvalidArgument: "F:3:5: unknown key ...", with the
// nearest.
Settings SettingsFromFile(
    const std::string& path, std::string_view wanted,
    const std::map<std::string, std::vector<FieldDescription>, std::less<>>& parts);

// Entries of `from` that `to` does not have.
void MergeSettings(const Settings& from, Settings& to);

// "did you mean X?", or empty when nothing known is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known);

}  // namespace whimbrel
