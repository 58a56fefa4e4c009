// The mask: a token is allowed exactly where its bytes, one by one, are.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/text/sampler.h"
#include "tests/grammar/grammar_fixture.h"
#include "tests/text/counting_allocator.h"

namespace tarn {
namespace {

using Progress = Grammar::Progress;
using Random = std::mt19937;

uint32_t Below(Random* random, uint32_t limit) { return std::uniform_int_distribution<uint32_t>(0, limit - 1)(*random); }

constexpr char kJson[] =
    "root ::= value\n"
    "value ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"
    "object ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? \"}\" ws\n"
    "array ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws\n"
    "string ::= \"\\\"\" char* \"\\\"\" ws\n"
    "char ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]*) (\".\" [0-9]+)? ([eE] [-+]? [0-9]+)? ws\n"
    "ws ::= [ \\t\\n]*\n";

// A vocabulary of all bytes and of parts of JSON and of words, some of which end inside a character.
std::vector<std::string> JsonPieces() {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  const std::vector<std::string> parts = {"\"", "\",", "\":",  "{",    "}",    "[",        "]",        ",",       " ",
                                          "\n", "a",   "the",  "12",   "-",    ".5",       "e9",       "true",    "nul",
                                          "\\", "\\u", "00e9", "\xC3", "\xA9", "\xF0\x9F", "\x98\x80", "\xC3\xA9"};
  Random random(1);
  std::set<std::string> known(pieces.begin(), pieces.end());
  while (pieces.size() < 3000) {
    std::string piece;
    for (uint32_t i = 0, count = 2 + Below(&random, 4); i < count; ++i) {
      piece += parts[Below(&random, static_cast<uint32_t>(parts.size()))];
    }
    if (known.insert(piece).second) pieces.push_back(piece);
  }
  pieces.push_back(pieces[300]);  // two tokens of one text
  return pieces;
}

// Follows a grammar over random tokens, and checks every mask on the way against a grammar over bytes.
void CheckMasks(const std::string& text, const std::vector<std::string>& pieces, uint32_t seed, int texts, int tokens) {
  const test::PieceTokenizer tokenizer(pieces);
  const test::GrammarOwner grammar = test::MakeGrammar(text, tokenizer), bytes = test::MakeGrammar(text);
  ASSERT_NE(grammar, nullptr) << text;
  Random random(seed);
  for (int i = 0; i < texts; ++i) {
    grammar->Reset();
    std::string written;
    for (int t = 0; t < tokens; ++t) {
      std::vector<bool> allowed;
      const Status status = test::Allowed(grammar.get(), &allowed);
      if (status.code() == TARN_CONTEXT_FULL) break;
      ASSERT_TRUE(status.ok()) << text << "\n" << written << "\n" << status.message();
      EXPECT_EQ(allowed[static_cast<size_t>(tokenizer.end_token())], grammar->progress() != Progress::kOpen) << written;
      std::vector<int32_t> choices;
      ASSERT_EQ(test::TakenBytes(bytes.get(), written), written.size());
      for (size_t token = 0; token < pieces.size(); ++token) {
        // The bytes' grammar starts each token from what is written; most of them end at the first byte.
        bool fits = true;
        for (size_t at = 0; fits && at < pieces[token].size(); ++at) {
          fits = bytes->Accept(static_cast<uint8_t>(pieces[token][at])).ok();
          if (at + 1 == pieces[token].size() || !fits) {
            if (at > 0 || fits) test::TakenBytes(bytes.get(), written);
          }
        }
        ASSERT_EQ(allowed[token], fits) << text << "\nbehind: " << written << "\ntoken: " << pieces[token];
        if (fits) choices.push_back(static_cast<int32_t>(token));
      }
      if (choices.empty()) break;
      const int32_t token = choices[Below(&random, static_cast<uint32_t>(choices.size()))];
      ASSERT_TRUE(grammar->Accept(token).ok());
      written += pieces[static_cast<size_t>(token)];
    }
  }
}

TEST(Mask, EqualsWhatBytesSayInJson) { CheckMasks(kJson, JsonPieces(), 2, 6, 40); }
TEST(Mask, EqualsWhatBytesSayInBoundedStrings) {
  CheckMasks("root ::= \"\\\"\" [^\"\\\\]{3,12} \"\\\"\" (\",\" root)?", JsonPieces(), 3, 5, 20);
}
TEST(Mask, EqualsWhatBytesSayInNestedRules) {
  CheckMasks(
      "root ::= \"[\" text (\",\" root)* \"]\" | text\ntext ::= word (\" \" word)* \ntail ::= \"x\" tail | \"e\" word\n"
      "word ::= letters letters? tail?\nletters ::= [a-z]* ([0-9]+ | .)",
      JsonPieces(), 4, 4, 20);
}

// ---- random grammars against the texts that they derive -------------------------------------------------------------

constexpr size_t kLongest = 5;
using Texts = std::set<std::string>;

Texts Joined(const Texts& a, const Texts& b) {
  Texts all;
  for (const std::string& x : a) {
    for (const std::string& y : b) {
      if (x.size() + y.size() <= kLongest) all.insert(x + y);
    }
  }
  return all;
}

// A grammar of three rules with all texts of up to kLongest bytes that its rules derive, found by repetition until nothing is
// added.
class RandomGrammar {
 public:
  explicit RandomGrammar(Random* random) {
    for (size_t rule = 0; rule < 3; ++rule) rules_.push_back(Alternatives(random, 0));
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t rule = 0; rule < 3; ++rule) {
        Texts derived = Of(rules_[rule]);
        changed = changed || derived.size() != texts_[rule].size();
        texts_[rule] = std::move(derived);
      }
    }
  }
  std::string Text() const {
    return "root ::= " + rules_[0].text + "\nr1 ::= " + rules_[1].text + "\nr2 ::= " + rules_[2].text + "\n";
  }
  const Texts& texts() const { return texts_[0]; }

