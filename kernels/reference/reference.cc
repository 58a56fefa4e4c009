// The table of the oracle.
#include "kernels/reference/reference_table.h"

namespace tarn {

const Kernels& Reference() { return kReferenceTable; }

}  // namespace tarn
