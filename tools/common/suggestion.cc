#include "tools/common/suggestion.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

namespace tarn::tools {
namespace {

constexpr size_t kFewestLetters = 3;  // of a name that has a neighbour: every two letters are near to each other
constexpr size_t kMostLetters = 64;   // what is longer is no name

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return lower;
}

std::string WithoutDashes(const std::string& name) { return name.substr(std::min(name.find_first_not_of('-'), name.size())); }

// Insertions, deletions, substitutions and exchanges of neighbours (optimal string alignment distance).
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

bool Begins(const std::string& text, const std::string& beginning) { return text.compare(0, beginning.size(), beginning) == 0; }

}  // namespace

std::string Nearest(std::string_view name, const std::vector<std::string>& known) {
  const std::string wanted = WithoutDashes(LowerCase(name.substr(0, kMostLetters + 1)));
  if (wanted.size() < kFewestLetters || wanted.size() > kMostLetters) return "";
  // How far a name is away, where a beginning counts as near; then by how many edits.
  std::pair<size_t, size_t> best_distance = {std::max<size_t>(1, wanted.size() / 3) + 1, 0};
  std::string best;
  for (const std::string& candidate : known) {
    const std::string letters = WithoutDashes(LowerCase(candidate));
    if (letters.size() < kFewestLetters) continue;
    const bool begins = Begins(letters, wanted) || Begins(wanted, letters);
    const size_t edits = EditDistance(wanted, letters);
    const std::pair<size_t, size_t> distance = {begins ? std::min<size_t>(1, edits) : edits, edits};
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = Nearest(name, known);
  return nearest.empty() ? "" : " (did you mean " + nearest + "?)";
}

std::string Alternatives(const std::vector<std::string>& known) {
  std::string text;
  for (size_t i = 0; i < known.size(); ++i) text += (i == 0 ? "" : i + 1 == known.size() ? " or " : ", ") + known[i];
  return text;
}

std::string UnknownName(std::string_view name, const std::vector<std::string>& known) {
  return "is '" + std::string(name) + "', expected " + Alternatives(known) + DidYouMean(name, known);
}

}  // namespace tarn::tools
