// Output: a result goes to stdout as text or JSON, talk to stderr; a lost result is an Error.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "whimbrel/base/config.h"
#include "whimbrel/base/json.h"

namespace whimbrel {

// The flags that every verb has.
struct GlobalOptions {
  bool json = false;
  bool verbose = false;
  std::string config;
  std::string log_level = "warn";
  std::string log_file;

  void Visit(ConfigVisitor& visitor);
};

// Control characters but newline and tab become '?': names from a model shall not steer a terminal.
std::string Printable(std::string_view text);

// Not thread-safe, except Progress.
class Output {
 public:
  explicit Output(const GlobalOptions& options) : options_(options) {}
  bool json() const { return options_.json; }
  bool verbose() const { return options_.verbose; }
  const GlobalOptions& options() const { return options_; }

  // The result: one of the two, with the same content. `if (out.json()) out.Result(...) else
  // out.Text(...)`.
  void Text(std::string_view text);  // through Printable; ends lines itself
  void Result(const Json& json);     // DumpJson
  // One line for the human, on stderr; never fails.
  void Talk(std::string_view line) const;
  // Like Talk, only with --verbose.
  void Detail(std::string_view line) const;
  // A line that the next one overwrites on a terminal; elsewhere only done == total is printed.
  void Progress(std::string_view what, int64_t done, int64_t total) const;
  // Everything reached the system, or Error. Called after the verb.
  void Flush();

 private:
  void Write(std::string_view text);
  GlobalOptions options_;
};

// A text table: columns as wide as their widest cell; cells that look like numbers stand right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void Row(std::vector<std::string> cells);  // as many as the header has
  size_t rows() const { return rows_.size(); }
  std::string ToText() const;
  std::string ToMarkdown() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// "512 B", "1.5 KiB", "3.2 GiB"; numbers with up to six significant digits.
std::string FormatBytes(uint64_t bytes);
std::string FormatNumber(double value);
// "128M", "2G", "1.5GiB", "4096": for --memory. kInvalidArgument naming `flag`.
uint64_t ParseBytes(std::string_view text, std::string_view flag);

}  // namespace whimbrel