 private:
  enum class Kind { kLetters, kRule, kSequence, kAlternatives, kRepeat };
  struct Part {
    Kind kind;
    std::string text;
    Texts letters;
    size_t rule = 0, least = 0, most = 0;
    std::vector<Part> parts;
  };

  Part Alternatives(Random* random, int depth) {
    Part part{Kind::kAlternatives, "", {}, 0, 0, 0, {}};
    for (uint32_t i = 0, count = 1 + Below(random, 3); i < count; ++i) {
      part.parts.push_back(Sequence(random, depth));
      part.text += (i == 0 ? "" : " | ") + part.parts.back().text;
    }
    return part;
  }
  Part Sequence(Random* random, int depth) {
    Part part{Kind::kSequence, "", {}, 0, 0, 0, {}};
    for (uint32_t i = 0, count = Below(random, 4); i < count; ++i) {
      part.parts.push_back(Element(random, depth));
      part.text += (i == 0 ? "" : " ") + part.parts.back().text;
    }
    if (part.parts.empty()) part.text = "\"\"";
    return part;
  }
  Part Element(Random* random, int depth) {
    const uint32_t choice = Below(random, depth < 2 ? 8 : 5);
    if (choice == 0) return {Kind::kLetters, "[ab]", {"a", "b"}, 0, 0, 0, {}};
    if (choice == 1) return {Kind::kLetters, "\"ab\"", {"ab"}, 0, 0, 0, {}};
    if (choice == 2) return {Kind::kLetters, "\"c\"", {"c"}, 0, 0, 0, {}};
    if (choice <= 4) {
      const size_t rule = Below(random, 3);
      return {Kind::kRule, rule == 0 ? "root" : "r" + std::to_string(rule), {}, rule, 0, 0, {}};
    }
    Part group = Alternatives(random, depth + 1);
    group.text = "(" + group.text + ")";
    if (choice == 5) return group;
    const size_t least = Below(random, 3), most = choice == 6 ? kLongest : least + Below(random, 2);
    const std::string counts =
        choice == 6 ? "{" + std::to_string(least) + ",}" : "{" + std::to_string(least) + "," + std::to_string(most) + "}";
    Part part{Kind::kRepeat, group.text + counts, {}, 0, least, std::max(least, most), {}};
    part.parts.push_back(std::move(group));
    return part;
  }

