// Command lines through CLI11, which gives words; meaning is given by settings.cc.

#include "whimbrel/cli/parse.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

std::string FlagNames(const FieldDescription& field) {
  if (field.info.positional) return field.key;
  std::string names = "--" + field.key;
  if (!field.info.short_flag.empty())
    names = "-" + std::string(field.info.short_flag) + "," + names;
  if (field.type == FieldType::kBool && !field.default_text.empty()) names += ",!--no-" + field.key;
  return names;
}

// Results are kept by CLI11 and read afterwards; conversion happens in one place for flags,
// environment and file.
CLI::Option* AddField(CLI::App& app, const FieldDescription& field) {
  if (field.type == FieldType::kBool) return app.add_flag(FlagNames(field));
  CLI::Option* option =
      app.add_option(FlagNames(field), [](const CLI::results_t&) { return true; });
  if (field.type == FieldType::kList) {
    if (field.info.positional) {
      option->expected(1, CLI::detail::expected_max_vector_size);
    } else {
      // One value a flag, so that `--input a=b MODEL` leaves MODEL alone.
      option->expected(1)->allow_extra_args(false);
    }
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  return option;
}

bool LooksLikeFlag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word != "--";
}

std::string HelpHint(std::string_view verb) {
  return fmt::format("'whimbrel {} --help' shows all flags with examples", verb);
}

[[noreturn]] void FailOnExtras(std::string_view verb, const std::vector<FieldDescription>& fields,
                               const std::vector<std::string>& extras) {
  const auto flag = std::ranges::find_if(extras, LooksLikeFlag);
  if (flag == extras.end()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("'{}' takes no further word '{}'", verb, extras.front()),
                HelpHint(verb));
  }
  const std::string name = flag->substr(0, flag->find('='));
  std::vector<std::string> known{"--help"};
  for (const FieldDescription& field : fields) {
    if (!field.info.positional) known.push_back("--" + field.key);
  }
  std::string hint = DidYouMean(name, known);
  throw Error(Code::kInvalidArgument, fmt::format("'{}' has no flag {}", verb, name),
              hint.empty() ? HelpHint(verb) : hint);
}

// `--output-dir --json` would write to a folder called --json.
void CheckValueIsNoFlag(const FieldDescription& field, const std::string& value,
                        const std::vector<FieldDescription>& fields) {
  if (field.info.positional || field.type == FieldType::kBool || !value.starts_with("--")) return;
  for (const FieldDescription& other : fields) {
    if (!other.info.positional && value.substr(2) == other.key) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("--{} needs a value, {} follows", field.key, value),
                  fmt::format("write --{} {} or --{}={} when the value really begins so", field.key,
                              field.info.value_name.empty() ? "VALUE" : field.info.value_name,
                              field.key, value));
    }
  }
}

}  // namespace

ParsedWords ParseWords(std::string_view verb, const std::vector<FieldDescription>& fields,
                       const std::vector<std::string>& words) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const CLI::Option* help = app.add_flag("-h,--help");
  std::vector<CLI::Option*> options;
  options.reserve(fields.size());
  for (const FieldDescription& field : fields) options.push_back(AddField(app, field));

  std::vector<std::string> reversed(words.rbegin(), words.rend());  // the order that CLI11 takes
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    throw Error(Code::kInvalidArgument, e.what(), HelpHint(verb));
  }
  ParsedWords parsed;
  parsed.help = help->count() > 0;
  const std::vector<std::string> extras = app.remaining();
  if (!extras.empty()) FailOnExtras(verb, fields, extras);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (options[i]->count() == 0) continue;
    Setting setting{options[i]->results(), fields[i].info.positional
                                               ? std::string(fields[i].info.name)
                                               : "--" + fields[i].key};
    for (const std::string& value : setting.values) {
      const bool attached = std::ranges::any_of(words, [&](const std::string& word) {
        return word == "--" + fields[i].key + "=" + value;
      });
      if (!attached) CheckValueIsNoFlag(fields[i], value, fields);
    }
    parsed.settings[fields[i].key] = std::move(setting);
  }
  return parsed;
}

}  // namespace whimbrel
