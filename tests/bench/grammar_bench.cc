// What a grammar costs for each token, with a vocabulary of lm-small's size: 256 bytes, and random pieces that are put together as
// a byte-level BPE puts them together. The mask of a token, and the token taken.
#include <algorithm>
#include <ctime>
#include <random>
#include <string>
#include <utility>
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

// Records as a JSON schema asks for them, arithmetic, and one of 5,000 names.
constexpr char kRecords[] =
    "root ::= \"[\" record (\",\" ws record)* \"]\"\n"
    "record ::= \"{\\\"name\\\":\" ws string \",\" ws \"\\\"note\\\":\" ws short \",\" ws \"\\\"any\\\":\" ws value \"}\"\n"
    "short ::= \"\\\"\" char{0,50} \"\\\"\"\n"
    "value ::= string | number | \"[\" ws (value (\",\" ws value)*)? ws \"]\" | \"true\" | \"false\" | \"null\"\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "char ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]*) (\".\" [0-9]+)?\n"
    "ws ::= [ \\n]?\n";
constexpr char kArithmetic[] =
    "root ::= line+\n"
    "line ::= name \" = \" sum \"\\n\"\n"
    "sum ::= term (\" \"? [-+*/] \" \"? term)*\n"
    "term ::= \"-\"? (number | name | \"(\" sum \")\")\n"
    "number ::= [0-9]+ (\".\" [0-9]+)?\n"
    "name ::= [a-z] [a-z0-9_]*\n";

std::string Names() {
  std::mt19937 random(3);
  std::string text = "root ::= name (\", \" name)*\nname ::= ";
  for (int i = 0; i < 5000; ++i) {
    text += i == 0 ? "\"" : " | \"";
    for (size_t j = 0, size = 4 + random() % 9; j < size; ++j) text += static_cast<char>('a' + random() % 26);
    text += "\"";
  }
  return text + "\n";
}

std::string LongText() { return "root ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" [\"\\\\/bfnrt]){0,1000} \"\\\"\"\n"; }

double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Time of the processor: the mask of a token, and the token taken. What a sampler would do between the two is not part of it.
void Mask(benchmark::State& state, const std::string& rules) {
  const size_t vocab = kModels[0].vocab;
  const test::PieceTokenizer tokenizer(RandomPieces(vocab - 1));
  const test::GrammarOwner grammar = test::MakeGrammar(rules, tokenizer);
  const Floats logits = Numbers(vocab);
  Floats masked(vocab);
  std::mt19937 random(2);
  std::vector<double> times;
  size_t in_text = 0;
  for (auto _ : state) {
    masked = logits;
    if (in_text == 400 || grammar->progress() == Grammar::Progress::kComplete) {
      grammar->Reset();
      in_text = 0;
    }
    const double begin = ThreadSeconds();
    if (!grammar->Apply({masked.data(), masked.size()}).ok()) state.SkipWithError("no mask");
    const double made = ThreadSeconds();
    std::vector<int32_t> choices;
    for (size_t i = 0; i + 1 < vocab; ++i) {
      if (masked[i] == logits[i]) choices.push_back(static_cast<int32_t>(i));
    }
    if (choices.empty()) {  // the end token alone
      in_text = 400;
      times.push_back(made - begin);
      state.SetIterationTime(times.back());
      continue;
    }
    const int32_t token = choices[random() % choices.size()];
    ++in_text;
    const double chosen = ThreadSeconds();
    if (!grammar->Accept(token).ok()) state.SkipWithError("not taken");
    times.push_back(made - begin + ThreadSeconds() - chosen);
    state.SetIterationTime(times.back());
  }
  std::sort(times.begin(), times.end());
  state.counters["median_us"] = 1e6 * times[times.size() / 2];
  state.counters["p95_us"] = 1e6 * times[times.size() * 95 / 100];
}

void Create(benchmark::State& state, const std::string& rules) {
  const test::PieceTokenizer tokenizer(RandomPieces(kModels[0].vocab - 1));
  for (auto _ : state) benchmark::DoNotOptimize(test::MakeGrammar(rules, tokenizer));
}

const bool kRegistered = [] {
  const std::pair<const char*, std::string> all[] = {
      {"records", kRecords}, {"arithmetic", kArithmetic}, {"names", Names()}, {"long_text", LongText()}};
  for (const auto& [name, rules] : all) {
    const std::string text = rules;
    benchmark::RegisterBenchmark((std::string("grammar_mask/") + name).c_str(), [=](benchmark::State& state) { Mask(state, text); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(4000);
    benchmark::RegisterBenchmark((std::string("grammar_create/") + name).c_str(),
                                 [=](benchmark::State& state) { Create(state, text); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(3);
  }
  return true;
}();

}  // namespace
}  // namespace tarn::bench
