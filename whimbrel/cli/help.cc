// Help texts, wrapped to 100 columns.

#include "whimbrel/cli/help.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "whimbrel/base/version.h"

namespace whimbrel {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kTextColumn = 30;

// `text` word by word from column `indent`; the first line is begun already.
std::string Wrapped(const std::string& text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const size_t width = end - begin;
    if (column > indent && column + 1 + width > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out.append(text, begin, width);
    column += width;
    begin = end + 1;
  }
  return out + "\n";
}

std::string Entry(const std::string& left, const std::string& text) {
  std::string line = "  " + left;
  if (line.size() + 2 > kTextColumn) {
    line += "\n" + std::string(kTextColumn, ' ');
  } else {
    line.resize(kTextColumn, ' ');
  }
  return line + Wrapped(text, kTextColumn);
}

std::string Limits(const FieldDescription& field) {
  const FieldInfo& info = field.info;
  if (!info.choices.empty()) return fmt::format("one of {}", fmt::join(info.choices, ", "));
  if (field.type != FieldType::kInteger && field.type != FieldType::kNumber) return "";
  if (std::isfinite(info.min) && std::isfinite(info.max))
    return fmt::format("{} to {}", info.min, info.max);
  if (std::isfinite(info.min)) return fmt::format("at least {}", info.min);
  if (std::isfinite(info.max)) return fmt::format("at most {}", info.max);
  return "";
}

std::string FieldText(const FieldDescription& field) {
  std::vector<std::string> notes;
  if (field.info.required && !field.info.positional) notes.push_back("required");
  if (const std::string limits = Limits(field); !limits.empty()) notes.push_back(limits);
  if (!field.default_text.empty()) notes.push_back("default " + field.default_text);
  if (field.type == FieldType::kList && !field.info.positional) notes.push_back("may be repeated");
  std::string text(field.info.help);
  if (!notes.empty()) text += fmt::format(" ({})", fmt::join(notes, "; "));
  return text;
}

std::string_view ValueName(const FieldDescription& field) {
  if (!field.info.value_name.empty()) return field.info.value_name;
  return field.type == FieldType::kInteger || field.type == FieldType::kNumber ? "N" : "TEXT";
}

std::string FieldLeft(const FieldDescription& field) {
  if (field.info.positional) return std::string(field.info.name);
  std::string left =
      field.info.short_flag.empty() ? "" : fmt::format("-{}, ", field.info.short_flag);
  left += "--" + field.key;
  if (field.type != FieldType::kBool) left += fmt::format(" {}", ValueName(field));
  return left;
}

std::string Usage(const CommandInfo& info, const std::vector<FieldDescription>& fields) {
  std::string usage = fmt::format("usage: whimbrel {}", info.name);
  for (const FieldDescription& field : fields) {
    if (!field.info.positional) continue;
    const std::string dots = field.type == FieldType::kList ? " ..." : "";
    usage += field.info.required ? fmt::format(" {}{}", field.info.name, dots)
                                 : fmt::format(" [{}{}]", field.info.name, dots);
  }
  for (const FieldDescription& field : fields) {
    if (!field.info.positional && field.info.required)
      usage += fmt::format(" --{} {}", field.key, ValueName(field));
  }
  return usage + " [flags]\n";
}

}  // namespace

std::string ProgramHelp() {
  std::string text = fmt::format(
      "whimbrel {}: carries ONNX models to other devices and proves that the results are right and "
      "fast.\n\n"
      "usage: whimbrel VERB [flags]\n",
      kVersion);
  std::optional<Stage> stage;
  for (const CommandEntry* entry : Commands()) {
    if (stage != entry->info.stage) {
      stage = entry->info.stage;
      text += fmt::format("\n{}:\n", StageTitle(*stage));
    }
    std::string left = fmt::format("  {:<12}", entry->info.name);
    const size_t indent = left.size();
    text += left + Wrapped(std::string(entry->info.summary), indent);
  }
  text +=
      "\nEvery verb: --help, --json, --config FILE, --log-level LEVEL, --log-file FILE, "
      "--verbose.\n"
      "An option comes from its flag, else from the environment (WHIMBREL_RUN_THREADS=2), else "
      "from the\n"
      "--config file. Results go to stdout, everything else to stderr.\n"
      "\nExit codes: 0 fine, 1 gate not met, 2 wrong use, 3 bad input, 4 device trouble, 5 "
      "internal.\n"
      "\nwhimbrel VERB --help shows a verb's flags and examples; whimbrel --version shows the "
      "version.\n";
  return text;
}

std::string CommandHelp(const CommandInfo& info, const std::vector<FieldDescription>& fields,
                        const std::vector<FieldDescription>& global_fields) {
  std::string text =
      fmt::format("whimbrel {}: {}\n\n{}", info.name, info.summary, Usage(info, fields));
  if (!info.description.empty()) text += fmt::format("\n{}\n", info.description);
  const auto add = [&](std::string_view title, const std::vector<FieldDescription>& list,
                       bool positional) {
    std::string section;
    for (const FieldDescription& field : list) {
      if (field.info.positional == positional) section += Entry(FieldLeft(field), FieldText(field));
    }
    if (!section.empty()) text += fmt::format("\n{}:\n{}", title, section);
  };
  add("What it takes", fields, true);
  add("Flags", fields, false);
  add("Flags of every verb", global_fields, false);
  text += Entry("-h, --help", "this text");
  text += fmt::format("\nEnvironment: {} and so on; flag > environment > --config file.\n",
                      EnvironmentName(info.name, fields.empty() ? "FIELD" : fields.back().key));
  if (!info.examples.empty()) text += "\nExamples:\n";
  for (std::string_view example : info.examples) text += fmt::format("  {}\n", example);
  return text;
}

}  // namespace whimbrel
