// config.json of a published checkpoint, read so that no field is passed over that could change the arithmetic.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_FOREIGN_CONFIG_H_
#define TARN_TOOLS_CONVERT_FAMILIES_FOREIGN_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tools/convert/json/json.h"

namespace tarn::convert {

constexpr uint32_t kMostLayers = 512;  // of a stack

class ForeignConfig {
 public:
  // Fields that say nothing about the arithmetic of inference are known from the start (kIgnored).
  ForeignConfig(const Json& object, const std::string& where);

  // Fields whose value is null count as missing, but IsNull says so: it may stand for something else than the default.
  Fields& fields() { return fields_; }
  bool IsNull(const char* key) const { return object_.contains(key) && object_[key].is_null(); }

  // Refuses every value of `key` but this one, which is also the default: what else it would do is not supported.
  void Require(const char* key, const Json& value);

  // hidden_act or its like, as tarn's config has it. Gated: two projections that are multiplied.
  std::string Activation(const char* key, const char* fallback, bool gated);
  // Fills what `config` says of rotary positions, by rope_theta and rope_scaling. `head_dim`: of q and k; `positions`: the longest
  // context of the model. Returns what cosines and sines are multiplied by: 1 without scaling.
  // Errors: a kind of scaling that is not supported; positions of a part of a head.
  double Rope(uint32_t head_dim, uint32_t positions, Json* config);
  // bos_token_id and eos_token_id; the first of a list. Ids that the vocabulary has not are left out.
  void EndTokens(uint32_t vocab_size, Json* config);

  // Errors: a field that nobody asked for.
  void Finish() const;

 private:
  Json object_, present_;  // present_: without the null ones
  Fields fields_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_FOREIGN_CONFIG_H_
