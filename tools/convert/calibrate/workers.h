// Pieces of work for several threads.
#ifndef TARN_TOOLS_CONVERT_CALIBRATE_WORKERS_H_
#define TARN_TOOLS_CONVERT_CALIBRATE_WORKERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace tarn::convert {

// piece(i) for every i < count, by the caller and threads - 1 others. `done`, called by the caller's thread alone, gets the number
// of pieces since its last call. What either throws ends the work, and is thrown again when all threads have stopped.
void RunPieces(size_t count, uint32_t threads, const std::function<void(size_t piece)>& piece,
               const std::function<void(size_t pieces)>& done = nullptr);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CALIBRATE_WORKERS_H_
