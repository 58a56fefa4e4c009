// The table of column_data.cc, which tools/dev/unicode_tables.py writes.
#ifndef TARN_TOOLS_TARN_COLUMN_DATA_H_
#define TARN_TOOLS_TARN_COLUMN_DATA_H_

#include <cstddef>
#include <cstdint>

namespace tarn_cli {

// Columns of characters on a terminal, in runs by code point: the first one of the run * 4 + its columns.
extern const uint32_t kColumnRuns[];
extern const size_t kColumnRunCount;

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_COLUMN_DATA_H_
