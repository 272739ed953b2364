// The nearest known word to a misspelt one.

#include "whimbrel/base/config.h"

#include <algorithm>

namespace whimbrel {
namespace {

// Edits between two words, where swapping two neighbours is one edit.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

// Longest word that is compared: no option is longer, and the work is quadratic.
constexpr size_t kLongestWord = 64;

}  // namespace

std::string_view NearestWord(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.empty() || word.size() > kLongestWord) return {};
  std::string_view nearest;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;  // more than a third wrong: a guess
  for (std::string_view candidate : known) {
    if (candidate.size() > kLongestWord) continue;
    size_t distance = EditDistance(word, candidate);
    // The start of a long word counts as near, behind every misspelling of one letter.
    if (word.size() >= 3 && candidate.substr(0, word.size()) == word) {
      distance = std::min<size_t>(distance, 1);
    }
    if (distance < least && distance < candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace whimbrel
