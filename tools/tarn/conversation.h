// A text that a user and a model write in turns: a session whose state carries over, and the way back.
#ifndef TARN_TOOLS_TARN_CONVERSATION_H_
#define TARN_TOOLS_TARN_CONVERSATION_H_

#include <tarn/tarn.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/tarn/generation.h"
#include "tools/tarn/model.h"
#include "tools/tarn/prompt_cache.h"
#include "tools/tarn/run.h"
#include "tools/tarn/turn.h"

namespace tarn_cli {

class Conversation {
 public:
  // All three outlive it. Ctrl-C does not cancel calls of the session: generation asks between them, so that the state is whole.
  Conversation(const RunOptions& options, const Model& model, TokenWriter* writer);

  // Feeds a turn and writes the answer of the model. Where it ends, the state has all of the text. A turn that cannot be read to
  // its end, or whose answer fails, is taken back. Throws Failure: a turn that does not fit the context; no output.
  GenerationStats Say(const Tokens& turn, bool echo = false);
  // Takes the last answer back and writes another one, drawn with `seed`, or with the next one. Throws Failure: there is none.
  GenerationStats Regenerate(std::optional<uint64_t> seed);
  // Takes back the last turn, Reset() or Load(), as long as it is kept. Throws Failure: there is none.
  void Undo();
  void Reset();
  // The state as a snapshot in a file. Throw Failure; then nothing has changed.
  void Save(const std::string& path) const;
  void Load(const std::string& path);

  TurnPlace place() const { return place_; }  // of the next turn
  const tarn_session_config& config() const { return config_; }
  uint64_t tokens() const { return tarn_session_tokens(session_.get()); }
  uint64_t seed() const { return seed_; }              // of the last answer
  size_t turn_tokens() const { return turn_tokens_; }  // of the turn before it
  size_t kept() const { return checkpoints_.size(); }
  uint64_t kept_bytes() const;

 private:
  // The text as it was at a time, and what was said then.
  struct Checkpoint {
    std::vector<uint8_t> snapshot;
    TokenRing history;
    TurnPlace place;
    std::optional<Tokens> turn;  // none: a reset, or a state that was loaded
  };

  using Sampler = std::unique_ptr<tarn_sampler, void (*)(tarn_sampler*)>;

  Sampler MakeSampler() const;  // with seed_
  Checkpoint Now(std::optional<Tokens> turn) const;
  void Keep(Checkpoint checkpoint);
  void GoBackTo(const Checkpoint& checkpoint);
  GenerationStats Answer(const Tokens& turn, bool echo);
  void TakeBack();
  void FeedLast(const GenerationStats& stats);
  void Restore(const std::vector<uint8_t>& snapshot);

  const RunOptions& options_;
  const Model& model_;
  const std::vector<int32_t> end_tokens_;
  TokenWriter* writer_;
  tarn_session_config config_;
  tarn_sampler_config chain_;
  Session session_;
  uint64_t seed_;
  uint64_t next_seed_;
  size_t turn_tokens_ = 0;
  std::optional<PromptCache> cache_;
  TokenRing history_;  // what a sampler has to know of the text
  TurnPlace place_ = TurnPlace::kBegin;
  std::deque<Checkpoint> checkpoints_;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_CONVERSATION_H_
