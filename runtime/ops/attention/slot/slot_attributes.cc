#include "runtime/ops/attention/slot/slot_attributes.h"

#include <iterator>

#include "runtime/ops/attention/attributes.h"

namespace tarn {

Result<SlotAttributes> ReadSlotAttributes(const format::SlotMemory& table) {
  SlotAttributes a;
  a.num_slots = table.num_slots();
  TARN_RETURN_IF_ERROR(ExpectAtLeast("num_slots", a.num_slots, 1, kMaxSlots));
#define TARN_READ_CHOICE(type, name, list, fallback)                        \
  TARN_RETURN_IF_ERROR(ExpectChoice(#name, table.name(), std::size(list))); \
  a.name = static_cast<type>(table.name());
#define TARN_READ_SIZE(type, name, ...) a.name = table.name();
#define TARN_READ(name, ...) a.name = table.name();
#define TARN_READ_FLAG(name) a.name = table.name();
  TARN_SLOT_ATTRIBUTES(TARN_READ_CHOICE, TARN_READ_SIZE, TARN_READ, TARN_READ_FLAG)
#undef TARN_READ_CHOICE
#undef TARN_READ_SIZE
#undef TARN_READ
#undef TARN_READ_FLAG
#define TARN_IGNORE(...)
#define TARN_CHECK_SIZE(type, name, most, readers) \
  if (a.reads(readers)) TARN_RETURN_IF_ERROR(ExpectAtLeast(#name, a.name, 1, most));
  TARN_SLOT_ATTRIBUTES(TARN_IGNORE, TARN_CHECK_SIZE, TARN_IGNORE, TARN_IGNORE)
#undef TARN_CHECK_SIZE
#undef TARN_IGNORE
  TARN_RETURN_IF_ERROR(ExpectNumbers(a, kSlotNumbers));
  const char* conflict = a.Conflict();
  if (conflict != nullptr) return Error(TARN_BAD_FORMAT, "%s", conflict);
  return a;
}

Result<const uint32_t*> ReadSlotPositions(const format::SlotMemory& table, const SlotAttributes& a) {
  const uint32_t* none = nullptr;
  if (!a.reads(kReadsPositions)) return none;
  const auto* positions = table.positions();
  TARN_RETURN_IF_ERROR(ExpectAscending("positions", positions, a.num_slots, a.num_slots));
  return positions->data();
}

Status ExpectControlInputs(const PrepareContext& context, const SlotAttributes& a, uint32_t index, uint64_t kv_heads) {
  if (a.has_index()) return context.ExpectInput(index, "slots", kv_heads, format::DType::I32);
  for (uint32_t i = 0; i < a.control_inputs(); ++i) {
    TARN_RETURN_IF_ERROR(context.ExpectInput(index + i, i == 0 ? "control" : "value_control", kv_heads * a.num_slots));
  }
  return Ok();
}

Status ExpectSchedules(const PrepareContext& context, const SlotAttributes& a, const float* (&schedules)[2]) {
  for (uint32_t i = 0; i < a.schedules(); ++i) {
    TARN_ASSIGN_OR_RETURN(schedules[i], context.ExpectTensor(i, i == 0 ? "schedule" : "value_schedule", {a.max_len, a.num_slots}));
  }
  return Ok();
}

void ReadSlotIndex(const int32_t* from, size_t stride, size_t tokens, size_t slots, int32_t* index) {
  for (size_t t = 0; t < tokens; ++t) {
    const uint32_t slot = static_cast<uint32_t>(from[t * stride]);
    index[t] = static_cast<int32_t>(slot < slots ? slot : slots - 1);
  }
}

void DescribeSlots(const format::SlotMemory& table, char* text, size_t text_bytes) {
  const char* variant = table.system() == nullptr ? "unnamed" : table.system()->c_str();
  const Result<SlotAttributes> read = ReadSlotAttributes(table);
  if (!read.ok()) {
    Format(text, text_bytes, "%s: %s", variant, read.status().message());
    return;
  }
  const SlotAttributes& a = read.value();
  const format::Heads& heads = *table.heads();
  char control[96] = "";
  if (a.reads(kReadsActivation)) {
    Format(control, sizeof(control), " %s %s, clamp [%g, %g]", kSlotActivationNames[static_cast<size_t>(a.activation)],
           kSlotNormalizationNames[static_cast<size_t>(a.normalization)], static_cast<double>(a.logit_min),
           static_cast<double>(a.logit_max));
  }
  Format(text, text_bytes, "%s: %u slots, control %s%s, heads %u/%u x %u/%u", variant, a.num_slots, a.info().name, control,
         heads.heads(), heads.kv_heads(), heads.head_dim(), heads.value_dim());
}

}  // namespace tarn
