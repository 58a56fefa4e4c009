// What a sampler carries from token to token, to bytes and back.
#include <cstring>

#include "runtime/text/sampler.h"

namespace tarn {

void Sampler::SetSeed(uint64_t seed) {
  random_ = Pcg32(seed);
  mirostat_ = StartOf(config_);
}

void Sampler::SetPoint(const Point& point) {
  random_ = point.random;
  mirostat_ = point.mirostat;
}

size_t Sampler::state_bytes() const { return sizeof(Point) + edits_.recent().state_bytes(); }

void Sampler::Save(uint8_t* state) const {
  const Point now = point();
  std::memcpy(state, &now, sizeof(now));
  edits_.recent().Save(state + sizeof(now));
}

void Sampler::Restore(const uint8_t* state) {
  Point saved = point();
  std::memcpy(&saved, state, sizeof(saved));
  SetPoint(saved);
  edits_.recent().Restore(state + sizeof(saved));
}

}  // namespace tarn
