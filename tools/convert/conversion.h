// A conversion without its command line: what is read and checked before a byte is written.
#ifndef TARN_TOOLS_CONVERT_CONVERSION_H_
#define TARN_TOOLS_CONVERT_CONVERSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/convert/build/graph_builder.h"
#include "tools/convert/checkpoint/checkpoint.h"
#include "tools/convert/config/config.h"
#include "tools/convert/published.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {

struct ConversionOptions {
  std::string input;             // a checkpoint directory; with a seed a config.json
  std::optional<uint64_t> seed;  // of random weights
  std::string name;              // of the model; "": that of the input
  std::string quant = "int8";    // as it is called in the file
  std::vector<std::string> keep;
  std::string state = "f32";  // or f16, int8
  bool force = false;         // states that lose more than rounding
  std::string chat_template;  // "": that of the checkpoint
  std::string shortlist;      // a file; "": that of the folder
  bool no_shortlist = false;  // none, whatever the folder has
  FamilyOptions family;
};

// Where a config.json lies, or the folder itself.
std::string FolderOf(const std::string& input, bool is_folder);

class Conversion {
 public:
  // Reads config.json, the headers of the weights, tokenizer and chat template. Errors: whatever in them is damaged, unknown,
  // missing or not supported, by file and field.
  explicit Conversion(const ConversionOptions& options);
  // The same for a config.json, so that its tensors can be listed.
  static OwnConfig ReadConfigAlone(const std::string& input, const FamilyOptions& family);

  const ModelConfig& config() const { return config_; }
  // config.json in tarn's terms, and where it lies.
  const std::string& config_text() const { return config_text_; }
  const std::string& folder() const { return folder_; }
  const WeightReader& weights() const { return *weights_; }
  // Files that were read.
  const std::vector<std::string>& inputs() const { return inputs_; }
  // What the user should know.
  const std::vector<std::string>& notes() const { return notes_; }

  // The graph with matrices as `rules` say. `f32_states`: whatever the options say of states.
  // Errors: a rule that no matrix has matched; tensors of the checkpoint that do not fit the graph.
  std::unique_ptr<GraphBuilder> Build(const PrecisionRules& rules, bool f32_states = false) const;
  // As the options say; `quant` is a type.
  PrecisionRules Rules() const;

 private:
  void ReadTexts();
  void ReadShortlistOf(const std::string& found);

  const ConversionOptions options_;
  std::unique_ptr<Checkpoint> checkpoint_;  // nullptr: random weights
  std::unique_ptr<WeightReader> random_;
  const WeightReader* weights_ = nullptr;
  std::vector<std::string> inputs_, notes_;
  std::string config_text_, folder_;
  ModelConfig config_, f32_config_;
  Graph texts_;  // tokenizer, chat template and their tokens, without programs
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CONVERSION_H_