  Texts Of(const Part& part) const {
    Texts all;
    switch (part.kind) {
      case Kind::kLetters:
        return part.letters;
      case Kind::kRule:
        return texts_[part.rule];
      case Kind::kSequence:
        all = {""};
        for (const Part& child : part.parts) all = Joined(all, Of(child));
        return all;
      case Kind::kAlternatives:
        for (const Part& child : part.parts) {
          const Texts some = Of(child);
          all.insert(some.begin(), some.end());
        }
        return all;
      case Kind::kRepeat: {
        const Texts one = Of(part.parts[0]);
        Texts copies = {""};
        for (size_t i = 0; i <= part.most; ++i) {
          if (i >= part.least) all.insert(copies.begin(), copies.end());
          copies = Joined(copies, one);
        }
        return all;
      }
    }
    return all;
  }

  std::vector<Part> rules_;
  Texts texts_[3];
};

// Of all texts over the letters: those that the grammar derives, and no others, end where it may end; and it takes every begin of
// one.
// Random grammars can be read in very many ways: `*full` where that was too many for one.
void CheckTexts(const RandomGrammar& random, Grammar* grammar, const std::string& text, bool* full) {
  const bool derived = random.texts().count(text) != 0;
  Status why;
  const bool taken = test::TakenBytes(grammar, text, &why) == text.size();
  *full = *full || why.code() == TARN_CONTEXT_FULL;
  if (*full) return;
  ASSERT_EQ(taken && grammar->progress() != Progress::kOpen, derived) << random.Text() << text;
  const auto longer = random.texts().lower_bound(text);
  if (longer != random.texts().end() && longer->compare(0, text.size(), text) == 0) {
    ASSERT_TRUE(taken) << random.Text() << text;
  }
  if (!taken || text.size() == kLongest) return;
  for (const char letter : {'a', 'b', 'c'}) CheckTexts(random, grammar, text + letter, full);
}

TEST(Grammar, RandomGrammarsDeriveTheirTexts) {
  Random random(5);
  int compared = 0, left_recursive = 0, too_many = 0;
  std::vector<std::string> pieces = {"a", "b", "c"};
  for (int i = 0; i < 200; ++i) {
    std::string piece;
    for (uint32_t j = 0, count = 2 + Below(&random, 5); j < count; ++j) piece += static_cast<char>('a' + Below(&random, 3));
    pieces.push_back(piece);
  }
  for (int i = 0; i < 250; ++i) {
    const RandomGrammar grammar(&random);
    const Result<Grammar*> created = test::CreateGrammar(grammar.Text(), test::ByteTokens(), {{16, 512}, 1u << 16});
    if (!created.ok()) {
      const std::string message = created.status().message();
      const bool recursion = message.find("begins with itself") != std::string::npos;
      const bool endless = message.find("never comes to an end") != std::string::npos;
      EXPECT_TRUE(recursion || endless) << grammar.Text() << message;
      left_recursive += recursion;
      continue;
    }
    const test::GrammarOwner owner(created.value(), Grammar::Destroy);
    bool full = false;
    ASSERT_NO_FATAL_FAILURE(CheckTexts(grammar, owner.get(), "", &full));
    too_many += full;
    if (!full && compared % 20 == 0) {
      ASSERT_NO_FATAL_FAILURE(CheckMasks(grammar.Text(), pieces, 6, 2, 8));
    }
    ++compared;
  }
  EXPECT_GT(compared, 80);
  EXPECT_GT(left_recursive, 5);
  EXPECT_LT(too_many, 5);
}

