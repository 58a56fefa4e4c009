#include "runtime/grammar/grammar.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "runtime/grammar/walk.h"
#include "runtime/text/tokenizer.h"

namespace tarn {
namespace {

constexpr uint32_t kLevelsBesidesToken = 3;  // of the text, of a rule that has ended, and the one that is being made
constexpr uint32_t kMostDepth = 1u << 16, kMostStacks = 1u << 14, kMostStates = 1u << 22;
constexpr uint64_t kMostEntries = 1u << 24;

Status CheckNumber(const char* name, uint32_t value, uint32_t most) {
  if (value >= 1 && value <= most) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "%s is %u, must be in [1, %u]", name, value, most);
}

Status CheckConfig(const GrammarConfig& config) {
  const StackLimits& limits = config.limits;
  TARN_RETURN_IF_ERROR(CheckNumber("max_depth", limits.max_depth, kMostDepth));
  TARN_RETURN_IF_ERROR(CheckNumber("max_stacks", limits.max_stacks, kMostStacks));
  TARN_RETURN_IF_ERROR(CheckNumber("max_states", config.max_states, kMostStates));
  const uint64_t entries = uint64_t{limits.max_depth} * limits.max_stacks;
  if (entries <= kMostEntries) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "max_depth x max_stacks is %llu, must be at most %llu",
               static_cast<unsigned long long>(entries), static_cast<unsigned long long>(kMostEntries));
}

// As in Save(); the stacks come behind it.
struct TextState {
  uint64_t bytes_read, tokens_read, ended;
};

constexpr uint32_t kBits[32] = {1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
                                1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
                                1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
                                1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

// Without shifts and branches, so that compilers make vector code of it.
void ForbidUnset(uint32_t bits, float never, float* logits) {
  for (size_t i = 0; i < 32; ++i) {
    const float logit = logits[i];
    logits[i] = (bits & kBits[i]) != 0 ? logit : never;
  }
}

}  // namespace

Result<Grammar*> Grammar::Create(const TokenizerTables& tables, int32_t end_token, Span<const char> text,
                                 const GrammarConfig& config, const Allocator& allocator) {
  TARN_RETURN_IF_ERROR(CheckConfig(config));
  TARN_ASSIGN_OR_RETURN(Block block, Block::Allocate(allocator, sizeof(Grammar), "grammar"));
  auto* grammar = new (block.bytes().data()) Grammar(tables, end_token, config, allocator);
  grammar->own_block_ = std::move(block);
  const Status status = grammar->Build(text, allocator);
  if (status.ok()) return grammar;
  Destroy(grammar);
  return status;
}

void Grammar::Destroy(Grammar* grammar) {
  if (grammar == nullptr) return;
  const Block block = std::move(grammar->own_block_);  // outlives the object that lies in it
  grammar->~Grammar();
}

Status Grammar::Build(Span<const char> text, const Allocator& allocator) {
  if (tables_.kind == TokenizerKind::kNone) {
    return Error(TARN_UNSUPPORTED, "the model has no tokenizer: a grammar needs the texts of its tokens");
  }
  Effort effort(config_.max_work);
  TARN_RETURN_IF_ERROR(automaton_.Compile(text, config_.max_states, allocator, &effort));
  TARN_RETURN_IF_ERROR(vocabulary_.AddAll(texts_));
  stacks_.emplace(automaton_, config_.limits, vocabulary_.Of(0).max_depth() + kLevelsBesidesToken);
  Bump measure;
  TakeArrays(&measure);
  TARN_ASSIGN_OR_RETURN(work_block_, Block::Allocate(allocator, measure.used(), "stacks of the grammar"));
  Bump bump(work_block_.bytes());
  TakeArrays(&bump);
  const MaskLimits limits = {config_.limits, MaskWords(tables_.vocab_size), config_.max_mask_bytes};
  TARN_RETURN_IF_ERROR(masks_.Build(automaton_, texts_, vocabulary_.Of(0), limits, allocator, &effort));
  return Begin() ? Ok() : stacks_->LimitError().In("before the first byte of the text");
}

void Grammar::TakeArrays(Bump* bump) {
  stacks_->TakeArrays(bump);
  words_ = TakeArray<uint64_t>(*bump, MaskWords(tables_.vocab_size));
  others_ = TakeArray<Stack>(*bump, config_.limits.max_stacks);
}

// False: a limit is exceeded, which Build() finds out.
bool Grammar::Begin() {
  bytes_read_ = 0;
  tokens_read_ = 0;
  ended_ = false;
  return stacks_->BeginText();
}

Grammar::Progress Grammar::progress() const {
  if (ended_ || stacks_->stacks().empty()) return Progress::kComplete;
  return stacks_->last().may_end ? Progress::kMayEnd : Progress::kOpen;
}

