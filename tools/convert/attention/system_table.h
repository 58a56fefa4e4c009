// The table of attention variants, for people.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_SYSTEM_TABLE_H_
#define TARN_TOOLS_CONVERT_ATTENTION_SYSTEM_TABLE_H_

#include <string>

#include "kernels/kernels.h"

namespace tarn::convert {

// Markdown, a line per variant. The column SIMD compares `kernels`, a table of an instruction set, with `reference`: how many of
// the kernels that the variant's ops call have code of their own there, and which have not.
std::string SystemTable(const Kernels& kernels, const Kernels& reference);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_SYSTEM_TABLE_H_
