// DenseShortlist: y = x W^T + b for the tokens that can follow the source, -infinity for all others. Only the rows of W for
// these tokens are read, where the model file has them.
#include <algorithm>
#include <limits>

#include "kernels/dense/listed.h"
#include "runtime/ops/dense/dense_op.h"
#include "runtime/ops/dense/token_set.h"
#include "runtime/ops/registry.h"
#include "runtime/ops/scratch.h"

namespace tarn {
namespace {

// Tokens of the vocabulary that a thread takes at a time; whole bytes of the set.
constexpr size_t kPiece = 1024;

class DenseShortlistOp final : public DenseOp<DenseShortlistOp, /*kStates=*/1> {
 public:
  Status Take(PrepareContext& context, const DenseSpec& spec) {
    TARN_RETURN_IF_ERROR(context.ExpectStage(Stage::kDecode));
    if (spec.outputs != context.target_vocab_size()) {
      return Error(TARN_BAD_FORMAT, "y has %zu columns, vocab_size is %u", spec.outputs, context.target_vocab_size());
    }
    TARN_RETURN_IF_ERROR(ExpectTokenSet(context, context.target_vocab_size()));
    spec_ = spec;
    spec_.in_place = true;
    context.ReportDense(spec_);
    threads_ = context.limits().threads;
    thread_bytes_ = ListedOutputBytes(spec_, spec_.max_rows / context.limits().sources());
    context.AddWork({spec_.max_rows, spec_.outputs, spec_.inputs});
    context.RequestScratch(CountScratch([&](Scratch* scratch) { Lay(scratch); }));
    return Ok();
  }

  Status Run(const RunContext& context) override {
    Scratch scratch(context.scratch);
    const Layout layout = Lay(&scratch);
    const float* const x = context.inputs[0].f32();
    const size_t rows = context.rows(axis_), sources = context.batch / context.beams,
                 pieces = (spec_.outputs + kPiece - 1) / kPiece;
    for (size_t row = 0; row < rows; ++row) QuantizeListed(spec_, x, row, layout.inputs);
    ListedRows of_source{x, context.outputs[0].f32(), 0, rows / sources};
    uint64_t listed = 0;
    for (size_t i = 0; i < sources; ++i) listed += Count(context.states[0].bytes(context.source_of(i)));
    const uint64_t cost = of_source.rows * (listed * spec_.inputs + sources * spec_.outputs);
    context.threads->ParallelFor(sources * pieces, cost, [&](size_t item, size_t thread) {
      ListedRows some = of_source;
      some.first_row = item / pieces * some.rows;
      uint8_t* const memory = layout.threads[thread].Take<uint8_t>(thread_bytes_);
      RunPiece(some, context.states[0].bytes(context.source_of(item / pieces)), item % pieces * kPiece, layout.inputs, memory);
    });
    return Ok();
  }

 private:
  struct Layout {
    uint8_t* inputs;
    ScratchParts threads;
  };

  Layout Lay(Scratch* scratch) const {
    Layout layout{};
    layout.inputs = scratch->Take<uint8_t>(ListedInputBytes(spec_));
    layout.threads = scratch->TakeParts(threads_, Bump::PieceBytes(thread_bytes_));
    return layout;
  }

  uint32_t Count(const uint8_t* set) const {
    uint32_t count = 0;
    for (size_t i = 0; i < TokenSetBytes(static_cast<uint32_t>(spec_.outputs)); ++i) {
      count += static_cast<uint32_t>(__builtin_popcount(set[i]));
    }
    return count;
  }

  // The logits of tokens [begin, begin + kPiece).
  void RunPiece(const ListedRows& rows, const uint8_t* set, size_t begin, uint8_t* inputs, uint8_t* memory) const {
    const size_t end = std::min(begin + kPiece, spec_.outputs);
    for (size_t r = 0; r < rows.rows; ++r) {
      float* const y = rows.y + (rows.first_row + r) * spec_.y_stride;
      std::fill(y + begin, y + end, -std::numeric_limits<float>::infinity());
    }
    uint32_t list[kMostListed];
    size_t count = 0;
    const auto multiply = [&] {
      if (count > 0) MultiplyListed(spec_, rows, list, count, inputs, memory);
      count = 0;
    };
    for (size_t byte = begin; byte < end; byte += 8) {
      for (unsigned bits = set[byte / 8]; bits != 0; bits &= bits - 1) {
        const size_t token = byte + static_cast<size_t>(__builtin_ctz(bits));
        if (token >= end) break;  // a snapshot may say anything
        list[count++] = static_cast<uint32_t>(token);
        if (count == kMostListed) multiply();
      }
    }
    multiply();
  }

  DenseSpec spec_;
  uint32_t threads_;
  uint64_t thread_bytes_;
};

}  // namespace

const OpKind kDenseShortlistOp = MakeOpKind<DenseShortlistOp>("dense_shortlist");

}  // namespace tarn
