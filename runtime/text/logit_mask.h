// Which tokens a sampler may pick, where something outside of it knows: a grammar.
#ifndef TARN_RUNTIME_TEXT_LOGIT_MASK_H_
#define TARN_RUNTIME_TEXT_LOGIT_MASK_H_

#include <cstdint>

#include "core/span.h"
#include "core/status.h"

namespace tarn {

class LogitMask {
 public:
  // Sets the logits of all other tokens to -infinity. Allocates nothing.
  virtual Status Apply(Span<float> logits) = 0;
  // Takes a token that was picked.
  virtual Status Accept(int32_t token) = 0;
  // No token may come next.
  virtual bool is_complete() const = 0;
  // Of logits.
  virtual uint32_t vocab_size() const = 0;

 protected:
  ~LogitMask() = default;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_LOGIT_MASK_H_
