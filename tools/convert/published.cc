#include "tools/convert/published.h"

#include <unistd.h>

#include "tools/common/failure.h"

namespace tarn::convert {
namespace {

bool IsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool HasTokenizer(const std::string& folder) {
  return IsThere(folder + "/tokenizer.json") || (IsThere(folder + "/vocab.json") && IsThere(folder + "/merges.txt"));
}

}  // namespace

std::string OwnConfig(const std::string& text, const std::string& where, const std::string& folder, const FamilyOptions& options,
                      Checkpoint* checkpoint, std::string* note) {
  std::optional<Translation> translation = Translate(text, where, options);
  if (!translation) {
    if (options.max_context || options.window || options.sinks != 0) {
      throw tools::UsageFailure("--max-context, --window and --sinks are for checkpoints whose config.json has a model_type; in " +
                                where + " the attention objects say it");
    }
    return text;
  }
  if (checkpoint != nullptr) {
    checkpoint->Rename(ApplyRules(checkpoint->tensors(), translation->rules, translation->prefix),
                       [rules = translation->rules, prefix = translation->prefix](const std::string& name) {
                         return NameInFolder(name, rules, prefix);
                       });
  }
  if (translation->bounded_by_model) {
    *note = "the caches hold the longest context that config.json names; --max-context N makes them smaller";
  }
  translation->config["tokenizer"] = HasTokenizer(folder) ? "tokenizer.json" : "none";
  return translation->config.dump(2);
}

}  // namespace tarn::convert
