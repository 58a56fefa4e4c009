#include "runtime/text/trie.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tools/convert/tokenizer/trie.h"

namespace tarn {
namespace {

template <typename T>
Span<const T> View(const std::vector<T>& vector) {
  return {vector.data(), vector.size()};
}

Trie ViewOf(const convert::TrieTables& tables) { return Trie(View(tables.first_edges), View(tables.labels), View(tables.values)); }

// The value of `text`; -1: it is no string of the trie.
int32_t Find(const Trie& trie, const std::string& text) {
  uint32_t node = Trie::kRoot;
  for (const char byte : text) {
    node = trie.Child(node, static_cast<uint8_t>(byte));
    if (node == Trie::kNone) return -1;
  }
  return trie.value(node);
}

TEST(Trie, HasItsStringsAndNoOthers) {
  const std::map<std::string, int32_t> strings = {{"a", 0}, {"abc", 1}, {"b\xFF", 2}, {"b\x01", 3}, {std::string("\0x", 2), 4}};
  const convert::TrieTables tables = convert::MakeTrie(strings);
  const Trie trie = ViewOf(tables);
  EXPECT_TRUE(trie.Check(5).ok());
  EXPECT_EQ(trie.MaxDepth(), 3u);
  for (const auto& [text, value] : strings) EXPECT_EQ(Find(trie, text), value);
  for (const char* text : {"", "ab", "abcd", "b", "c"}) EXPECT_EQ(Find(trie, text), -1) << text;
  EXPECT_TRUE(Trie().Check(0).ok());
  EXPECT_EQ(Trie().MaxDepth(), 0u);
}

TEST(Trie, DamageIsRefused) {
  const convert::TrieTables good = convert::MakeTrie({{"ab", 0}, {"ac", 1}, {"d", 2}});
  EXPECT_EQ(ViewOf(good).Check(2).code(), TARN_BAD_FORMAT);  // a value of 2
  for (size_t i = 0; i < good.first_edges.size(); ++i) {
    convert::TrieTables bad = good;
    bad.first_edges[i] += 100;
    EXPECT_EQ(ViewOf(bad).Check(3).code(), TARN_BAD_FORMAT) << i;
  }
  convert::TrieTables loop = good;
  loop.first_edges = {0, 0, 0, 0, 0, 4};
  EXPECT_EQ(ViewOf(loop).Check(3).code(), TARN_BAD_FORMAT);
  convert::TrieTables unsorted = good;
  std::swap(unsorted.labels[0], unsorted.labels[1]);
  EXPECT_EQ(ViewOf(unsorted).Check(3).code(), TARN_BAD_FORMAT);
  convert::TrieTables cut = good;
  cut.values.pop_back();
  EXPECT_EQ(ViewOf(cut).Check(3).code(), TARN_BAD_FORMAT);
}

}  // namespace
}  // namespace tarn
