// What the matrices of a model are stored as: dense weights, embeddings, head. All other tensors are F32.
#ifndef TARN_TOOLS_CONVERT_GRAPH_PRECISION_H_
#define TARN_TOOLS_CONVERT_GRAPH_PRECISION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tarn::convert {

// From wide to narrow.
enum class Precision : uint8_t { kF32, kF16, kInt8, kInt4, kInt3, kInt2 };

// "f32", "f16", "int8", "int4", "int3", "int2", in the order of the enumeration.
const std::vector<std::string>& PrecisionNames();
// Errors: a name that is none of them.
Precision ParsePrecision(const std::string& name);
const std::string& NameOf(Precision precision);

// With a scale per block of a row.
constexpr bool IsBlockwise(Precision precision) { return precision >= Precision::kInt4; }

// One precision for all matrices, and rules for those that are to have another.
class PrecisionRules {
 public:
  PrecisionRules(Precision rest) : rest_(rest) {}  // not explicit: mostly it is all there is to say

  // "PATTERN=TYPE": matrices whose name the pattern matches, as a shell would (* ? [abc]). Where several rules match, the last one
  // holds. Errors: no pattern, or an unknown type.
  void Keep(const std::string& rule);
  // The same, for matrices that can have the type.
  void Prefer(const std::string& pattern, Precision precision);

  // Of the matrix that has these names: its own in the file, and those of the checkpoint tensors that it is made of.
  // `explicitly`: a rule of Keep says so.
  Precision Choose(const std::vector<std::string>& names, bool* explicitly);

  // After the last Choose(). Errors: a rule that matched nothing, with some of the names of `matrices` that it could have matched.
  void CheckUsed(const std::vector<std::string>& matrices) const;

 private:
  struct Rule {
    std::string text, pattern;
    Precision precision;
    bool keeps;  // Keep, not Prefer
    bool used;
  };

  Precision rest_;
  std::vector<Rule> rules_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_GRAPH_PRECISION_H_
