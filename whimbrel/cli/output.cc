// Writing to stdout with every failure seen, and tables and numbers for people.

#include "whimbrel/cli/output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"

namespace whimbrel {

void GlobalOptions::Visit(ConfigVisitor& v) {
  v.Field({.name = "json", .help = "the result as one JSON object on stdout, errors too"}, json);
  v.Field({.name = "config",
           .help = "YAML file with options: global ones, and per verb 'run: {threads: 2}'",
           .value_name = "FILE"},
          config);
  v.Field({.name = "log-level",
           .help = "least level that is logged",
           .value_name = "LEVEL",
           .choices = {"trace", "debug", "info", "warn", "error", "off"}},
          log_level);
  v.Field({.name = "log-file",
           .help = "log to this file instead of stderr",
           .value_name = "FILE",
           .writes = true},
          log_file);
  v.Field({.name = "verbose", .help = "tell more on stderr", .short_flag = "v"}, verbose);
}

void Output::Write(std::string_view text) {
  // A reader that goes away (`| head`) and a full disk both end here: what was asked for did not
  // arrive.
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  throw Error(Code::kResourceExhausted,
              fmt::format("cannot write the result to stdout: {}", std::strerror(errno)),
              "the reader of stdout went away or its disk is full");
}

std::string Printable(std::string_view text) {
  std::string clean(text);
  for (size_t i = 0; i < clean.size(); ++i) {
    const auto byte = static_cast<unsigned char>(clean[i]);
    // U+0080 to U+009F are control characters too: two bytes in UTF-8.
    const bool second_set =
        byte == 0xC2 && i + 1 < clean.size() && static_cast<unsigned char>(clean[i + 1]) < 0xA0;
    if (second_set) clean[i + 1] = '?';
    if (second_set || byte == 0x7F || (byte < 0x20 && byte != '\n' && byte != '\t')) clean[i] = '?';
  }
  return clean;
}

void Output::Text(std::string_view text) {
  Write(Printable(text));
}

void Output::Result(const Json& json) {
  Write(DumpJson(json));
}

void Output::Flush() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error(Code::kResourceExhausted,
              fmt::format("cannot write the result to stdout: {}", std::strerror(errno)),
              "the reader of stdout went away or its disk is full");
}

void Output::Talk(std::string_view line) const {
  std::fprintf(stderr, "%s\n", Printable(line).c_str());
}

void Output::Detail(std::string_view line) const {
  if (verbose()) Talk(line);
}

void Output::Progress(std::string_view what, int64_t done, int64_t total) const {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal) {
    if (done == total) Talk(fmt::format("{}: {} of {}", what, done, total));
    return;
  }
  constexpr int64_t kBarWidth = 24;
  const int64_t filled =
      total > 0 ? kBarWidth * std::clamp<int64_t>(done, 0, total) / total : kBarWidth;
  const std::string bar(static_cast<size_t>(filled), '#');
  // \033[K clears what a longer line left behind.
  std::fprintf(stderr, "\r[%-24s] %.*s %lld/%lld\033[K%s", bar.c_str(),
               static_cast<int>(what.size()), what.data(), static_cast<long long>(done),
               static_cast<long long>(total), done == total ? "\n" : "");
}

void Table::Row(std::vector<std::string> cells) {
  WHIMBREL_CHECK(cells.size() == header_.size());
  rows_.push_back(std::move(cells));
}

namespace {

// Characters that a terminal shows, taking one column per UTF-8 character.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool LooksNumeric(const std::string& cell) {
  if (cell.empty() || cell == "-") return true;
  const size_t start = cell[0] == '-' ? 1 : 0;
  return start < cell.size() && cell[start] >= '0' && cell[start] <= '9' &&
         cell.find('x') == std::string::npos;
}

std::string Padded(const std::string& cell, size_t width, bool right) {
  const size_t own = Width(cell);
  const std::string space(width > own ? width - own : 0, ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

std::string Table::ToText() const {
  std::string text;
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (size_t c = 0; c < header_.size(); ++c) {
    size_t width = Width(header_[c]);
    bool numeric = !rows_.empty();
    for (const auto& row : rows_) {
      width = std::max(width, Width(row[c]));
      numeric = numeric && LooksNumeric(row[c]);
    }
    widths.push_back(width);
    right.push_back(numeric);
  }
  const auto add = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line += "  ";
      line += Padded(cells[c], widths[c], right[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add(header_);
  for (const auto& row : rows_) add(row);
  return text;
}

std::string Table::ToMarkdown() const {
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells) {
    text += "|";
    for (const std::string& cell : cells) {
      text += " ";
      for (const char c : cell) {
        if (c == '|') text += '\\';
        text += c;
      }
      text += " |";
    }
    text += "\n";
  };
  add(header_);
  text += "|";
  for (size_t c = 0; c < header_.size(); ++c) text += "---|";
  text += "\n";
  for (const auto& row : rows_) add(row);
  return text;
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array<std::string_view, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be shown as 1024.0.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string FormatNumber(double value) {
  return fmt::format("{:.6g}", value);
}

uint64_t ParseBytes(std::string_view text, std::string_view flag) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  int shift = 0;
  constexpr std::string_view kUnits = "KMGT";
  if (!unit.empty()) {
    const size_t at = kUnits.find(static_cast<char>(unit.front() & ~0x20));
    if (at != std::string_view::npos) {
      shift = 10 * (static_cast<int>(at) + 1);
      unit.remove_prefix(1);
      if (unit == "iB" || unit == "B") unit = {};
    } else if (unit == "B") {
      unit = {};
    }
  }
  const double bytes = std::ldexp(value, shift);
  // 2^63: what fits both kinds of 64 bits.
  if (status != std::errc() || !unit.empty() || !(bytes >= 0) || bytes >= 9.223372036854775808e18) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: '{}' is no size", flag, text),
                "a number of bytes, or one with K, M, G or T (powers of 1024): 512M, 1.5GiB");
  }
  return static_cast<uint64_t>(bytes);
}

}  // namespace whimbrel
