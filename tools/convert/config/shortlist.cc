#include <algorithm>
#include <utility>

#include "tools/convert/config/config.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

void CheckFit(const ShortlistFile& file, const ModelConfig& config) {
  if (config.task != format::Task::Seq2Seq) Fail(file.path, ": a model of task \"seq2seq\" expected, whose source it reads");
  if (config.logits_soft_cap > 0) Fail(file.path, ": a model whose logits have no soft cap expected");
  const uint32_t source = config.source_vocab_size;
  // A token behind those of the checkpoint stands for the begin of a target: no source has it, and no list.
  const uint32_t words = source > 1 && config.bos_token == static_cast<int64_t>(source) - 1 ? source - 1 : source;
  if (file.words() != words && file.words() != source) {
    Fail(file.path, ": has lists for ", file.words(), " tokens of a source, the model has ", words);
  }
  const auto last = std::max_element(file.targets.begin(), file.targets.end());
  if (static_cast<uint32_t>(*last) < config.vocab_size) return;
  Fail(file.path, ": target ", last - file.targets.begin(), " is ", *last, ", the model has ", config.vocab_size, " tokens");
}

}  // namespace

void SetShortlist(const ShortlistFile& file, ModelConfig* config) {
  CheckFit(file, *config);
  auto shortlist = std::make_shared<Shortlist>();
  const auto end_list = [&] { shortlist->offsets.push_back(static_cast<int32_t>(shortlist->targets.size())); };
  end_list();
  for (size_t token = 0; token < config->source_vocab_size; ++token) {
    if (token < file.words()) {
      shortlist->targets.insert(shortlist->targets.end(), file.targets.begin() + file.offsets[token],
                                file.targets.begin() + file.offsets[token + 1]);
      if (config->share_embeddings) shortlist->targets.push_back(static_cast<int32_t>(token));
    }
    end_list();
  }
  for (uint32_t token = 0; token < std::min(file.first, config->vocab_size); ++token) {
    shortlist->targets.push_back(static_cast<int32_t>(token));
  }
  end_list();
  config->shortlist = std::move(shortlist);
}

}  // namespace tarn::convert
