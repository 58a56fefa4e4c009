#include "tools/convert/tokenizer/normalizer.h"

#include <vector>

#include "tools/convert/tokenizer/component.h"
#include "tools/convert/tokenizer/normalize.h"

namespace tarn::convert {
namespace {

constexpr Choice<NormalizerStep::Kind> kNormalizers[] = {
    {"NFC", NormalizerStep::Kind::kNfc},
    {"NFD", NormalizerStep::Kind::kNfd},
    {"NFKC", NormalizerStep::Kind::kNfkc},
    {"NFKD", NormalizerStep::Kind::kNfkd},
    {"Lowercase", NormalizerStep::Kind::kLowercase},
    {"StripAccents", NormalizerStep::Kind::kStripAccents},
    {"Prepend", NormalizerStep::Kind::kPrepend},
    {"Replace", NormalizerStep::Kind::kReplace},
};

}  // namespace

void ReadNormalizer(const Json& object, const std::string& where, TokenizerData* data) {
  if (object.is_null()) return;
  std::vector<NormalizerStep> steps;
  for (const auto& [part, place] : Parts(object, where, "normalizers")) {
    Fields fields(*part, place);
    NormalizerStep step{fields.OneOf("type", kNormalizers)};
    if (step.kind == NormalizerStep::Kind::kPrepend) step.text = fields.Text("prepend");
    if (step.kind == NormalizerStep::Kind::kReplace) {
      const Json* pattern = fields.Find("pattern");
      if (pattern == nullptr) fields.FailAt("pattern", "expected");
      Fields kind(*pattern, place + ".pattern");
      step.text = kind.Text("String");
      kind.Finish();
      step.content = fields.Text("content");
    }
    fields.Finish();
    steps.push_back(step);
  }
  if (!steps.empty()) data->normalizer = CompileNormalizer(steps, where);
}

}  // namespace tarn::convert
