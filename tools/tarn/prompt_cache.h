// A directory of states behind the begins of prompts, so that a prompt, or the begin that several share, is read once.
//
//   file HASH-TOKENS.prompt: [ header | tokens, i32 | snapshot ]      HASH: of model, kernels, chunk and tokens; little-endian
//
// The last token of a prompt is fed alone, after the state that is kept: its logits are not part of a snapshot. States at ends of
// chunks are kept too, the farther from the end of the prompt the fewer: of a prompt that begins as one of those, at most about
// twice the tokens that are new are read. Whether a state comes from a file or not, the session gets its tokens in the same chunks,
// and so the text is the same.
#ifndef TARN_TOOLS_TARN_PROMPT_CACHE_H_
#define TARN_TOOLS_TARN_PROMPT_CACHE_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tarn/model.h"
#include "tools/tarn/sources.h"

namespace tarn_cli {

class PromptCache {
 public:
  // Makes the directory where its parent exists. `model` outlives it. Throws Failure.
  PromptCache(const Model& model, const tarn_session_config& config, std::string directory, uint64_t most_bytes);

  // Gives a session that is at its begin the longest begin of `prompt` that is there, without its last token. Returns how many
  // tokens that are; `prompt` has one at least. A damaged file is removed, and one that cannot be read is not used, with a line on
  // standard error.
  size_t Restore(const Tokens& prompt, tarn_session* session);
  // The session has read `count` tokens of the prompt: notes its state, if it is to be kept.
  void Note(const Tokens& prompt, size_t count, const tarn_session* session);
  // Writes what was noted, and removes files that were not used for the longest time. What fails is a line on standard error.
  void Write();

 private:
  struct Noted {
    std::string path;
    std::vector<char> content;
  };

  bool IsKept(size_t prompt_size, size_t count) const;
  // `checksum`: of the file's header and tokens.
  std::string PathOf(uint64_t checksum, size_t count) const;
  // `of_tokens`: the hash of the first `count` tokens. False: there is no such file, or it cannot be used.
  bool RestoreFrom(uint64_t of_tokens, const Tokens& prompt, size_t count, tarn_session* session) const;
  void WriteOne(const Noted& noted) const;
  void RemoveOld() const;

  const Model& model_;
  const uint32_t chunk_;
  const uint64_t most_snapshot_bytes_;
  const std::string directory_;
  const uint64_t most_bytes_;
  std::deque<Noted> noted_;
  uint64_t noted_bytes_ = 0;  // at most most_bytes_
  bool has_warned_ = false;   // that a state is larger than that
};

// A file of the cache is a snapshot behind the tokens that it has seen.
struct PromptFile {
  uint64_t tokens;
  uint32_t chunk;
  size_t snapshot_begin;
};
// What a file is that begins with `content`; nothing: none of a cache. Throws Failure where it is cut or damaged.
std::optional<PromptFile> ReadPromptFile(std::string_view content);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_PROMPT_CACHE_H_
