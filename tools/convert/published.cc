#include "tools/convert/published.h"

#include <unistd.h>

#include <utility>

#include "tools/common/failure.h"
#include "tools/convert/checkpoint/shortlist_file.h"
#include "tools/convert/tokenizer/folder.h"

namespace tarn::convert {
namespace {

bool IsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// What "tokenizer" of config.json would be. `note`: a tokenizer that is there but not read, or "".
std::string TokenizerOf(const std::string& folder, const Translation& translation, std::string* note) {
  for (const char* file : {"/tokenizer.json", "/tokenizer.model", "/spiece.model", "/sentencepiece.bpe.model"}) {
    if (IsThere(folder + file)) return "tokenizer.json";
  }
  if (IsThere(folder + "/rwkv_vocab.txt")) return "rwkv";
  if (IsThere(folder + "/rwkv_vocab_v20230424.txt")) {
    *note = "rwkv_vocab_v20230424.txt is read as rwkv_vocab.txt alone: copy it, or the model reads and writes token ids";
    return "none";
  }
  if (translation.marian_tokenizer) {
    if (!MarianVocabulary(folder).empty()) return "tokenizer.json";
    *note = "the directory has no vocab*.spm, or has several, so that the model reads and writes token ids";
    return "none";
  }
  if (IsThere(folder + "/source.spm")) {  // of marian, of which transformers writes no tokenizer.json
    *note = "source.spm and target.spm are not read, so that the model reads and writes token ids";
    return "none";
  }
  const bool has_merges = IsThere(folder + "/vocab.json") && IsThere(folder + "/merges.txt");
  if (has_merges && translation.gpt2_tokenizer) return "tokenizer.json";
  for (const char* file : {"/vocab.json", "/vocab.txt"}) {
    if (!IsThere(folder + file)) continue;
    *note = std::string(file + 1) +
            " does not say what stands around a text, so that the model reads and writes token ids; a tokenizer.json does "
            "(AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR) writes it)";
  }
  return "none";
}

// The only shortlist of a folder, or "".
std::string ShortlistOf(const std::string& folder, std::vector<std::string>* notes) {
  const std::vector<std::string> found = FindShortlists(folder);
  if (found.size() > 1)
    notes->push_back("the directory has " + found[0] + " and " + found[1] + ": --shortlist FILE uses one of them");
  return found.size() == 1 ? found[0] : "";
}

bool HasPrefix(const CheckpointTensors& tensors, const std::string& prefix) {
  const auto first = tensors.lower_bound(prefix);
  return first != tensors.end() && first->first.compare(0, prefix.size(), prefix) == 0;
}

}  // namespace

OwnConfig ReadOwnConfig(const std::string& text, const std::string& where, const std::string& folder, const FamilyOptions& options,
                        Checkpoint* checkpoint) {
  std::optional<Translation> translation = Translate(text, where, options);
  if (!translation) {
    if (options.max_context || options.window || options.sinks != 0) {
      throw tools::UsageFailure("--max-context, --window and --sinks are for checkpoints whose config.json has a model_type; in " +
                                where + " the attention objects say it");
    }
    return {text, where, nullptr, {}};
  }
  if (checkpoint != nullptr && !translation->other_prefix.empty() && !HasPrefix(checkpoint->tensors(), translation->prefix)) {
    translation->prefix = translation->other_prefix;
  }
  if (checkpoint != nullptr && !translation->own_head.empty()) {
    translation->config["tie_word_embeddings"] = checkpoint->tensors().count(translation->own_head) == 0;
  }
  const bool has_prefix = checkpoint == nullptr || HasPrefix(checkpoint->tensors(), translation->prefix);
  OwnConfig own{"", where + ", in tarn's terms", nullptr, std::move(translation->notes)};
  own.name_in_folder = [rules = translation->rules, prefix = has_prefix ? translation->prefix : ""](const std::string& name) {
    return NameInFolder(name, rules, prefix);
  };
  if (checkpoint != nullptr) {
    TensorMisfits misfits;
    CheckpointTensors tensors = ApplyRules(checkpoint->tensors(), translation->rules, translation->prefix, &misfits);
    checkpoint->Rename(std::move(tensors), std::move(misfits), own.name_in_folder);
  }
  std::string tokenizer_note;
  translation->config["tokenizer"] = TokenizerOf(folder, *translation, &tokenizer_note);
  if (!tokenizer_note.empty()) own.notes.push_back(tokenizer_note);
  if (translation->marian_tokenizer) own.shortlist = ShortlistOf(folder, &own.notes);
  if (translation->bounded_by_model) {
    own.notes.push_back("the caches hold the longest context that config.json names; --max-context N makes them smaller");
  }
  own.text = translation->config.dump(2);
  return own;
}

}  // namespace tarn::convert
