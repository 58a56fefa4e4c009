#include "runtime/ops/attention/row_blocks.h"

#include "runtime/ops/attention/attributes.h"

namespace tarn {

Status BoundRows(PrepareContext& context, Axis axis, uint64_t capacity) {
  TARN_RETURN_IF_ERROR(ExpectAtLeast("capacity", capacity, 1));
  if (axis.time == format::Time::Fixed) {
    if (axis.fixed_rows <= capacity) return Ok();
    return Error(TARN_BAD_FORMAT, "capacity is %llu, there are %u rows", static_cast<unsigned long long>(capacity),
                 axis.fixed_rows);
  }
  context.BoundTokens(capacity);  // and no more rows of time Outputs are ever asked for than the longest source has
  return Ok();
}

}  // namespace tarn
