// Any text as a grammar, and any bytes as a text of it: refused with words, or a byte is taken exactly where the mask allows it.
//
//   [ grammar | NUL | text ]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/grammar/grammar_fixture.h"

namespace {

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void Follow(tarn::Grammar* grammar, const std::string& text) {
  for (const char byte : text) {
    std::vector<bool> allowed;
    const tarn::Status status = tarn::test::Allowed(grammar, &allowed);
    if (!status.ok() && status.message()[0] == '\0') Fail("no words");
    const int32_t token = static_cast<uint8_t>(byte);
    const bool taken = grammar->Accept(token).ok();
    if (status.ok() && taken != allowed[static_cast<size_t>(token)]) Fail("the mask and the grammar differ");
    if (!taken) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), std::min<size_t>(size, 1u << 16));
  const size_t end = std::min(input.find('\0'), input.size());
  const tarn::GrammarConfig config = {{16, 16}, 2048};
  const tarn::Result<tarn::Grammar*> grammar = tarn::test::CreateGrammar(input.substr(0, end), tarn::test::ByteTokens(), config);
  if (!grammar.ok()) {
    if (grammar.status().message()[0] == '\0') Fail("no words");
    return 0;
  }
  Follow(grammar.value(), input.substr(std::min(end + 1, input.size())).substr(0, 256));
  tarn::Grammar::Destroy(grammar.value());
  return 0;
}
