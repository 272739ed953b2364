// Fields described, settings converted with one rule for flags, environment and file.

#include "whimbrel/cli/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

std::string KeyOf(const FieldInfo& info) {
  std::string key(info.name);
  for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}

class Describer : public ConfigVisitor {
 public:
  void Field(const FieldInfo& info, bool& value) override {
    Add(info, FieldType::kBool, value ? "on" : "");
  }
  void Field(const FieldInfo& info, int64_t& value) override {
    Add(info, FieldType::kInteger, value > 0 ? std::to_string(value) : "");
  }
  void Field(const FieldInfo& info, double& value) override {
    Add(info, FieldType::kNumber, value > 0 ? fmt::format("{}", value) : "");
  }
  void Field(const FieldInfo& info, std::string& value) override {
    Add(info, FieldType::kText, value);
  }
  void Field(const FieldInfo& info, std::vector<std::string>& value) override {
    Add(info, FieldType::kList, fmt::format("{}", fmt::join(value, " ")));
  }
  std::vector<FieldDescription> fields;

 private:
  void Add(const FieldInfo& info, FieldType type, std::string default_text) {
    fields.push_back({info, type, KeyOf(info), std::move(default_text)});
  }
};

// What a number may be: "1 to 64", "at least 1".
std::string RangeText(const FieldInfo& info) {
  if (std::isfinite(info.min) && std::isfinite(info.max))
    return fmt::format("{} to {}", info.min, info.max);
  if (std::isfinite(info.min)) return fmt::format("at least {}", info.min);
  return fmt::format("at most {}", info.max);
}

class Assigner : public ConfigVisitor {
 public:
  explicit Assigner(const Settings& settings) : settings_(settings) {}

  void Field(const FieldInfo& info, bool& value) override {
    const Setting* setting = Find(info);
    if (!setting) return;
    const std::string text = Single(*setting);
    if (text == "true" || text == "1" || text == "yes" || text == "on") {
      value = true;
    } else if (text == "false" || text == "0" || text == "no" || text == "off") {
      value = false;
    } else {
      throw Wrong(*setting, text, "true or false");
    }
  }
  void Field(const FieldInfo& info, int64_t& value) override {
    Number(info, value, "a whole number");
  }
  void Field(const FieldInfo& info, double& value) override { Number(info, value, "a number"); }
  void Field(const FieldInfo& info, std::string& value) override {
    const Setting* setting = Find(info);
    if (!setting) return;
    value = Single(*setting);
    CheckNotEmpty(*setting, value);
    CheckChoice(info, *setting, value);
  }
  void Field(const FieldInfo& info, std::vector<std::string>& value) override {
    const Setting* setting = Find(info);
    if (!setting) return;
    value = setting->values;
    for (const std::string& word : value) {
      CheckNotEmpty(*setting, word);
      CheckChoice(info, *setting, word);
    }
  }

  std::vector<std::string> missing;

 private:
  const Setting* Find(const FieldInfo& info) {
    const auto found = settings_.find(KeyOf(info));
    if (found != settings_.end()) return &found->second;
    if (info.required)
      missing.push_back(info.positional ? std::string(info.name) : "--" + std::string(info.name));
    return nullptr;
  }

  static Error Wrong(const Setting& setting, std::string_view text, std::string_view allowed) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{}: '{}' is not {}", setting.origin, text, allowed),
                 fmt::format("give {}", allowed));
  }

  // `--memory "$LIMIT"` with LIMIT unset would quietly ask for nothing.
  static void CheckNotEmpty(const Setting& setting, const std::string& word) {
    if (!word.empty()) return;
    throw Error(Code::kInvalidArgument, fmt::format("{}: the value is empty", setting.origin),
                "give a value or leave it out; is a shell variable unset?");
  }

  static const std::string& Single(const Setting& setting) {
    if (setting.values.size() == 1) return setting.values.front();
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: {} values where one is taken", setting.origin, setting.values.size()),
        "give it once");
  }

  static void CheckChoice(const FieldInfo& info, const Setting& setting, const std::string& word) {
    if (info.choices.empty() || std::ranges::find(info.choices, word) != info.choices.end()) return;
    const std::vector<std::string> known(info.choices.begin(), info.choices.end());
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: '{}' is none of {}", setting.origin, word, fmt::join(known, ", ")),
                DidYouMean(word, known));
  }

  template <typename T>
  void Number(const FieldInfo& info, T& value, std::string_view what) {
    const Setting* setting = Find(info);
    if (!setting) return;
    const std::string& text = Single(*setting);
    T parsed{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (status == std::errc::result_out_of_range)
      throw Wrong(*setting, text, fmt::format("{} of 64 bits", what));
    if (status != std::errc() || end != text.data() + text.size())
      throw Wrong(*setting, text, what);
    const auto number = static_cast<double>(parsed);
    if (!(number >= info.min && number <= info.max)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: {} is out of range", setting->origin, text),
                  fmt::format("give {}", RangeText(info)));
    }
    value = parsed;
  }

  const Settings& settings_;
};

}  // namespace

std::vector<FieldDescription> DescribeFields(const std::function<void(ConfigVisitor&)>& visit) {
  Describer describer;
  visit(describer);
  return std::move(describer.fields);
}

void ApplySettings(const Settings& settings, const std::function<void(ConfigVisitor&)>& visit) {
  Assigner assigner(settings);
  visit(assigner);
  if (!assigner.missing.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("missing: {}", fmt::join(assigner.missing, ", ")),
                "--help shows every flag with examples");
  }
}

std::string EnvironmentName(std::string_view part, std::string_view key) {
  std::string name = "WHIMBREL_";
  if (!part.empty()) name += std::string(part) + "_";
  name += key;
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

Settings SettingsFromEnvironment(std::string_view part, const std::vector<FieldDescription>& fields,
                                 const std::vector<std::string>& environment) {
  std::map<std::string, const FieldDescription*> by_name;
  std::vector<std::string> names;
  for (const FieldDescription& field : fields) {
    names.push_back(EnvironmentName(part, field.key));
    by_name[names.back()] = &field;
  }
  const std::string prefix = EnvironmentName(part, "");
  Settings settings;
  for (const std::string& line : environment) {
    const size_t equals = line.find('=');
    // A variable that is set to nothing counts as not set, as elsewhere.
    if (equals == std::string::npos || equals + 1 == line.size()) continue;
    const std::string name = line.substr(0, equals);
    const std::string value = line.substr(equals + 1);
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      // Without a part the prefix is everybody's: WHIMBREL_ISA, WHIMBREL_CACHE and those of other
      // verbs.
      if (part.empty() || !name.starts_with(prefix)) continue;
      throw Error(Code::kInvalidArgument,
                  fmt::format("environment variable {} is no option of '{}'", name, part),
                  DidYouMean(name, names));
    }
    Setting setting{{}, name};
    if (found->second->type == FieldType::kList) {
      for (size_t begin = 0; begin <= value.size();) {
        const size_t end = std::min(value.find(';', begin), value.size());
        if (end > begin) setting.values.push_back(value.substr(begin, end - begin));
        begin = end + 1;
      }
    } else {
      setting.values.push_back(value);
    }
    settings[found->second->key] = std::move(setting);
  }
  return settings;
}

void MergeSettings(const Settings& from, Settings& to) {
  to.insert(from.begin(), from.end());
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view nearest = NearestWord(word, views);
  return nearest.empty() ? "" : fmt::format("did you mean {}?", nearest);
}

}  // namespace whimbrel