// ---- limits -------------------------------------------------------------------------------------------------------

TEST(Limits, DepthIsExact) {
  GrammarConfig config = test::kGrammarConfig;
  config.limits.max_depth = 10;
  const test::GrammarOwner grammar = test::MakeGrammar("root ::= \"(\" root \")\" | \"x\"", test::ByteTokens(), config);
  EXPECT_EQ(test::TakenBytes(grammar.get(), "((((((((((x))))))))))"), 21u);
  EXPECT_EQ(grammar->progress(), Progress::kComplete);
  EXPECT_EQ(test::TakenBytes(grammar.get(), "(((((((((("), 10u);
  const Status status = grammar->Accept('(');
  EXPECT_EQ(status.code(), TARN_CONTEXT_FULL);
  EXPECT_STREQ(
      status.message(),
      "token 40 behind byte 10 of the text: rules inside each other are deeper than max_depth 10: make the grammar simpler, "
      "or raise max_depth in tarn_grammar_config");
  std::vector<bool> allowed;
  EXPECT_EQ(test::Allowed(grammar.get(), &allowed).code(), TARN_CONTEXT_FULL);
  EXPECT_TRUE(grammar->Accept('x').ok());  // the text is as it was
  EXPECT_TRUE(test::Allowed(grammar.get(), &allowed).ok());
}

TEST(Limits, RecursionAtTheEndOfARuleTakesNoDepth) {
  GrammarConfig config = test::kGrammarConfig;
  config.limits.max_depth = 1;
  const test::GrammarOwner grammar =
      test::MakeGrammar("root ::= \"a\" root | \"b\" tail\ntail ::= \"c\" root | \"\"", test::ByteTokens(), config);
  ASSERT_NE(grammar, nullptr);
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "abc";
  EXPECT_EQ(test::TakenBytes(grammar.get(), text), text.size());
}

TEST(Limits, NumberOfStacksIsAnError) {
  GrammarConfig config = test::kGrammarConfig;
  config.limits.max_stacks = 4;
  std::string text = "root ::= r0";
  for (int i = 1; i < 8; ++i) text += " | r" + std::to_string(i);
  for (int i = 0; i < 8; ++i) {  // each is too large to become a part of root
    text += "\nr" + std::to_string(i) + " ::= [a-z]{100} \"" + std::to_string(i) + "\"";
  }
  const Result<Grammar*> created = test::CreateGrammar(text, test::ByteTokens(), config);
  EXPECT_EQ(created.status().code(), TARN_CONTEXT_FULL);
  EXPECT_STREQ(created.status().message(),
               "before the first byte of the text: the text can be read in more than max_stacks 4 ways: make the grammar simpler, "
               "or raise max_stacks in tarn_grammar_config");
  EXPECT_NE(test::MakeGrammar(text), nullptr);
}

// There is one way to read the text: what runs out is the room for the calls that lead to its first byte.
TEST(Limits, NumberOfRulesThatBeginAtOnceIsAnError) {
  GrammarConfig config = test::kGrammarConfig;
  config.limits.max_stacks = 4;
  std::string text = "root ::= r0 r0";
  for (int i = 0; i < 300; ++i) text += "\nr" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " r" + std::to_string(i + 1);
  text += "\nr300 ::= \"x\"";
  const Result<Grammar*> created = test::CreateGrammar(text, test::ByteTokens(), config);
  EXPECT_EQ(created.status().code(), TARN_CONTEXT_FULL);
  EXPECT_STREQ(created.status().message(),
               "before the first byte of the text: more than 16 rules (4 times max_stacks 4) begin or end at one "
               "place: make the grammar simpler, or raise max_stacks in tarn_grammar_config");
  config.limits.max_stacks = 64;
  EXPECT_NE(test::MakeGrammar(text, test::ByteTokens(), config), nullptr);
}

