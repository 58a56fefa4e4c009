// Time as it is measured here.
#ifndef TARN_TOOLS_TARN_CLOCK_H_
#define TARN_TOOLS_TARN_CLOCK_H_

#include <chrono>

namespace tarn_cli {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_CLOCK_H_
