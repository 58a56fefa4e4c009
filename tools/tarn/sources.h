// What a model that encodes is given: texts or ids, one source a line, in batches.
#ifndef TARN_TOOLS_TARN_SOURCES_H_
#define TARN_TOOLS_TARN_SOURCES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tarn/files.h"
#include "tools/tarn/model.h"

namespace tarn_cli {

using Tokens = std::vector<int32_t>;

// "1,2,3" of an option of `command`. Throws UsageError.
Tokens IdsOption(const std::string& text, const std::string& command, const std::string& option);

// Of ids that `option` of `command` gives. Throws UsageError with the first one that is not below `vocab_size`.
void RequireIds(const Tokens& tokens, const Model& model, uint32_t vocab_size, const std::string& command,
                const std::string& option);

// "1,2,3" or "1 2 3"; `what` is for messages. Throws Failure.
Tokens ParseIds(std::string_view text, const std::string& what);
// The same, one id after the other, until `take` answers false.
void VisitIds(std::string_view text, const std::string& what, const std::function<bool(int32_t)>& take);

// The ids of a text; for a model without tokenizer the text is ids, between spaces or commas. `what` is for messages: "-p",
// "FILE: line 3". `plain`: special tokens in a text are text like any other. Throws Failure, also if there are none.
Tokens TextTokens(const Model& model, const std::string& text, const std::string& what, bool plain = false);
// The same, as a source: ids outside of the vocabulary and more of them than the model holds are a Failure too.
Tokens SourceTokens(const Model& model, const std::string& text, const std::string& what, bool plain = false);

// A line of a file, without its end (\n or \r\n).
struct Line {
  std::string what;  // "FILE: line 3"
  std::string text;
};
std::vector<Line> ReadLines(const std::string& path);  // throws Failure, also if there are none
// The same, one line after the other, until `take` answers false; those of standard input as they come.
void VisitLines(const std::string& path, const std::function<bool(Line)>& take);

// Cuts a line at its first tab: what stands before it goes to `*before`. Without a tab nothing changes, and the answer is false.
bool CutAtTab(Line* line, std::string* before);

uint32_t LongestOf(const std::vector<Tokens>& sources);

// A part of many sources as the library takes them: padded rows. A batch that is not full ends with its last source again and
// again.
class SourceBatch {
 public:
  // Sources from `begin` on; `batch` rows.
  SourceBatch(const std::vector<Tokens>& sources, size_t begin, uint32_t batch);

  const int32_t* tokens() const { return tokens_.data(); }
  size_t stride() const { return stride_; }
  const size_t* lengths() const { return lengths_.data(); }
  uint32_t count() const { return count_; }  // sources that are no repetition

 private:
  std::vector<int32_t> tokens_;
  size_t stride_ = 0;
  std::vector<size_t> lengths_;
  uint32_t count_ = 0;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_SOURCES_H_
