// Shortlist: which tokens can follow a source, by a list for each of its tokens and one for every source. The set is kept as bits,
// so that it has a size that no source changes, and no number in it is an index.
#include <algorithm>
#include <cstring>

#include "runtime/ops/dense/token_set.h"
#include "runtime/ops/registry.h"

namespace tarn {
namespace {

constexpr uint32_t kMultiple = 8;  // of tokens, as in Marian

class ShortlistOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.ExpectStage(Stage::kEncode));
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/1, /*outputs=*/0, /*tensors=*/2, 2, /*states=*/1));
    TARN_RETURN_IF_ERROR(context.ExpectInput(0, "ids", 1, format::DType::I32));
    if (!context.is_program_input(0)) return Error(TARN_BAD_FORMAT, "ids: token ids from the caller expected, not an op's result");
    vocab_ = context.target_vocab_size();
    TARN_RETURN_IF_ERROR(ExpectTokenSet(context, vocab_));
    return ReadLists(context);
  }

  Status Run(const RunContext& context) override {
    uint8_t* const set = context.states[0].bytes(context.source);
    std::memset(set, 0, TokenSetBytes(vocab_));
    uint32_t count = 0;
    const auto add = [&](uint32_t token) {
      const uint8_t bit = static_cast<uint8_t>(1u << token % 8);
      if ((set[token / 8] & bit) != 0) return;
      set[token / 8] |= bit;
      ++count;
    };
    const auto add_list = [&](size_t list) {
      for (int32_t i = offsets_[list]; i < offsets_[list + 1]; ++i) add(static_cast<uint32_t>(targets_[i]));
    };
    for (size_t row = 0; row < context.token_rows; ++row) {
      add_list(static_cast<size_t>(context.inputs[0].i32()[row * context.inputs[0].stride]));
    }
    add_list(words_);
    for (uint32_t token = 0; token < vocab_ && count % kMultiple != 0; ++token) add(token);
    return Ok();
  }

 private:
  Status ReadLists(PrepareContext& context) {
    words_ = context.vocab_size();
    const uint32_t count = context.tensor(1).shape.dims[0];
    TARN_ASSIGN_OR_RETURN(offsets_, context.ExpectIntegers(0, "offsets", {uint64_t{words_} + 2}));
    TARN_ASSIGN_OR_RETURN(targets_, context.ExpectIntegers(1, "targets", {count}));
    uint32_t longest = 0;
    for (uint32_t i = 0, least = 0; i < words_ + 2; ++i) {
      const uint32_t offset = static_cast<uint32_t>(offsets_[i]);
      const uint32_t most = i == 0 ? 0 : i <= words_ ? count - 1 : count;  // the last list is not empty
      const uint32_t lowest = i == words_ + 1 ? count : least;
      if (offset < lowest || offset > most) {
        return Error(TARN_BAD_FORMAT, "offsets: element %u is %d, %u to %u expected", i, offsets_[i], lowest, most);
      }
      longest = std::max(longest, offset - least);
      least = offset;
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (static_cast<uint32_t>(targets_[i]) < vocab_) continue;
      return Error(TARN_BAD_FORMAT, "targets: element %u is %d, 0 to %u expected", i, targets_[i], vocab_ - 1);
    }
    context.AddWork({uint64_t{context.limits().max_source} + 1, uint64_t{longest} + 1});
    context.AddWork({vocab_});
    return Ok();
  }

  uint32_t vocab_, words_;  // of target and source
  const int32_t* offsets_ = nullptr;
  const int32_t* targets_ = nullptr;
};

}  // namespace

const OpKind kShortlistOp = MakeOpKind<ShortlistOp>("shortlist");

}  // namespace tarn
