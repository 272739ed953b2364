// Config visitors: a part's options are one struct whose Visit names every field once; flags, environment, files, help and docs read it.

#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

// One option as its struct describes it. `name` is kebab-case ("p99-ms"); the flag is --p99-ms and
// the environment variable WHIMBREL_<PART>_P99_MS.
struct FieldInfo {
  std::string_view name;
  std::string_view help;
  std::string_view value_name = {};  // shown in help: "DIR", "NAME:DIMS"
  std::string_view short_flag = {};  // "o" for -o
  bool positional = false;
  bool required = false;
  bool writes = false;  // a file that is written: no other option may name the same one
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices = {};  // allowed words; empty = any
};

class ConfigVisitor {
 public:
  virtual ~ConfigVisitor() = default;
  virtual void Field(const FieldInfo& info, bool& value) = 0;
  virtual void Field(const FieldInfo& info, int64_t& value) = 0;
  virtual void Field(const FieldInfo& info, double& value) = 0;
  virtual void Field(const FieldInfo& info, std::string& value) = 0;
  virtual void Field(const FieldInfo& info, std::vector<std::string>& value) = 0;
};

// Nearest of `known` to `word` by edit distance, or empty when nothing is near: for "did you mean".
std::string_view NearestWord(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace whimbrel
