// How often drafts of a kind were right: the probability that the next one is.
#ifndef TARN_RUNTIME_GENERATION_DRAFT_RECORD_H_
#define TARN_RUNTIME_GENERATION_DRAFT_RECORD_H_

namespace tarn {

// Old drafts count less, and what little was seen says little.
struct DraftRecord {
  float right = 0, all = 0;

  void Add(bool is_right) {
    constexpr float kMemory = 1.0f - 1.0f / 256;
    right = right * kMemory + (is_right ? 1.0f : 0.0f);
    all = all * kMemory + 1.0f;
  }
  // `before`: what is thought of the kind before any draft was seen.
  float share(float before) const {
    constexpr float kPrior = 2;
    return (right + kPrior * before) / (all + kPrior);
  }
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_DRAFT_RECORD_H_
