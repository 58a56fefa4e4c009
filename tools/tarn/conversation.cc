#include "tools/tarn/conversation.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tools/common/output_file.h"
#include "tools/common/signals.h"
#include "tools/tarn/error.h"
#include "tools/tarn/report.h"
#include "tools/tarn/state_file.h"

namespace tarn_cli {
namespace {

// As many as fit into both, and always one.
constexpr size_t kMostCheckpoints = 32;
constexpr uint64_t kMostCheckpointBytes = uint64_t{256} << 20;

constexpr uint32_t kDefaultDryLastN = 1024;  // as the library has it

// The tokens that the stages of a sampler look back on.
size_t LookBack(const tarn_sampler_config& chain) {
  return std::max(chain.repeat_last_n, chain.dry_last_n != 0 ? chain.dry_last_n : kDefaultDryLastN);
}

bool EndsLine(const Model& model, int32_t token) {
  std::vector<char> text(tarn_max_piece_bytes(model.get()));
  tarn_text_decoder decoder = {};
  tarn_error error;
  size_t size = 0;
  Check(tarn_text_decode(model.get(), &decoder, token, text.data(), text.size(), &size, &error), error);
  return size > 0 && text[size - 1] == '\n';
}

}  // namespace

Conversation::Conversation(const RunOptions& options, const Model& model, TokenWriter* writer)
    : options_(options),
      model_(model),
      end_tokens_(EndTokens(model, options.turns)),
      writer_(writer),
      config_(SessionConfig(options.session)),
      chain_(options.sampling.Config()),
      session_(CreateSession(model, config_)),
      seed_(chain_.seed),
      next_seed_(chain_.seed),
      history_(LookBack(chain_)) {
  tarn::tools::DoNotCancel(session_.get());
  if (!options.prompt_cache.empty()) cache_.emplace(model, config_, options.prompt_cache, options.prompt_cache_bytes);
  MakeSampler();  // what is wrong with its options shows now
}

Conversation::Sampler Conversation::MakeSampler() const {
  tarn_sampler_config chain = chain_;
  chain.seed = seed_;
  tarn_error error;
  tarn_sampler* created = nullptr;
  Check(tarn_sampler_create(model_.info().vocab_size, &chain, &created, &error), error);
  return Sampler(created, tarn_sampler_destroy);
}

GenerationStats Conversation::Say(const Tokens& turn, bool echo) {
  if (turn.empty()) throw Failure("the turn has no tokens: the tokenizer leaves out all of its characters");
  const uint64_t room = model_.info().max_context - tokens();
  if (turn.size() > room) {
    throw Failure(Format("the turn has %zu tokens, the context has room for %llu of its %llu: /undo or /reset", turn.size(),
                         static_cast<unsigned long long>(room), static_cast<unsigned long long>(model_.info().max_context)));
  }
  Keep(Now(turn));
  return Answer(turn, echo);
}

GenerationStats Conversation::Regenerate(std::optional<uint64_t> seed) {
  if (checkpoints_.empty() || !checkpoints_.back().turn) throw Failure("there is no answer to take back");
  GoBackTo(checkpoints_.back());
  if (seed) next_seed_ = *seed;
  return Answer(Tokens(*checkpoints_.back().turn), /*echo=*/false);
}

GenerationStats Conversation::Answer(const Tokens& turn, bool echo) {
  seed_ = next_seed_++;
  turn_tokens_ = turn.size();
  const Sampler sampler = MakeSampler();
  history_.Visit([&](int32_t token) { tarn_sampler_accept(sampler.get(), token); });

  GenerationOptions generation;
  generation.prompt = turn;
  generation.chunk = config_.max_chunk;
  generation.max_output_tokens = options_.max_output_tokens;
  generation.max_context = model_.info().max_context - tokens();
  generation.end_tokens = end_tokens_;
  generation.echo = echo;
  generation.progress = !options_.quiet && isatty(STDERR_FILENO) == 1;
  generation.history = &history_;
  if (tokens() == 0 && cache_) generation.cache = &*cache_;
  try {
    GenerationStats stats = Generate(generation, session_.get(), sampler.get(), writer_);
    if (cache_) cache_->Write();
    if (stats.stop == StopReason::kError || stats.prompt_read < turn.size()) {
      TakeBack();
    } else {
      FeedLast(stats);
    }
    return stats;
  } catch (const Failure&) {
    TakeBack();
    throw;
  }
}

// The token that was drawn last is part of the text, and not of the state yet.
void Conversation::FeedLast(const GenerationStats& stats) {
  place_ = TurnPlace::kInLine;
  if (!stats.unfed_token) return;
  const bool has_ended = stats.stop == StopReason::kEos;
  if (has_ended && options_.turns.chat) return;  // the next turn begins with the end of this one
  if (has_ended) history_.Add(*stats.unfed_token);
  if (EndsLine(model_, *stats.unfed_token)) place_ = TurnPlace::kAfterLineBreak;
  if (tokens() == model_.info().max_context) return;  // it has no place: no turn has one any more
  tarn_error error;
  Check(tarn_session_step(session_.get(), &*stats.unfed_token, nullptr, &error), error);
}

void Conversation::Undo() {
  if (checkpoints_.empty()) throw Failure("there is nothing to take back");
  TakeBack();
}

void Conversation::TakeBack() {
  GoBackTo(checkpoints_.back());
  checkpoints_.pop_back();
}

void Conversation::Reset() {
  Keep(Now(std::nullopt));
  tarn_session_reset(session_.get());
  history_.Clear();
  place_ = TurnPlace::kBegin;
}

void Conversation::Save(const std::string& path) const {
  tarn::tools::OutputFile file(path, RunInputs(options_));
  SaveState(session_.get(), options_.compact_state, &file);
}

void Conversation::Load(const std::string& path) {
  Checkpoint before = Now(std::nullopt);
  LoadState(path, model_, config_, session_.get());
  Keep(std::move(before));
  history_.Clear();
  place_ = tokens() == 0 ? TurnPlace::kBegin : TurnPlace::kInLine;
}

uint64_t Conversation::kept_bytes() const {
  uint64_t bytes = 0;
  for (const Checkpoint& checkpoint : checkpoints_) bytes += checkpoint.snapshot.size();
  return bytes;
}

Conversation::Checkpoint Conversation::Now(std::optional<Tokens> turn) const {
  return {Snapshot(session_.get()), history_, place_, std::move(turn)};
}

void Conversation::Keep(Checkpoint checkpoint) {
  checkpoints_.push_back(std::move(checkpoint));
  while (checkpoints_.size() > kMostCheckpoints || (checkpoints_.size() > 1 && kept_bytes() > kMostCheckpointBytes)) {
    checkpoints_.pop_front();
  }
}

void Conversation::GoBackTo(const Checkpoint& checkpoint) {
  Restore(checkpoint.snapshot);
  history_ = checkpoint.history;
  place_ = checkpoint.place;
}

void Conversation::Restore(const std::vector<uint8_t>& snapshot) {
  tarn_error error;
  Check(tarn_session_restore(session_.get(), snapshot.data(), snapshot.size(), &error), error);
}

}  // namespace tarn_cli