TEST(Limits, NumbersHaveRanges) {
  GrammarConfig config = test::kGrammarConfig;
  config.limits.max_depth = 70000;
  EXPECT_STREQ(test::CreateGrammar("root ::= \"x\"", test::ByteTokens(), config).status().message(),
               "max_depth is 70000, must be in [1, 65536]");
  config.limits = {65536, 16384};
  EXPECT_STREQ(test::CreateGrammar("root ::= \"x\"", test::ByteTokens(), config).status().message(),
               "max_depth x max_stacks is 1073741824, must be at most 16777216");
}

TEST(Limits, MemoryIsTakenAtCreationAlone) {
  const test::PieceTokenizer tokenizer(JsonPieces());
  CountingAllocator counting{1 << 20};
  const Result<Grammar*> created = test::CreateGrammar(kJson, tokenizer, test::kGrammarConfig, counting.get());
  ASSERT_TRUE(created.ok());
  const int needed = counting.calls;
  std::vector<bool> allowed;
  for (const char byte : std::string("{\"a\": [1, 2, {\"b\": null}]")) {
    ASSERT_TRUE(test::Allowed(created.value(), &allowed).ok());
    ASSERT_TRUE(created.value()->Accept(static_cast<uint8_t>(byte)).ok());
  }
  EXPECT_EQ(counting.calls, needed);
  EXPECT_GT(created.value()->bytes(), 0u);
  Grammar::Destroy(created.value());
  EXPECT_EQ(counting.live, 0);
  for (int blocks = 0; blocks < needed; ++blocks) {
    CountingAllocator few{blocks};
    EXPECT_EQ(test::CreateGrammar(kJson, tokenizer, test::kGrammarConfig, few.get()).status().code(), TARN_OUT_OF_MEMORY) << blocks;
    EXPECT_EQ(few.live, 0);
  }
}

// States that are alike share what their masks have: memory grows by the states, not by what the vocabulary has.
TEST(Limits, MasksOfStatesThatAreAlikeAreThereOnce) {
  const test::PieceTokenizer tokenizer(JsonPieces());
  uint64_t bytes[2] = {};
  for (const int more : {0, 1}) {
    const std::string count = std::to_string(1000 << more);
    const test::GrammarOwner grammar = test::MakeGrammar("root ::= [a-zA-Z \"0-9:,]{0," + count + "}", tokenizer);
    ASSERT_NE(grammar, nullptr);
    bytes[more] = grammar->bytes();
  }
  EXPECT_LT(bytes[1] - bytes[0], 1000 * 200u);
}

TEST(Limits, StatesWithoutMaskAllowTheSame) {
  const test::PieceTokenizer tokenizer(JsonPieces());
  const test::GrammarOwner all = test::MakeGrammar(kJson, tokenizer);
  for (const uint64_t most : {uint64_t{1000}, uint64_t{200}, uint64_t{0}}) {
    GrammarConfig config = test::kGrammarConfig;
    config.max_mask_bytes = most;
    const test::GrammarOwner few = test::MakeGrammar(kJson, tokenizer, config);
    EXPECT_LT(few->bytes() + 500, all->bytes()) << most;
    all->Reset();
    Random random(7);
    for (int t = 0; t < 40; ++t) {
      std::vector<bool> expected, allowed;
      ASSERT_EQ(test::Allowed(all.get(), &expected).ok(), test::Allowed(few.get(), &allowed).ok());
      ASSERT_EQ(allowed, expected) << "with " << most << " bytes, token " << t;
      std::vector<int32_t> choices;
      for (size_t i = 0; i + 1 < allowed.size(); ++i) {
        if (allowed[i]) choices.push_back(static_cast<int32_t>(i));
      }
      if (choices.empty()) break;
      const int32_t token = choices[Below(&random, static_cast<uint32_t>(choices.size()))];
      ASSERT_TRUE(all->Accept(token).ok());
      ASSERT_TRUE(few->Accept(token).ok());
    }
  }
}

