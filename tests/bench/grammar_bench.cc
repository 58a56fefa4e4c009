// What a grammar costs for each token, with a vocabulary of lm-small's size: 256 bytes, and random pieces that are put together as
// a byte-level BPE puts them together. The mask of a token, and the token taken.
#include <random>
#include <string>
#include <vector>

#include "tests/bench/bench.h"
#include "tests/grammar/grammar_fixture.h"

namespace tarn::bench {
namespace {

// Longer pieces are made of two shorter ones, those of text more often than others.
std::vector<std::string> RandomPieces(size_t count) {
  const std::string common = "etaoinshrdlucmfwypvbgkjqxz    ETAOIN0123456789\"\",.:{}[]-_()\n'";
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  std::mt19937 random(1);
  const auto part = [&]() -> std::string {
    if (pieces.size() == 256 || random() % 2 == 0) return std::string(1, common[random() % common.size()]);
    return pieces[256 + random() % (pieces.size() - 256)];
  };
  while (pieces.size() < count) {
    const std::string piece = part() + part();
    if (piece.size() <= 12) pieces.push_back(piece);
  }
  return pieces;
}

constexpr char kRecords[] =
    "root ::= \"[\" record (\",\" ws record)* \"]\"\n"
    "record ::= \"{\\\"name\\\":\" ws string \",\" ws \"\\\"note\\\":\" ws short \",\" ws \"\\\"any\\\":\" ws value \"}\"\n"
    "short ::= \"\\\"\" char{0,50} \"\\\"\"\n"
    "value ::= string | number | \"[\" ws (value (\",\" ws value)*)? ws \"]\" | \"true\" | \"false\" | \"null\"\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "char ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]*) (\".\" [0-9]+)?\n"
    "ws ::= [ \\n]?\n";

void Mask(benchmark::State& state) {
  const size_t vocab = kModels[0].vocab;
  const test::PieceTokenizer tokenizer(RandomPieces(vocab - 1));
  const test::GrammarOwner grammar = test::MakeGrammar(kRecords, tokenizer);
  const Floats logits = Numbers(vocab);
  Floats masked(vocab);
  std::mt19937 random(2);
  size_t in_text = 0;
  for (auto _ : state) {
    state.PauseTiming();
    masked = logits;
    if (in_text == 400 || grammar->progress() == Grammar::Progress::kComplete) {
      grammar->Reset();
      in_text = 0;
    }
    state.ResumeTiming();
    if (!grammar->Apply({masked.data(), masked.size()}).ok()) state.SkipWithError("no mask");
    state.PauseTiming();
    std::vector<int32_t> choices;
    for (size_t i = 0; i + 1 < vocab; ++i) {
      if (masked[i] == logits[i]) choices.push_back(static_cast<int32_t>(i));
    }
    const int32_t token = choices[random() % choices.size()];
    ++in_text;
    state.ResumeTiming();
    if (!grammar->Accept(token).ok()) state.SkipWithError("not taken");
  }
}
BENCHMARK(Mask)->Name("grammar_mask/lm-small")->Iterations(4000);

void Create(benchmark::State& state) {
  const test::PieceTokenizer tokenizer(RandomPieces(kModels[0].vocab - 1));
  for (auto _ : state) benchmark::DoNotOptimize(test::MakeGrammar(kRecords, tokenizer));
}
BENCHMARK(Create)->Name("grammar_create/lm-small")->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace tarn::bench
