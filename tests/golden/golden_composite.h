// Systems that are no attention op of their own: graphs of several ops over whole sequences, and the causal convolution.
#ifndef TARN_TESTS_GOLDEN_GOLDEN_COMPOSITE_H_
#define TARN_TESTS_GOLDEN_GOLDEN_COMPOSITE_H_

#include "tests/golden/golden_model.h"

namespace tarn::golden {

// The program of the system, with the converter's own functions. False: it is none of these.
bool AddComposite(const File& file, ModelBuilder* model);

}  // namespace tarn::golden

#endif  // TARN_TESTS_GOLDEN_GOLDEN_COMPOSITE_H_
