// RandomSlots: the slot that each token writes in ABC-RD, from a counter hash, so that it depends on nothing but position, layer
// and head (MATH 1.8.3): (splitmix64(seed ^ layer << 48 ^ head << 32 ^ t) >> 11) mod n.

#include "runtime/ops/registry.h"
#include "variants/limits.h"

namespace tarn {
namespace {

// Steele, Lea and Flood 2014; the constants of its reference implementation.
uint64_t SplitMix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

class RandomSlotsOp final : public Op {
 public:
  Status Prepare(PrepareContext& context) override {
    TARN_RETURN_IF_ERROR(context.Expect(/*inputs=*/0, /*outputs=*/1, /*tensors=*/0, 0, /*states=*/0));
    TARN_RETURN_IF_ERROR(context.ExpectTokens());
    heads_ = context.output_width(0);
    TARN_RETURN_IF_ERROR(context.ExpectOutput(0, "slots", heads_, format::DType::I32));
    const format::RandomSlots& table = *context.op().attributes_as_RandomSlots();
    if (table.num_slots() < 1 || table.num_slots() > kMaxSlots) {
      return Error(TARN_BAD_FORMAT, "num_slots is %u, 1 to %u expected", table.num_slots(), kMaxSlots);
    }
    slots_ = table.num_slots();
    layer_seed_ = table.seed() ^ (uint64_t{table.layer()} << 48);
    return Ok();
  }

  Status Run(const RunContext& context) override {
    const Operand& slots = context.outputs[0];
    for (size_t sequence = 0; sequence < context.batch; ++sequence) {
      for (size_t token = 0; token < context.tokens; ++token) {
        int32_t* row = static_cast<int32_t*>(slots.data) + (sequence * context.tokens + token) * slots.stride;
        for (uint64_t head = 0; head < heads_; ++head) {
          const uint64_t hash = SplitMix64(layer_seed_ ^ (head << 32) ^ (context.tokens_seen(sequence) + token));
          row[head] = static_cast<int32_t>((hash >> 11) % slots_);
        }
      }
    }
    return Ok();
  }

 private:
  uint32_t heads_;
  uint32_t slots_;
  uint64_t layer_seed_;
};

void Describe(const format::Op& op, char* text, size_t text_bytes) {
  const format::RandomSlots& a = *op.attributes_as_RandomSlots();
  Format(text, text_bytes, "%u slots, seed %llu, layer %u", a.num_slots(), static_cast<unsigned long long>(a.seed()), a.layer());
}

}  // namespace

const OpKind kRandomSlotsOp = MakeOpKind<RandomSlotsOp>("random_slots", Describe);

}  // namespace tarn
