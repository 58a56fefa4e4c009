#include "tools/convert/conversion.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tools/convert/build/model_graph.h"
#include "tools/convert/chat/chat_template.h"
#include "tools/convert/checkpoint/other_format.h"
#include "tools/convert/checkpoint/random_weights.h"
#include "tools/convert/config/state_type.h"
#include "tools/convert/field_list.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tensor_list.h"
#include "tools/convert/tokenizer/folder.h"

namespace tarn::convert {
namespace {

format::DType ParseStateType(const std::string& state) {
  if (state == "f32") return format::DType::F32;
  return state == "f16" ? format::DType::F16 : format::DType::I8;
}

// The last part of the path, without .json: what a model is called if nobody says.
std::string DefaultName(const std::string& input) {
  const auto path = std::filesystem::absolute(input).lexically_normal();
  return path.has_filename() ? path.stem().string() : path.parent_path().filename().string();
}

// What else could be meant by a file in place of a directory.
[[noreturn]] void FailAtFile(const std::string& input) {
  const std::filesystem::path file(input);
  if (IsTorchFile(file) || file.extension() == ".safetensors") {
    Fail(input, ": a file, expected the directory that holds it and config.json");
  }
  if (file.extension() == ".npz") Fail(input, ": a file, expected the directory that holds it");
  if (file.extension() == ".tarn")
    Fail(input, ": a file, expected a checkpoint directory: is it a model that is converted already?");
  const std::string other = OtherFormat(input);
  Fail(input, ": not a directory ",
       other.empty() ? "(--random-weights SEED makes a model from a config alone)" : "with config.json; " + other);
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

std::string FolderOf(const std::string& input, bool is_folder) {
  if (is_folder) return input;
  const std::string parent = std::filesystem::path(input).parent_path().string();
  return parent.empty() ? "." : parent;
}

OwnConfig Conversion::ReadConfigAlone(const std::string& input, const FamilyOptions& family) {
  const bool folder = IsFolder(input);
  const ConfigText config = folder ? ReadFolderConfig(input) : ConfigText{ReadConfig(input), input};
  return ReadOwnConfig(config.text, config.where, FolderOf(input, folder), family, nullptr);
}

Conversion::Conversion(const ConversionOptions& options) : options_(options) {
  struct stat info;
  if (stat(options.input.c_str(), &info) != 0) Fail(options.input, ": no such file or directory");
  const bool is_folder = S_ISDIR(info.st_mode);
  if (!options.seed && !is_folder) FailAtFile(options.input);
  inputs_ = {options.input};
  std::string where = options.input;
  if (options.seed) {
    random_ = std::make_unique<RandomWeights>(*options.seed);
    weights_ = random_.get();
    ConfigText config = is_folder ? ReadFolderConfig(options.input) : ConfigText{ReadConfig(options.input), options.input};
    config_text_ = std::move(config.text);
    where = std::move(config.where);
    inputs_ = {where};
  } else {
    checkpoint_ = std::make_unique<Checkpoint>(options.input);
    weights_ = checkpoint_.get();
    config_text_ = checkpoint_->config().text;
    inputs_ = checkpoint_->files();
    where = checkpoint_->config().where;
  }
  folder_ = FolderOf(options.input, is_folder);
  for (const std::string& name : TextFiles(folder_)) inputs_.push_back(folder_ + "/" + name);
  OwnConfig own = ReadOwnConfig(config_text_, where, folder_, options.family, checkpoint_.get());
  config_text_ = std::move(own.text);
  notes_ = std::move(own.notes);
  config_ = ParseConfig(config_text_, own.where);
  ReadShortlistOf(own.shortlist);
  f32_config_ = config_;
  SetStateTypes(ParseStateType(options.state), options.force, &config_);
  ReadTexts();
}

// The shortlist that an option names, or `found` in the folder.
void Conversion::ReadShortlistOf(const std::string& found) {
  if (options_.no_shortlist) return;
  const std::string& path = options_.shortlist.empty() ? found : options_.shortlist;
  if (path.empty()) return;
  SetShortlist(ReadShortlist(path), &config_);
  inputs_.push_back(path);
  if (options_.shortlist.empty()) {
    notes_.push_back(path + ": a source allows the tokens that this shortlist has for it; --no-shortlist leaves it out");
  }
}

// The tokenizer files, if the config asks for them, and the chat template of the folder or the one that an option names. What the
// config does not say of the begin and the end of a text, the tokenizer may.
void Conversion::ReadTexts() {
  GraphBuilder builder(Precision::kF32);
  BuildModel(config_, &builder);
  const Graph& model = builder.graph();
  texts_.task = model.task;
  texts_.vocab_size = model.vocab_size;
  texts_.tokenizer = model.tokenizer;
  texts_.bos_token = model.bos_token;
  texts_.eos_token = model.eos_token;
  texts_.mask_token = model.mask_token;
  std::shared_ptr<const TokenizerData> tokenizer;
  if (config_.tokenizer != TokenizerFiles::kNone && config_.tokenizer != TokenizerFiles::kBytes) {
    const uint32_t sources = model.source_vocab_size != 0 ? model.source_vocab_size : model.vocab_size;
    tokenizer = std::make_shared<TokenizerData>(ReadTokenizer(folder_, std::min(model.vocab_size, sources), config_.tokenizer));
    if (!tokenizer->note.empty()) notes_.push_back(tokenizer->note);
    texts_.tokenizer = tokenizer->kind;
    texts_.tokenizer_writer = [tokenizer](flatbuffers::FlatBufferBuilder* out) { return WriteTokenizer(*tokenizer, out); };
    if (texts_.bos_token < 0) texts_.bos_token = tokenizer->bos_token;
    if (texts_.mask_token < 0 && texts_.task == format::Task::MaskedLm) texts_.mask_token = tokenizer->mask_token;
    if (texts_.eos_token < 0) texts_.eos_token = tokenizer->eos_token;
  }
  const bool has_text = texts_.task == format::Task::CausalLm && texts_.tokenizer != format::TokenizerKind::None;
  if (!has_text && options_.chat_template.empty()) return;
  if (!has_text) Fail("--chat-template: a model of task \"causal_lm\" with a tokenizer expected");
  const std::optional<ChatData> chat =
      ReadChatTemplate({folder_, options_.chat_template, tokenizer.get(), texts_.vocab_size, texts_.eos_token}, &notes_);
  if (!chat) return;
  texts_.chat_writer = [chat](flatbuffers::FlatBufferBuilder* out) { return WriteChatTemplate(*chat, out); };
}

PrecisionRules Conversion::Rules() const {
  PrecisionRules rules(ParsePrecision(options_.quant));  // not "auto": its rules are found
  for (const std::string& rule : options_.keep) rules.Keep(rule);
  return rules;
}

std::unique_ptr<GraphBuilder> Conversion::Build(const PrecisionRules& rules, bool f32_states) const {
  auto builder = std::make_unique<GraphBuilder>(rules);
  BuildModel(f32_states ? f32_config_ : config_, builder.get());
  Graph& graph = builder->graph();
  graph.tokenizer = texts_.tokenizer;
  graph.tokenizer_writer = texts_.tokenizer_writer;
  graph.chat_writer = texts_.chat_writer;
  graph.bos_token = texts_.bos_token;
  graph.eos_token = texts_.eos_token;
  graph.mask_token = texts_.mask_token;
  graph.name = options_.name.empty() ? DefaultName(options_.input) : options_.name;
  graph.precision = options_.quant;
  const auto hint = [&](const std::string& name) { return UnknownTensorHint(name, config_text_); };
  if (checkpoint_) checkpoint_->Check(builder->weights(), builder->tied(), hint);
  return builder;
}

}  // namespace tarn::convert
