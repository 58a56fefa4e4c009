#include "tools/convert/families/encoder_head.h"

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr char kSingleLabel[] = "single_label_classification";

}  // namespace

std::string HeadArchitecture(Fields* fields) {
  const Json* names = fields->Find("architectures");
  if (names == nullptr || !names->is_array() || names->empty() || !names->front().is_string()) {
    fields->FailAt("architectures", "a list with the name of the model's class is missing: it says which head the model has");
  }
  return names->front();
}

uint32_t LabelCount(Fields* fields) {
  const Json* labels = fields->Find("id2label");  // num_labels says the same
  if (labels != nullptr && (!labels->is_object() || labels->empty())) {
    fields->FailAt("id2label", ValueText(*labels) + " is not an object of labels");
  }
  const uint32_t count = labels == nullptr ? fields->Size("num_labels", 2) : static_cast<uint32_t>(labels->size());
  const std::string problem = fields->Text("problem_type", std::string(kSingleLabel));
  if (count > 1 && problem != kSingleLabel) {  // of one label nothing makes a probability
    fields->FailAt("problem_type",
                   ValueText(problem) + " is not supported, expected \"" + kSingleLabel +
                       "\": a softmax of such logits is no probability; null converts the model for its logits alone");
  }
  return count;
}

}  // namespace tarn::convert
