// Text to ids, on one core. TARN_BENCH_TOKENIZER and TARN_BENCH_TEXT name the folder of another tokenizer and another text.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "runtime/text/encoder.h"
#include "tests/bench/bench.h"
#include "tests/support/files.h"
#include "tests/support/tokenizers.h"

namespace tarn::bench {
namespace {

std::string FromEnvironment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

void Tokenize(benchmark::State& state) {
  constexpr uint32_t kMostIds = 1u << 24;
  const std::string folder = FromEnvironment("TARN_BENCH_TOKENIZER", "tests/data/tokenizers/gpt2");
  const test::TokenizerGraph graph(convert::ReadTokenizer(folder, kMostIds), kMostIds);
  const TokenizerTables tables = graph.Read().value();
  const std::vector<uint8_t> text = test::ReadAll(FromEnvironment("TARN_BENCH_TEXT", "CHANGELOG.md"));
  const std::unique_ptr<Encoder, void (*)(Encoder*)> encoder(
      Encoder::Create(tables, {4096, kDefaultCacheWords}, {{}, DefaultAllocator()}).value(), Encoder::Destroy);
  std::vector<int32_t> ids(4096);
  for (auto _ : state) {
    encoder->Begin({reinterpret_cast<const char*>(text.data()), text.size()}, {});
    for (size_t count = ids.size(); count == ids.size();) {
      if (!encoder->Read({ids.data(), ids.size()}, {}, &count).ok()) state.SkipWithError("a word is too long");
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(text.size()));
}
BENCHMARK(Tokenize)->Name("tokenize");

}  // namespace
}  // namespace tarn::bench
