// config.json of a published checkpoint, read so that no field is passed over that could change the arithmetic.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_FOREIGN_CONFIG_H_
#define TARN_TOOLS_CONVERT_FAMILIES_FOREIGN_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/convert/json/json.h"

namespace tarn::convert {

constexpr uint32_t kMostLayers = 512;  // of a stack

// The first `turned` columns of a head turn. Pairs are (i, i + turned / 2), or interleaved (2i, 2i + 1).
struct RotaryHeads {
  uint32_t head_dim, turned;
  bool interleaved = false;
};

// The object without the fields whose value is null. Errors: it is no object.
Json WithoutNulls(const Json& object, const std::string& where);

class ForeignConfig {
 public:
  // Fields that say nothing about the arithmetic of inference are known from the start (kIgnored).
  // `context`: the most tokens that a sequence will have; nullopt: as many as the model's longest context.
  ForeignConfig(const Json& object, const std::string& where, std::optional<uint32_t> context = std::nullopt);
  std::optional<uint32_t> context() const { return context_; }

  // Fields whose value is null count as missing, but IsNull says so: it may stand for something else than the default.
  Fields& fields() { return fields_; }
  bool IsNull(const char* key) const { return object_.contains(key) && object_[key].is_null(); }

  // The number before the first point of transformers_version, by which the folder was written; 0: nothing says it.
  int MajorVersion() const;

  // Refuses every value of `key` but this one, which is also the default: what else it would do is not supported.
  void Require(const char* key, const Json& value);

  // hidden_act or its like, as tarn's config has it. Gated: two projections that are multiplied.
  std::string Activation(const char* key, const char* fallback, bool gated);
  // The columns of a head that turn: int(head_dim * the field's value). Errors: an odd number of them, or of those that do not.
  uint32_t RotaryColumns(const char* key, double fallback, uint32_t head_dim);
  // transformers 5 writes rope_parameters for each kind of layer. Takes those of windows as the older field `local_theta`, and
  // those of full attention as rope_parameters of all layers. Errors: angles of windows that are scaled.
  void SplitRopeOfKinds(const char* local_theta);
  // Fills what `config` says of rotary positions, by rope_theta and rope_scaling. `heads`: which columns of q and k turn;
  // `positions`: the longest context of the model. Returns what cosines and sines are multiplied by: 1 without scaling. Errors: a
  // kind of scaling that is not supported; positions of another part of a head.
  double Rope(const RotaryHeads& heads, uint32_t positions, Json* config, float default_theta = 10000.0f);
  // bos_token_id and eos_token_id; the first of a list. Ids that the vocabulary has not are left out, with a note.
  void EndTokens(uint32_t vocab_size, Json* config);

  // What the user should know.
  const std::vector<std::string>& notes() const { return notes_; }

  // Errors: a field that nobody asked for.
  void Finish() const;

 private:
  Json object_, present_;  // present_: without the null ones
  Fields fields_;
  std::optional<uint32_t> context_;
  std::vector<std::string> notes_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_FOREIGN_CONFIG_H_
