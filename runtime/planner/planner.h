// Lifetimes -> offsets. A pure function: it knows no model, no op and no memory.
//
//   op          0    1    2    3    4
//   offset 0   [ A       ][ C       ]        buffers that never live at the same time share bytes
//          n        [ B            ]
//
// Greedy by size: the largest buffer first, each at the lowest offset that is free during its whole life (Pisarchyk & Lee,
// "Efficient Memory Management for Deep Neural Net Inference", 2020).
#ifndef TARN_RUNTIME_PLANNER_PLANNER_H_
#define TARN_RUNTIME_PLANNER_PLANNER_H_

#include <cstdint>

#include "core/result.h"
#include "core/span.h"

namespace tarn {

struct PlannedBuffer {
  uint64_t bytes;   // in; 0: needs no memory
  uint32_t first;   // in: the op that writes it
  uint32_t last;    // in: the last op that reads it, >= first
  uint64_t offset;  // out: a multiple of kAlignment
  // The planner's own.
  uint32_t index;
  uint32_t next;
};

// Sets every buffer's offset and returns the bytes of the arena that holds them all. The order of the buffers stays. At most
// quadratic in their number. Errors: TARN_OUT_OF_MEMORY where the sum of the sizes does not fit 63 bits.
Result<uint64_t> PlanArena(Span<PlannedBuffer> buffers);

}  // namespace tarn

#endif  // TARN_RUNTIME_PLANNER_PLANNER_H_
