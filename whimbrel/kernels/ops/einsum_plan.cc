// Parsing of Einsum equations.

#include "whimbrel/kernels/ops/einsum_plan.h"

#include <string>

namespace whimbrel {
namespace {

[[noreturn]] void Fail(std::string_view equation, const std::string& what) {
  throw Error(Code::kInvalidData, "Einsum: equation \"" + std::string(equation) + "\" " + what,
              "terms of letters and at most one \"...\", by commas, then -> and the output's term");
}

bool IsLetter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

uint8_t LabelOf(char c) {
  return static_cast<uint8_t>(c <= 'Z' ? c - 'A' : c - 'a' + 26);
}

EinsumTerm ParseTerm(std::string_view equation, std::string_view text) {
  EinsumTerm term;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (IsLetter(c)) {
      if (term.letters == kMaxRank) {
        throw Error(Code::kUnsupported, "Einsum: a term of equation \"" + std::string(equation) +
                                            "\" has more than " + std::to_string(kMaxRank) +
                                            " labels");
      }
      term.label[static_cast<size_t>(term.letters++)] = LabelOf(c);
    } else if (text.substr(i, 3) == "..." && term.ellipsis < 0) {
      term.ellipsis = term.letters;
      i += 2;
    } else {
      Fail(equation, "has an unexpected '" + std::string(1, c) + "'");
    }
  }
  return term;
}

using LabelCounts = std::array<int, kEinsumLetters>;

// The labels that appear once, in ASCII order, behind the ellipsis.
EinsumTerm ImpliedOutput(std::string_view equation, const LabelCounts& counts, bool ellipsis) {
  EinsumTerm term;
  if (ellipsis) term.ellipsis = 0;
  for (size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] != 1) continue;
    if (term.letters == kMaxRank) Fail(equation, "implies an output of too many dims");
    term.label[static_cast<size_t>(term.letters++)] = static_cast<uint8_t>(label);
  }
  return term;
}

void CheckOutput(std::string_view equation, const EinsumTerm& term, const LabelCounts& counts,
                 bool ellipsis) {
  LabelCounts seen{};
  for (int i = 0; i < term.letters; ++i) {
    const size_t label = term.label[static_cast<size_t>(i)];
    if (counts[label] == 0) Fail(equation, "has an output label that no input has");
    if (seen[label]++ != 0) Fail(equation, "has an output label twice");
  }
  if (term.ellipsis >= 0 && !ellipsis) Fail(equation, "has an ellipsis in the output only");
}

}  // namespace

EinsumEquation ParseEinsum(std::string_view equation, size_t inputs) {
  EinsumEquation parsed;
  if (inputs > kMaxEinsumInputs) {
    throw Error(Code::kUnsupported, "Einsum: " + std::to_string(inputs) + " inputs, at most " +
                                        std::to_string(kMaxEinsumInputs) + " are possible");
  }
  const size_t arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  LabelCounts counts{};
  bool ellipsis = false;
  for (bool more = true; more;) {
    const size_t comma = left.find(',');
    if (parsed.inputs == static_cast<int>(inputs)) {
      Fail(equation, "has more terms than the " + std::to_string(inputs) + " inputs");
    }
    EinsumTerm& term = parsed.input[static_cast<size_t>(parsed.inputs++)];
    term = ParseTerm(equation, left.substr(0, comma));
    for (int i = 0; i < term.letters; ++i) ++counts[term.label[static_cast<size_t>(i)]];
    ellipsis = ellipsis || term.ellipsis >= 0;
    more = comma != std::string_view::npos;
    if (more) left.remove_prefix(comma + 1);
  }
  if (parsed.inputs != static_cast<int>(inputs)) {
    Fail(equation, "has fewer terms than the " + std::to_string(inputs) + " inputs");
  }
  if (arrow == std::string_view::npos) {
    parsed.output = ImpliedOutput(equation, counts, ellipsis);
  } else {
    parsed.output = ParseTerm(equation, equation.substr(arrow + 2));
    CheckOutput(equation, parsed.output, counts, ellipsis);
  }
  return parsed;
}

int EinsumLabels(const EinsumTerm& term, int rank, std::array<uint8_t, kMaxRank>* labels) {
  const int dots = rank - term.letters;
  if (dots < 0 || rank > kMaxRank || (dots > 0 && term.ellipsis < 0)) return -1;
  int count = 0;
  const auto put = [&](int label) {
    (*labels)[static_cast<size_t>(count++)] = static_cast<uint8_t>(label);
  };
  for (int i = 0; i <= term.letters; ++i) {
    for (int k = dots; i == term.ellipsis && k > 0; --k) put(kEinsumLetters + k - 1);
    if (i < term.letters) put(term.label[static_cast<size_t>(i)]);
  }
  return count;
}

}  // namespace whimbrel
