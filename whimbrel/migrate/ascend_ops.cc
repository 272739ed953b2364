// Reading of the compiled-in tables.

#include "whimbrel/migrate/ascend_ops.h"

#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "whimbrel/base/error.h"
#include "whimbrel/migrate/embedded.h"

namespace whimbrel {
namespace {

// Fields of one line; quotes around a field let it hold commas (no quote stands inside one).
std::vector<std::string_view> SplitLine(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const bool quoted = !line.empty() && line.front() == '"';
    const size_t end = quoted ? line.find('"', 1) : line.find(',');
    fields.push_back(quoted ? line.substr(1, end - 1) : line.substr(0, end));
    const size_t comma = quoted ? line.find(',', end) : end;
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

template <typename F>
void ForEachLine(std::string_view text, size_t fields, F&& fn) {
  bool header = true;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!std::exchange(header, false) && !line.empty()) {
      const auto parts = SplitLine(line);
      WHIMBREL_CHECK(parts.size() == fields);
      fn(parts);
    }
  }
}

int Number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

using OpKey = std::pair<std::string_view, std::string_view>;

const std::map<OpKey, AscendOp>& Ops() {
  static const std::map<OpKey, AscendOp> ops = [] {
    std::map<OpKey, AscendOp> map;
    ForEachLine(kOnnxOpsCsv, 8, [&](const std::vector<std::string_view>& f) {
      AscendOp op;
      op.domain = f[0];
      op.op = f[1];
      op.standard = f[2] == "1";
      op.parsed = f[3];
      if (const size_t dash = f[4].find('-'); dash != std::string_view::npos) {
        op.first_opset = Number(f[4].substr(0, dash));
        op.last_opset = Number(f[4].substr(dash + 1));
      }
      op.ir = f[5];
      op.ai_core = f[6];
      op.limits = f[7];
      map.emplace(OpKey(f[0], f[1]), op);
    });
    return map;
  }();
  return ops;
}

bool NeedsOnlyDirect(std::string_view op, int depth) {
  const auto& body = FunctionBody(op);
  if (body.empty() || depth == 0) return false;
  for (const std::string_view part : body) {
    const AscendOp* known = FindAscendOp("ai.onnx", part);
    if (known == nullptr) return false;
    const bool direct = known->taken() && known->ai_core != "not-AICore";
    if (!direct && !(known->standard && !known->taken() && NeedsOnlyDirect(part, depth - 1))) {
      return false;
    }
  }
  return true;
}

}  // namespace

const AscendOp* FindAscendOp(std::string_view domain, std::string_view op) {
  const auto found = Ops().find(OpKey(domain, op));
  return found == Ops().end() ? nullptr : &found->second;
}

bool KnownAscendDomain(std::string_view domain) {
  const auto first = Ops().lower_bound(OpKey(domain, ""));
  return first != Ops().end() && first->first.first == domain;
}

const std::vector<std::string_view>& FunctionBody(std::string_view op) {
  static const std::map<std::string_view, std::vector<std::string_view>> bodies = [] {
    std::map<std::string_view, std::vector<std::string_view>> map;
    ForEachLine(kFunctionBodiesCsv, 2, [&](const std::vector<std::string_view>& f) {
      std::string_view rest = f[1];
      while (!rest.empty()) {
        const size_t end = rest.find(' ');
        map[f[0]].push_back(rest.substr(0, end));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      }
    });
    return map;
  }();
  static const std::vector<std::string_view> none;
  const auto found = bodies.find(op);
  return found == bodies.end() ? none : found->second;
}

// Bodies nest two deep at most today; eight guards against a table that goes round in a circle.
bool BodyIsDirect(std::string_view op) {
  return NeedsOnlyDirect(op, 8);
}

}  // namespace whimbrel
