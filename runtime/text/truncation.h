// The stages of a sampler that drop tokens. The equations are in sampler.h.
#ifndef TARN_RUNTIME_TEXT_TRUNCATION_H_
#define TARN_RUNTIME_TEXT_TRUNCATION_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/text/candidates.h"

namespace tarn {

// The largest logit, the lower id of equal ones.
// Errors: TARN_INVALID_ARGUMENT (a logit is NaN, or all are -inf).
Status Largest(Span<const float> logits, int32_t* token);

// The least logit that top-n-sigma keeps: max - n * sigma over the logits above -inf.
double SigmaFloor(double n, Span<const float> logits);

// How many candidates CollectTopK() needs room for.
size_t TopKRoom(uint32_t top_k, uint32_t vocab_size);
// The top_k largest of the logits that are at least `floor`, in order if k is less than the vocabulary.
// Errors: as Largest().
Status CollectTopK(Span<const float> logits, uint32_t top_k, double floor, Candidates* candidates);

void KeepTypical(double share, Candidates* candidates);
void KeepTopP(double share, Candidates* candidates);
void KeepMinP(double share, Candidates* candidates);
void ExcludeTopChoices(double threshold, Candidates* candidates);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_TRUNCATION_H_
