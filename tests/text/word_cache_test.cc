// The cache of words: which words are still there.
#include "runtime/text/word_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/allocator.h"
#include "core/bump.h"

namespace tarn {
namespace {

class Cache {
 public:
  explicit Cache(uint32_t slots) {
    Bump counted;
    cache_.TakeArrays(&counted, slots);
    block_ = std::move(Block::Allocate(DefaultAllocator(), counted.used(), "test").value());
    Bump bump(block_.bytes());
    cache_.TakeArrays(&bump, slots);
  }
  // The ids of a word; none: it is not there.
  std::vector<int32_t> Find(const std::string& word) {
    WordToken tokens[WordCache::kMaxTokens] = {};
    std::vector<int32_t> ids(cache_.Find(Bytes(word), tokens));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = tokens[i].id;
    return ids;
  }
  // With as many tokens as given, numbered from `id` on.
  void Add(const std::string& word, int32_t id, size_t count = 1) {
    std::vector<WordToken> tokens;
    for (size_t i = 0; i < count; ++i) tokens.push_back({id + static_cast<int32_t>(i), 1});
    cache_.Add(Bytes(word), {tokens.data(), tokens.size()});
  }

 private:
  static Span<const uint8_t> Bytes(const std::string& word) { return {reinterpret_cast<const uint8_t*>(word.data()), word.size()}; }

  Block block_;
  WordCache cache_;
};

using Ids = std::vector<int32_t>;

TEST(WordCache, TheWordThatWasUsedLeastRecentlyGoes) {
  Cache cache(2);
  cache.Add("a", 1);
  cache.Add("b", 2, 3);
  EXPECT_EQ(cache.Find("a"), Ids({1}));
  EXPECT_EQ(cache.Find("b"), Ids({2, 3, 4}));
  EXPECT_EQ(cache.Find("a"), Ids({1}));
  cache.Add("c", 7);
  EXPECT_EQ(cache.Find("b"), Ids());
  EXPECT_EQ(cache.Find("a"), Ids({1}));
  EXPECT_EQ(cache.Find("c"), Ids({7}));
}

TEST(WordCache, AWordOfTooManyTokensDisplacesNone) {
  Cache cache(2);
  cache.Add("a", 1);
  cache.Add("b", 2);
  cache.Add("c", 3, WordCache::kMaxTokens + 1);
  cache.Add("d", 4, 0);
  EXPECT_EQ(cache.Find("c"), Ids());
  EXPECT_EQ(cache.Find("d"), Ids());
  EXPECT_EQ(cache.Find("a"), Ids({1}));
  EXPECT_EQ(cache.Find("b"), Ids({2}));
}

TEST(WordCache, OneEntryIsEnough) {
  Cache cache(1);
  cache.Add("a", 1);
  EXPECT_EQ(cache.Find("a"), Ids({1}));
  cache.Add("b", 2);
  EXPECT_EQ(cache.Find("a"), Ids());
  EXPECT_EQ(cache.Find("b"), Ids({2}));
}

// Words that are the beginning of one another, and the longest one.
TEST(WordCache, LengthsAreAPartOfTheKey) {
  Cache cache(1u << 14);
  for (size_t bytes = 1; bytes <= WordCache::kMaxWordBytes; ++bytes)
    cache.Add(std::string(bytes, 'a'), static_cast<int32_t>(bytes));
  for (size_t bytes = 1; bytes <= WordCache::kMaxWordBytes; ++bytes) {
    EXPECT_EQ(cache.Find(std::string(bytes, 'a')), Ids({static_cast<int32_t>(bytes)})) << bytes;
  }
}

}  // namespace
}  // namespace tarn
