#include "tools/convert/families/encoder_head.h"

#include "tools/convert/json/error.h"

namespace tarn::convert {

std::string HeadArchitecture(Fields* fields) {
  const Json* names = fields->Find("architectures");
  if (names == nullptr || !names->is_array() || names->empty() || !names->front().is_string()) {
    fields->FailAt("architectures", "a list with the name of the model's class is missing: it says which head the model has");
  }
  return names->front();
}

uint32_t LabelCount(Fields* fields) {
  const Json* labels = fields->Find("id2label");  // num_labels says the same
  if (labels == nullptr) return fields->Size("num_labels", 2);
  if (!labels->is_object() || labels->empty()) fields->FailAt("id2label", ValueText(*labels) + " is not an object of labels");
  return static_cast<uint32_t>(labels->size());
}

}  // namespace tarn::convert