// Sets `words_`.
Status Grammar::FindTokens() {
  std::fill(words_.begin(), words_.end(), 0);
  if (end_token_ >= 0 && (ended_ || stacks_->last().may_end)) AllowTokens({&end_token_, 1}, words_.data());
  if (ended_) return Ok();
  size_t others = 0;
  bool fits = true;
  for (const Stack& stack : stacks_->stacks()) {
    const StateMask* mask = masks_.Find(stack.state);
    if (mask == nullptr) {
      others_[others++] = stack;
    } else {
      fits = fits && AddMask(*mask, stack);
    }
  }
  if (fits && others > 0) {
    stacks_->PushSome({others_.data(), others});
    fits = AddWalk(vocabulary_.Of(0));
  }
  stacks_->Return(1);
  if (fits) return Ok();
  return stacks_->LimitError().In("a token behind byte %llu of the text", static_cast<unsigned long long>(bytes_read_));
}

// The tokens that `stack` takes, whose state has a mask. False: a limit is exceeded.
bool Grammar::AddMask(const StateMask& mask, const Stack& stack) {
  if (stacks_->DepthOf(stack.node) + mask.deepest > config_.limits.max_depth) return stacks_->FailAtDepth();
  const Span<const uint64_t> words = masks_.Words(mask);
  for (size_t i = 0; i < words_.size(); ++i) words_[i] |= words[i];
  const TextTree rests = masks_.Rests(mask);
  if (rests.node_count() == 0 || stack.node == Stacks::kBottom) return true;
  if (!stacks_->PushReturn(stack.node)) return false;
  const bool fits = AddWalk(rests);
  stacks_->Return(1);
  return fits;
}

// The tokens of `tree` that the last level takes. False: a limit is exceeded.
bool Grammar::AddWalk(const TextTree& tree) {
  return Walk(tree, stacks_->NextBytes(), &*stacks_, [&](uint32_t node) { AllowTokens(tree.TokensOf(node), words_.data()); });
}

Status Grammar::Apply(Span<float> logits) {
  TARN_RETURN_IF_ERROR(FindTokens());
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  uint64_t any = 0;
  for (size_t i = 0; i < words_.size(); ++i) {
    const uint64_t word = words_[i];
    any |= word;
    const size_t begin = i * 64, end = std::min(begin + 64, logits.size());
    if (word == ~uint64_t{0}) continue;
    if (word == 0) {
      std::fill(logits.begin() + begin, logits.begin() + end, kNever);
      continue;
    }
    if (end - begin == 64) {
      ForbidUnset(static_cast<uint32_t>(word), kNever, &logits[begin]);
      ForbidUnset(static_cast<uint32_t>(word >> 32), kNever, &logits[begin + 32]);
      continue;
    }
    for (size_t token = begin; token < end; ++token) {
      logits[token] = (word >> (token - begin) & 1) != 0 ? logits[token] : kNever;
    }
  }
  if (any != 0) return Ok();
  const auto read = static_cast<unsigned long long>(bytes_read_);
  if (progress() == Progress::kComplete) {
    return Error(TARN_INVALID_ARGUMENT, "the grammar is complete after %llu bytes, and the model has no end token", read);
  }
  return Error(TARN_INVALID_ARGUMENT, "no token of the model goes on behind byte %llu of the text as the grammar wants", read);
}

Status Grammar::Accept(int32_t token) {
  if (end_token_ >= 0 && token == end_token_ && (ended_ || stacks_->last().may_end)) {
    ended_ = true;
    ++tokens_read_;
    return Ok();
  }
  const Span<const uint8_t> text = texts_.Of(token);
  if (text.empty() || ended_) return Refuse(token);
  for (const uint8_t byte : text) {
    const bool fits = stacks_->Step(byte);
    if (fits && (!stacks_->stacks().empty() || stacks_->last().may_end)) continue;
    stacks_->Return(1);
    if (fits) return Refuse(token);
    return stacks_->LimitError().In("token %d behind byte %llu of the text", token, static_cast<unsigned long long>(bytes_read_));
  }
  stacks_->KeepLast();
  bytes_read_ += text.size();
  ++tokens_read_;
  return Ok();
}

Status Grammar::Refuse(int32_t token) const {
  return Error(TARN_INVALID_ARGUMENT, "token %d does not go on behind byte %llu of the text as the grammar wants", token,
               static_cast<unsigned long long>(bytes_read_));
}

size_t Grammar::state_bytes() const { return sizeof(TextState) + stacks_->LevelBytes(); }

void Grammar::Save(uint8_t* state) const {
  const TextState text = {bytes_read_, tokens_read_, ended_ ? 1u : 0u};
  std::memcpy(state, &text, sizeof(text));
  stacks_->SaveLevel(state + sizeof(text));
}

void Grammar::Restore(const uint8_t* state) {
  TextState text;
  std::memcpy(&text, state, sizeof(text));
  bytes_read_ = text.bytes_read;
  tokens_read_ = text.tokens_read;
  ended_ = text.ended != 0;
  stacks_->RestoreLevel(state + sizeof(text));
}

uint64_t Grammar::bytes() const {
  return own_block_.bytes().size() + work_block_.bytes().size() + automaton_.bytes() + vocabulary_.bytes() + masks_.bytes();
}

}  // namespace tarn
