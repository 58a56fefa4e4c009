// The rows of tarn bench as text, each as soon as it is there.
#ifndef TARN_TOOLS_TARN_BENCH_REPORT_H_
#define TARN_TOOLS_TARN_BENCH_REPORT_H_

#include <string>
#include <vector>

#include "tools/tarn/bench.h"

namespace tarn_cli {

enum class BenchFormat { kMarkdown, kCsv, kJson, kJsonLines };

// Header, rows and footer in this order make the whole text.
std::string BenchHeader(BenchFormat format, const MemoryBandwidth& memory);
std::string BenchRowText(BenchFormat format, const BenchRow& row, bool first);
std::string BenchFooter(BenchFormat format, bool any);

// A table per row that has a profile: time by kind of op.
std::string ProfileText(const std::vector<BenchRow>& rows);

// Tokens/s and memory against depth, a line per model: an SVG picture of the first decode test, or the first test if there is none,
// with the number of threads that it has first.
std::string BenchPlot(const std::vector<BenchRow>& rows);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_BENCH_REPORT_H_