// ---- tokens that are no text, and the sampler ----------------------------------------------------------------------

TEST(Grammar, EndTokenIsAllowedWhereTheTextMayEnd) {
  const int32_t end = test::ByteTokens().end_token();
  const test::GrammarOwner grammar = test::MakeGrammar("root ::= \"ab\"");
  EXPECT_STREQ(grammar->Accept(end).message(), "token 256 does not go on behind byte 0 of the text as the grammar wants");
  EXPECT_EQ(test::TakenBytes(grammar.get(), "ab"), 2u);
  std::vector<bool> allowed;
  ASSERT_TRUE(test::Allowed(grammar.get(), &allowed).ok());
  EXPECT_EQ(std::count(allowed.begin(), allowed.end(), true), 1);
  EXPECT_TRUE(allowed[256]);
  EXPECT_TRUE(grammar->Accept(end).ok());
  EXPECT_TRUE(test::Allowed(grammar.get(), &allowed).ok());
  EXPECT_TRUE(allowed[256]);
  EXPECT_FALSE(grammar->Accept('a').ok());
  EXPECT_FALSE(grammar->Accept(-1).ok());
  EXPECT_FALSE(grammar->Accept(1 << 30).ok());
}

TEST(Grammar, WordsWhereNoTokenIsLeft) {
  const test::PieceTokenizer letters({"a", "b"});
  const TokenizerTables& tables = letters.tables();
  const char text[] = "root ::= \"a\" \"c\"?";
  const Result<Grammar*> created = Grammar::Create(tables, -1, {text, sizeof(text) - 1}, test::kGrammarConfig, DefaultAllocator());
  ASSERT_TRUE(created.ok());
  const test::GrammarOwner grammar(created.value(), Grammar::Destroy);
  std::vector<bool> allowed;
  ASSERT_TRUE(grammar->Accept(0).ok());
  EXPECT_EQ(grammar->progress(), Progress::kMayEnd);
  EXPECT_STREQ(test::Allowed(grammar.get(), &allowed).message(),
               "no token of the model goes on behind byte 1 of the text as the grammar wants");
  const TokenizerTables none;
  EXPECT_EQ(Grammar::Create(none, -1, {text, sizeof(text) - 1}, test::kGrammarConfig, DefaultAllocator()).status().code(),
            TARN_UNSUPPORTED);
}

TEST(Grammar, SamplerPicksWhatItAllows) {
  const test::GrammarOwner grammar = test::MakeGrammar(kJson);
  for (const float temperature : {0.0f, 1.0f}) {
    SamplerConfig config{temperature, 0, 1, 0, 1.1f, 16, 7};
    config.mask = grammar.get();
    const std::unique_ptr<Sampler, void (*)(Sampler*)> sampler(Sampler::Create(257, config, DefaultAllocator()).value(),
                                                               Sampler::Destroy);
    const test::GrammarOwner judge = test::MakeGrammar(kJson);
    grammar->Reset();
    Random random(8);
    std::string text;
    for (int i = 0; i < 300; ++i) {
      std::vector<float> logits(257);
      for (float& logit : logits) logit = static_cast<float>(Below(&random, 1000)) / 100;
      logits['{'] = 20;
      int32_t token = -1;
      ASSERT_TRUE(sampler->Sample(logits.data(), &token).ok());
      if (token == 256) break;
      text += static_cast<char>(token);
    }
    EXPECT_EQ(test::TakenBytes(judge.get(), text), text.size());
    EXPECT_EQ(text[0], '{');
  }
  SamplerConfig config{1, 0, 1, 0, 1, 0, 7};
  config.mask = grammar.get();
  EXPECT_STREQ(Sampler::Create(300, config, DefaultAllocator()).status().message(),
               "the grammar is for a vocabulary of 257 tokens, the sampler for one of 300");
}

}  // namespace
}  // namespace tarn
