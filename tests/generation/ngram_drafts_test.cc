// Drafts from the text itself: what they copy, how sure they are of it, and how far they look back.
#include "runtime/generation/ngram_drafts.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "core/allocator.h"

namespace tarn {
namespace {

class Drafts {
 public:
  explicit Drafts(uint32_t capacity) {
    Bump count;
    ngrams_.TakeArrays(&count, capacity);
    block_ = std::move(Block::Allocate(DefaultAllocator(), count.used(), "test").value());
    Bump bump(block_.bytes());
    ngrams_.TakeArrays(&bump, capacity);
  }
  void Add(const std::string& text) {
    for (const char c : text) ngrams_.Add(c);
  }
  void Clear() { ngrams_.Clear(); }
  std::string Next(size_t most) {
    int32_t tokens[64];
    const size_t count = ngrams_.Draft(most, tokens, probabilities_);
    std::string text;
    for (size_t i = 0; i < count; ++i) text += static_cast<char>(tokens[i]);
    return text;
  }
  float probability(size_t i) const { return probabilities_[i]; }

 private:
  NgramDrafts ngrams_;
  Block block_;
  float probabilities_[64] = {};
};

TEST(NgramDrafts, CopyWhatFollowed) {
  Drafts drafts(1024);
  EXPECT_EQ(drafts.Next(4), "");
  drafts.Add("the cat sat, the ");
  EXPECT_EQ(drafts.Next(3), "cat");
  drafts.Clear();
  EXPECT_EQ(drafts.Next(4), "");
  drafts.Add("xyz");
  EXPECT_EQ(drafts.Next(4), "");
}

// Short contexts are many, but their votes are known to be worth less.
TEST(NgramDrafts, ALongContextThatIsMostlyRightOutweighsShortOnes) {
  Drafts drafts(4096);
  for (int i = 0; i < 100; ++i) drafts.Add("the cat sat, one cat ran, ");
  drafts.Add("the cat");
  EXPECT_EQ(drafts.Next(4), " sat");
  drafts.Add(" sat, one cat");
  EXPECT_EQ(drafts.Next(4), " ran");
}

// Beside a copy nobody votes: "567" was last in front of an "x".
TEST(NgramDrafts, CopyATextThatComesAgain) {
  const std::string text = "0123456789abcdefghijklmnopqrstuvwxyz";
  Drafts drafts(1024);
  drafts.Add(text + "567x 567x 567x " + text.substr(0, 14));
  EXPECT_EQ(drafts.Next(3), "efg");
  drafts.Clear();
  drafts.Add("567x 567x " + text + "567x 567x ! " + text.substr(0, 12));
  for (size_t i = 12; i < text.size(); ++i) {
    ASSERT_EQ(drafts.Next(1), text.substr(i, 1)) << i;
    drafts.Add(text.substr(i, 1));
  }
  EXPECT_GT(drafts.probability(0), 0.8f);
  drafts.Add("?");  // the copy ends
  EXPECT_TRUE(drafts.Next(1).empty() || drafts.probability(0) < 0.8f);
}

TEST(NgramDrafts, BridgeATokenThatDiffers) {
  Drafts drafts(1024);
  drafts.Add("kAmv zCmw kBm");  // "Bm" is new; "m" stood last in "Cmw", and "k.m" in "kAmv"
  EXPECT_EQ(drafts.Next(1), "v");
}

TEST(NgramDrafts, KeepWhatWasRightOften) {
  Drafts drafts(1024);
  for (const char* text : {"0ab", "1ab", "2ab", "3ac", "4a"}) drafts.Add(text);
  EXPECT_EQ(drafts.Next(1), "b");  // one "c" does not outweigh three of "b"
  drafts.Add("c5a");
  EXPECT_EQ(drafts.Next(1), "c");  // a second one does
}

TEST(NgramDrafts, ContinueALoop) {
  Drafts drafts(64);
  for (int i = 0; i < 20; ++i) drafts.Add("abc");
  EXPECT_EQ(drafts.Next(10), "abcabcabca");
  drafts.Clear();
  drafts.Add("zzz");
  EXPECT_EQ(drafts.Next(3), "zzz");
}

TEST(NgramDrafts, EndWhereNoneHasAChance) {
  Drafts drafts(64);
  drafts.Add("abcabc");
  EXPECT_EQ(drafts.Next(64), "abcab");  // 0.4 each, as nothing is known
}

TEST(NgramDrafts, LookBackAsFarAsTheirHistory) {
  const std::string far = "ABCDEFGHIJKLMNOPQRSTUVWXYZab";
  std::string between;
  for (int i = 0; i < 40; ++i) between += static_cast<char>(128 + i);
  Drafts wide(128), narrow(64);
  for (Drafts* drafts : {&wide, &narrow}) {
    drafts->Add(far + between);
    drafts->Add(far.substr(0, 10));
  }
  EXPECT_EQ(wide.Next(5), far.substr(10, 5));
  EXPECT_EQ(narrow.Next(5), "");
}

TEST(NgramDrafts, KnowHowOftenTheyAreRight) {
  Drafts drafts(1024);
  const std::string line = "0123456789abcdefghijklmnopqrstuvwxyz";
  for (int i = 0; i < 20; ++i) drafts.Add(line);
  ASSERT_EQ(drafts.Next(3), "012");
  for (size_t i = 0; i < 3; ++i) EXPECT_GT(drafts.probability(i), 0.9f);
  // Noise of two symbols has long matches, whose next symbol is right every other time.
  drafts.Clear();
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) drafts.Add(random() % 2 == 0 ? "x" : "y");
  ASSERT_EQ(drafts.Next(1).size(), 1u);
  EXPECT_GT(drafts.probability(0), 0.25f);
  EXPECT_LT(drafts.probability(0), 0.75f);
}

TEST(NgramDrafts, AnyTextAddsWithoutEnd) {
  Drafts drafts(64);
  std::mt19937 random(2);
  for (int i = 0; i < 200000; ++i) {
    drafts.Add(std::string(1, static_cast<char>(random() % (1 + i % 7))));
    ASSERT_LE(drafts.Next(random() % 20).size(), 20u);
  }
}

}  // namespace
}  // namespace tarn
