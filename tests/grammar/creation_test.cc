// What the creation of a grammar costs, and masks that are made of those of other states.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/grammar/grammar_fixture.h"

namespace tarn {
namespace {

using Random = std::mt19937;

uint32_t Below(Random* random, uint32_t limit) { return std::uniform_int_distribution<uint32_t>(0, limit - 1)(*random); }

// All bytes, and pieces of up to 40 bytes: longer ones than the levels that states are compared to.
std::vector<std::string> LongPieces() {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  const std::vector<std::string> parts = {"a", "b",  "ab",       "x",    "\"",   "\", ", " ", "  ",
                                          "0", "12", "\xC3\xA9", "\xC3", "\xA9", ",",    "["};
  Random random(1);
  std::set<std::string> known(pieces.begin(), pieces.end());
  while (pieces.size() < 4000) {
    std::string piece;
    for (uint32_t i = 0, count = 2 + Below(&random, pieces.size() % 10 == 0 ? 20 : 5); i < count; ++i) {
      piece += parts[Below(&random, static_cast<uint32_t>(parts.size()))];
    }
    if (known.insert(piece).second) pieces.push_back(piece);
  }
  return pieces;
}

const test::PieceTokenizer& LongTokens() {
  static const auto* tokenizer = new test::PieceTokenizer(LongPieces());
  return *tokenizer;
}

// Follows random texts: every mask of `text` is what a walk finds, and where the one is an error the other is.
void CheckMasks(const std::string& text, GrammarConfig config, int* compared) {
  const test::GrammarOwner masks = test::MakeGrammar(text, LongTokens(), config);
  config.max_mask_bytes = 0;
  const test::GrammarOwner walks = test::MakeGrammar(text, LongTokens(), config);
  ASSERT_TRUE(masks != nullptr && walks != nullptr) << text;
  EXPECT_GT(masks->bytes(), walks->bytes()) << text << " has no masks";
  Random random(2);
  for (int i = 0; i < 12; ++i) {
    masks->Reset();
    walks->Reset();
    for (int t = 0; t < 40; ++t) {
      std::vector<bool> expected, allowed;
      const Status status = test::Allowed(masks.get(), &allowed), walked = test::Allowed(walks.get(), &expected);
      ASSERT_STREQ(status.message(), walked.message()) << text;
      if (!status.ok()) break;
      ASSERT_EQ(allowed, expected) << text << " behind " << t << " tokens";
      ++*compared;
      std::vector<int32_t> choices;
      for (size_t token = 0; token + 1 < allowed.size(); ++token) {
        // Short ones by turns: texts come to all of the many states of a repetition.
        if (allowed[token] && (i % 2 == 0 || token < 256)) choices.push_back(static_cast<int32_t>(token));
      }
      if (choices.empty()) break;
      const int32_t token = choices[Below(&random, static_cast<uint32_t>(choices.size()))];
      ASSERT_EQ(masks->Accept(token).ok(), walks->Accept(token).ok());
    }
  }
}

const char* const kTexts[] = {
    "root ::= \"\\\"\" [^\"\\\\]{0,60} \"\\\"\" (\", \" root)?",
    "root ::= .{3,40}",
    "root ::= [^x]{2,30} \"x\" .{0,7}",
    // Calls, the ends of rules inside a token, and repetitions of several lengths beside each other.
    ("root ::= \"[\" item (\",\" \" \"? item)* \"]\"\nitem ::= text | word | root\ntext ::= \"\\\"\" [^\"]{0,25} \"\\\"\"\n"
     "word ::= [a-z] [a-z0-9 ]{0,33} tail?\ntail ::= \"\xC3\xA9\" tail | \"12\" word"),
    "root ::= (a | b | \", \" a){1,9}\na ::= [ab]{1,20} \" \" b?\nb ::= [^\"]{2,20} \"\\\"\" | \"x\" a",
    // Names but for some, as for properties that a schema does not list.
    "root ::= \"a\" ([^b] rest | \"b\" ([^x] rest | \"x\" [^0] rest)) | [^a] rest\nrest ::= [^\"]* \"\\\"\"",
};

TEST(Creation, MasksThatAreMadeOfOthersAreWhatAWalkFinds) {
  int compared = 0;
  for (const char* text : kTexts) ASSERT_NO_FATAL_FAILURE(CheckMasks(text, test::kGrammarConfig, &compared));
  EXPECT_GT(compared, 500);
}

TEST(Creation, MasksThatAreMadeOfOthersKnowHowDeepTheyGet) {
  int compared = 0;
  for (const uint32_t depth : {1u, 2u, 3u}) {
    GrammarConfig config = test::kGrammarConfig;
    config.limits.max_depth = depth;
    ASSERT_NO_FATAL_FAILURE(CheckMasks(kTexts[3], config, &compared));
  }
  EXPECT_GT(compared, 30);
}

// Without pieces that are longer than the levels: to them, all states of a repetition but the last ones are alike.
const test::PieceTokenizer& ShortTokens() {
  static const auto* tokenizer = [] {
    std::vector<std::string> pieces;
    for (const std::string& piece : LongPieces()) {
      if (piece.size() < 16) pieces.push_back(piece);
    }
    return new test::PieceTokenizer(pieces);
  }();
  return *tokenizer;
}

// The least max_work that the grammar can be made with, to one part in 64.
uint64_t LeastWork(const std::string& text) {
  uint64_t low = 0, high = kMostWork;
  while (high - low > high / 64) {
    GrammarConfig config = test::kGrammarConfig;
    config.max_work = low + (high - low) / 2;
    const Result<Grammar*> created = test::CreateGrammar(text, ShortTokens(), config);
    (created.ok() ? high : low) = config.max_work;
    if (created.ok()) Grammar::Destroy(created.value());
  }
  return high;
}

TEST(Creation, WorkOfARepetitionIsInProportionToIt) {
  const auto of = [](int count) { return LeastWork("root ::= \"\\\"\" [^\"]{0," + std::to_string(count) + "} \"\\\"\""); };
  const uint64_t few = of(250), many = of(1000);
  EXPECT_LT(many, 4.5 * static_cast<double>(few));
  // A walk over the vocabulary has more than 10,000.
  EXPECT_LT((many - few) / 750, 2000u);
}

TEST(Creation, WorkIsBounded) {
  std::string rules, uses, ranges;
  for (int i = 0; i < 4000; ++i) {
    const std::string name = "r" + std::to_string(i);
    uses += " " + name;
    rules += name + " ::= (\"\"){50000} \"a\"\n";
    char range[32];
    std::snprintf(range, sizeof(range), "\\U%08x", 0x10000u + 3u * static_cast<uint32_t>(i));
    ranges += range;
  }
  for (const std::string& text : {"root ::=" + uses + "\n" + rules, "root ::= [" + ranges + "]{9}",
                                  std::string("root ::= .{0,6000}"), std::string("root ::= [ab]* [a] [ab]{14}")}) {
    GrammarConfig config = test::kGrammarConfig;
    config.max_work = 1u << 20;
    const Status status = test::CreateGrammar(text, LongTokens(), config).status();
    EXPECT_EQ(status.code(), TARN_UNSUPPORTED) << text.substr(0, 60);
    EXPECT_NE(
        std::string(status.message())
            .find("the creation of the grammar takes more than max_work 1048576 steps: shorten repetitions {m,n}, write fewer "
                  "alternatives that begin alike, or raise max_work"),
        std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace tarn
