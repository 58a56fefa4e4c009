// Fully connected layers of which a run computes some outputs only, by a list. Weights are read where the model file has them: rows
// of W that lie apart are copied to a place in the cache, and multiplied there by the kernels of the portable side. An
// output has the bits that it has in a whole layer on that side.
#ifndef TARN_KERNELS_DENSE_LISTED_H_
#define TARN_KERNELS_DENSE_LISTED_H_

#include "kernels/dense/dense.h"

namespace tarn {

// Of one call: enough for every tile of the kernels to be full, and few enough for the first cache.
constexpr size_t kMostListed = 64;

// Rows [first_row, first_row + rows) of x and y.
struct ListedRows {
  const float* x;
  float* y;  // [.., outputs]: not listed ones are not written
  size_t first_row, rows;
};

// Memory that all threads share, for rows of x as the weights want them; at most spec.max_rows of them.
uint64_t ListedInputBytes(const DenseSpec& spec);
// Memory of one thread, for calls with `rows` rows at most.
uint64_t ListedOutputBytes(const DenseSpec& spec, uint64_t rows);

// Row `row` of x into `inputs`; before outputs of this row are computed.
void QuantizeListed(const DenseSpec& spec, const float* x, size_t row, uint8_t* inputs);
// The outputs `list` [count], ascending, 1 <= count <= kMostListed. `memory` is aligned to 64, as `inputs` is.
void MultiplyListed(const DenseSpec& spec, const ListedRows& rows, const uint32_t* list, size_t count, uint8_t* inputs,
                    uint8_t* memory);

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_LISTED_H_
