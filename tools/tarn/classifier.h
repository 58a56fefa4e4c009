// Texts to logits of labels, a batch at a time.
#ifndef TARN_TOOLS_TARN_CLASSIFIER_H_
#define TARN_TOOLS_TARN_CLASSIFIER_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/tarn/sources.h"

namespace tarn_cli {

// Gets the logits [num_labels] of text `index`, in their order. False: enough.
using LabelSink = std::function<bool(size_t index, const float* logits)>;

// Of `config` threads count; `batch` texts at a time. Shows its progress on standard error as that of `step`.
// Throws Failure: a model of one label, of whose logit there is no probability; Ctrl-C is one ("interrupted"), too.
void Classify(const Model& model, tarn_session_config config, uint32_t batch, const std::vector<Tokens>& texts,
              const std::string& step, const LabelSink& sink);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_CLASSIFIER_H_
