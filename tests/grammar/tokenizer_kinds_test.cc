// Masks over every kind of tokenizer that a model file can have: a token is allowed exactly where its bytes, one by one, are.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/grammar/grammar_fixture.h"
#include "tests/support/tokenizers.h"

namespace tarn {
namespace {

using Random = std::mt19937;

constexpr char kRules[] =
    "root ::= \" \"? line (\"\\n\" line)*\n"
    "line ::= (word | number | \"[\" line \"]\") (\" \" (word | number | \"[\" line \"]\")){0,9} [.!?]?\n"
    "word ::= [^\\x00-@\\[-`{-\\x7f]+\n"  // letters, and all that is not ASCII
    "number ::= [0-9]{1,3} (\",\" [0-9]{3})*\n";

// What a token writes behind other text; nothing where it is special.
std::vector<std::string> Pieces(const TokenizerTables& tables) {
  const TokenTexts texts(tables, -1);
  std::vector<std::string> pieces;
  for (uint32_t token = 0; token < tables.vocab_size; ++token) {
    const Span<const uint8_t> text = texts.Of(static_cast<int32_t>(token));
    pieces.emplace_back(text.begin(), text.end());
  }
  return pieces;
}

bool BytesTake(Grammar* bytes, const std::string& text) { return test::TakenBytes(bytes, text) == text.size(); }

// Follows random tokens; the count of masks that were compared.
int CompareMasks(Grammar* grammar, const std::vector<std::string>& pieces) {
  const test::GrammarOwner bytes = test::MakeGrammar(kRules);
  Random random(1);
  int compared = 0;
  for (int i = 0; i < 2; ++i) {
    std::string written;
    grammar->Reset();
    for (int t = 0; t < 12; ++t, ++compared) {
      std::vector<bool> allowed;
      if (!test::Allowed(grammar, &allowed).ok()) break;  // no token goes on
      std::vector<int32_t> choices;
      for (size_t token = 0; token < pieces.size(); ++token) {
        const bool takes = !pieces[token].empty() && BytesTake(bytes.get(), written + pieces[token]);
        EXPECT_EQ(allowed[token], takes) << "behind '" << written << "': '" << pieces[token] << "'";
        if (takes) choices.push_back(static_cast<int32_t>(token));
      }
      if (choices.empty()) break;
      const int32_t token = choices[random() % choices.size()];
      EXPECT_TRUE(grammar->Accept(token).ok());
      written += pieces[static_cast<size_t>(token)];
    }
  }
  return compared;
}

// Forces a text of the grammar through the masks by the longest pieces; the bytes that the pieces can write of it.
size_t Force(Grammar* grammar, const std::vector<std::string>& pieces, const std::string& text) {
  grammar->Reset();
  size_t at = 0;
  while (at < text.size()) {
    size_t best = pieces.size();
    for (size_t token = 0; token < pieces.size(); ++token) {
      const bool fits = !pieces[token].empty() && text.compare(at, pieces[token].size(), pieces[token]) == 0;
      if (fits && (best == pieces.size() || pieces[token].size() > pieces[best].size())) best = token;
    }
    if (best == pieces.size()) return at;
    std::vector<bool> allowed;
    EXPECT_TRUE(test::Allowed(grammar, &allowed).ok());
    EXPECT_TRUE(allowed[best]) << "refuses '" << pieces[best] << "' of '" << text << "' at byte " << at;
    if (!grammar->Accept(static_cast<int32_t>(best)).ok()) return at;
    at += pieces[best].size();
  }
  EXPECT_NE(grammar->progress(), Grammar::Progress::kOpen) << text;
  return at;
}

TEST(TokenizerKinds, MasksAreWhatBytesSay) {
  int kinds = 0;
  size_t whole = 0, compared = 0;
  for (const auto& folder : std::filesystem::directory_iterator("tests/data/tokenizers")) {
    if (!folder.is_directory()) continue;
    SCOPED_TRACE(folder.path().string());
    const convert::TokenizerData data = test::TokenizerGraph::ReadFolder(folder.path().string());
    const test::TokenizerGraph graph(data);
    const Result<TokenizerTables> tables = graph.Read();
    ASSERT_TRUE(tables.ok()) << tables.status().message();
    const Result<Grammar*> created =
        Grammar::Create(tables.value(), -1, {kRules, sizeof(kRules) - 1}, test::kGrammarConfig, DefaultAllocator());
    ASSERT_TRUE(created.ok()) << created.status().message();
    const test::GrammarOwner grammar(created.value(), Grammar::Destroy);
    const std::vector<std::string> pieces = Pieces(tables.value());
    compared += static_cast<size_t>(CompareMasks(grammar.get(), pieces));
    for (const std::string text : {"the 12 dogs", " and 1,234 of [the [old] \xC3\xA9t\xC3\xA9] is.\nIt", "a", " the of 1"}) {
      whole += Force(grammar.get(), pieces, text) == text.size() ? 1u : 0u;
    }
    ++kinds;
  }
  EXPECT_GT(kinds, 35);
  EXPECT_GT(compared, 400u);
  EXPECT_GT(whole, 60u);
}

}  // namespace
}  // namespace tarn
