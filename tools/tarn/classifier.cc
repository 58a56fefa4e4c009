#include "tools/tarn/classifier.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/common/progress.h"
#include "tools/tarn/error.h"

namespace tarn_cli {

void Classify(const Model& model, tarn_session_config config, uint32_t batch, const std::vector<Tokens>& texts,
              const std::string& step, const LabelSink& sink) {
  if (model.info().num_labels == 1) {
    throw Failure(step + ": " + model.path() +
                  " has 1 label, expected 2 or more: its logit is a score and no probability; tarn_session_classify() gives it");
  }
  config.batch = static_cast<uint32_t>(std::min<size_t>(batch, texts.size()));
  config.max_source = LongestOf(texts);
  const Session session = CreateSession(model, config);
  tarn::tools::Progress progress(stderr, isatty(STDERR_FILENO) == 1, step, texts.size(), "texts");
  for (size_t begin = 0; begin < texts.size(); begin += config.batch) {
    StopIfInterrupted();
    const SourceBatch sources(texts, begin, config.batch);
    const float* logits = nullptr;
    tarn_error error;
    Check(tarn_session_classify(session.get(), sources.tokens(), sources.stride(), sources.lengths(), &logits, &error), error);
    for (uint32_t i = 0; i < sources.count(); ++i) {
      if (!sink(begin + i, logits + size_t{i} * model.info().num_labels)) return;
    }
    progress.Advance(sources.count());
  }
}

}  // namespace tarn_cli
