#include "tools/convert/tokenizer/tokenizer.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "runtime/text/tokenizer_tables.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/mapped_file.h"
#include "tools/convert/tokenizer/added_beside.h"
#include "tools/convert/tokenizer/decoder.h"
#include "tools/convert/tokenizer/fairseq.h"
#include "tools/convert/tokenizer/folder.h"
#include "tools/convert/tokenizer/longest.h"
#include "tools/convert/tokenizer/model.h"
#include "tools/convert/tokenizer/normalizer.h"
#include "tools/convert/tokenizer/post_processor.h"
#include "tools/convert/tokenizer/pre_tokenizer.h"
#include "tools/convert/tokenizer/sentencepiece.h"
#include "tools/convert/tokenizer/vocabulary.h"

namespace tarn::convert {
namespace {

// `file`: what tokenizer.json says, or another file says as that does.
TokenizerData ReadTokenizerJson(const Json& file, const std::string& path, Vocabulary* vocabulary) {
  Fields fields(file, path);
  static const Json kNull;
  const auto part = [&](const char* key) -> const Json& {
    const Json* found = fields.Find(key);
    return found == nullptr ? kNull : *found;
  };
  for (const char* ignored : {"truncation", "padding"}) fields.Find(ignored);  // of batches, which a text here is no part of
  const Json* version = fields.Find("version");
  if (version != nullptr && *version != "1.0") fields.FailAt("version", ValueText(*version) + " is not \"1.0\"");
  TokenizerData data;
  const Json* model = fields.Find("model");
  if (model == nullptr) fields.FailMissing("model", "an object");
  ReadModel(*model, path + ": model", vocabulary);
  const Json* added_tokens = fields.Find("added_tokens");
  if (added_tokens != nullptr) ReadAddedTokens(*added_tokens, path + ": added_tokens", vocabulary);
  ReadNormalizer(part("normalizer"), path + ": normalizer", &data);
  ReadPreTokenizer(part("pre_tokenizer"), path + ": pre_tokenizer", &data);
  ReadPostProcessor(part("post_processor"), path + ": post_processor", &data);
  vocabulary->decoder = ReadDecoder(part("decoder"), path + ": decoder");
  fields.Finish();
  return data;
}

// Tokens that `transformers` adds to those of a file. Errors: a token of the file with another id.
void PutAddedTokens(const std::vector<AddedToken>& tokens, const std::string& where, Vocabulary* vocabulary) {
  for (const AddedToken& token : tokens) {
    const uint32_t id = vocabulary->Find(token.content).value_or(token.id);
    if (id != token.id) Fail(where, ": added token \"", token.content, "\": id ", token.id, ", the vocabulary has it as ", id);
    if (!token.content.empty()) vocabulary->added.Put(token, where);
  }
}

// vocab.json and merges.txt, as GPT-2 has them.
TokenizerData ReadVocabAndMerges(const std::string& folder, const TokenizerConfig& config, Vocabulary* vocabulary) {
  const std::string vocab_path = folder + "/vocab.json";
  ReadIds(ReadJson(vocab_path), vocab_path, vocabulary);
  const std::string merges_path = folder + "/merges.txt";
  const std::string text = ReadFile(merges_path, kMaxTokenizerFileBytes);
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.rfind("#version", 0) == 0) continue;
    AddMerge(line, merges_path + ": line " + std::to_string(number), vocabulary);
  }
  PutAddedTokens(AddedTokensBeside(folder, config), folder, vocabulary);
  TokenizerData data;
  data.splits.push_back(Gpt2Split(folder));
  data.byte_level = true;
  vocabulary->decoder = ReadDecoder({{"type", "ByteLevel"}}, folder);
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    std::string name = config.SpecialToken(key).value_or("");
    if (name.empty()) name = "<|endoftext|>";  // what GPT-2's has where nothing is said
    const auto found = vocabulary->ids.find(name);
    if (found == vocabulary->ids.end() || vocabulary->added.Find(name) != nullptr) continue;
    AddToken({name, found->second, false, false, false, true, true}, folder, vocabulary);
  }
  return data;
}

constexpr char kFairseqFile[] = "/sentencepiece.bpe.model";

// The first one that is there; "": none is.
std::string SentencePieceFile(const std::string& folder) {
  for (const char* name : {"/tokenizer.model", "/spiece.model", kFairseqFile}) {
    if (IsFile(folder + name)) return folder + name;
  }
  return MarianVocabulary(folder);
}

// `tokenizer` of a model of SentencePiece, and its symbols.
TokenizerData ReadModelFile(const SentencePieceModel& model, const std::string& path, Vocabulary* vocabulary) {
  TokenizerData data = ReadTokenizerJson(model.tokenizer, path, vocabulary);
  vocabulary->merges = model.merges;
  for (const AddedToken& symbol : model.symbols) AddToken(symbol, path, vocabulary);
  return data;
}

TokenizerData ReadFairseqFile(const std::string& folder, const TokenizerConfig& config, const std::string& path,
                              Vocabulary* vocabulary) {
  TokenizerData data = ReadModelFile(ReadFairseq(folder, config, path), path, vocabulary);
  const auto id_of = [&](const char* name) { return static_cast<int32_t>(vocabulary->Find(name).value_or(-1)); };
  data.bos_token = id_of("<s>");
  data.eos_token = id_of("</s>");
  data.mask_token = id_of("<mask>");
  return data;
}

// Every text ends with the token 0, which "marian_nmt" of families/ says too.
TokenizerData ReadMarianVocabulary(const std::string& path, Vocabulary* vocabulary) {
  const SentencePieceModel model = ReadSentencePiece(path, DummyPrefix::kAlways);
  TokenizerData data = ReadModelFile(model, path, vocabulary);
  if (model.eos.empty() || vocabulary->Find(model.eos) != 0u)
    Fail(path, ": the token that ends a text is not 0, as it is in models of Marian");
  data.eos_token = 0;
  data.suffix = {0};
  return data;
}

// What a class of `transformers` puts around every text, and how many sentinels it has, where tokenizer_config.json does not say
// it; and whether `legacy` of that file is for it.
struct ClassDefaults {
  const char* tokenizer_class;
  bool bos, eos;
  size_t sentinels;
  bool has_legacy;
};
constexpr ClassDefaults kClassDefaults[] = {{"CodeLlamaTokenizer", true, false, 0, true},
                                            {"GemmaTokenizer", true, false, 0, true},
                                            {"LlamaTokenizer", true, false, 0, true},
                                            {"MT5Tokenizer", false, true, 0, false},  // the sentinels are pieces
                                            {"T5Tokenizer", false, true, 100, false}};

ClassDefaults DefaultsOf(const TokenizerConfig& config) {
  const std::string name = config.ClassName();
  for (const ClassDefaults& defaults : kClassDefaults) {
    if (name == defaults.tokenizer_class) return defaults;
  }
  return {"", false, false, 0, true};
}

// The sentinels of T5, which older folders list nowhere: its class puts them behind the pieces.
void PutSentinels(const TokenizerConfig& config, size_t fallback, Vocabulary* vocabulary) {
  if (vocabulary->Find("<extra_id_0>")) return;
  const auto first = static_cast<uint32_t>(std::max(vocabulary->ids.size(), vocabulary->listed.size()));
  const std::vector<AddedToken> sentinels = SentinelTokens(config, fallback, first);
  for (const AddedToken& token : vocabulary->added) {
    if (token.id < first || token.id - first >= sentinels.size()) continue;
    if (token.content == sentinels[token.id - first].content) continue;
    Fail(config.path(), ": extra_ids: ", sentinels.size(), ": added token \"", token.content, "\" has id ", token.id,
         ", expected none of ", first, " to ", first + sentinels.size() - 1, ", which are <extra_id_0> and so on");
  }
  PutAddedTokens(sentinels, config.path(), vocabulary);
}

// Whether every text begins or ends with a special token is no part of the model: tokenizer_config.json or its class says it.
TokenizerData ReadSentencePieceFile(const std::string& folder, const TokenizerConfig& config, const std::string& path,
                                    Vocabulary* vocabulary) {
  if (path == folder + kFairseqFile) return ReadFairseqFile(folder, config, path, vocabulary);
  if (path == MarianVocabulary(folder)) return ReadMarianVocabulary(path, vocabulary);
  const ClassDefaults defaults = DefaultsOf(config);
  const bool is_legacy = !defaults.has_legacy || config.Bool("legacy").value_or(true);
  const SentencePieceModel model = ReadSentencePiece(path, is_legacy ? DummyPrefix::kAlways : DummyPrefix::kFirst);
  TokenizerData data = ReadModelFile(model, path, vocabulary);
  std::vector<AddedToken> added = AddedTokensBeside(folder, config);
  for (AddedToken& token : added) token.normalized = false;  // they are found before a text gets its prefix
  PutAddedTokens(added, folder, vocabulary);
  PutSentinels(config, defaults.sentinels, vocabulary);
  const auto id_of = [&](const char* key, const std::string& fallback) {
    const std::string name = config.SpecialToken(key).value_or("");
    const std::optional<uint32_t> id = vocabulary->Find(name.empty() ? fallback : name);
    return id ? static_cast<int32_t>(*id) : -1;
  };
  data.bos_token = id_of("bos_token", model.bos);
  data.eos_token = id_of("eos_token", model.eos);
  for (const auto& [key, fallback, id, ids] : {std::tuple{"add_bos_token", defaults.bos, data.bos_token, &data.prefix},
                                               std::tuple{"add_eos_token", defaults.eos, data.eos_token, &data.suffix}}) {
    const std::optional<bool> found = config.Bool(key);
    if (!found.value_or(fallback) || (!found && id < 0)) continue;
    if (id < 0) Fail(config.path(), ": ", key, ": true, but there is no such token");
    ids->push_back(static_cast<uint32_t>(id));
  }
  return data;
}

void CheckIds(const TokenizerData& data, const std::string& where, uint32_t vocab_size) {
  if (data.piece_ends.size() > vocab_size) {
    Fail("config.json: vocab_size ", vocab_size, " is too small for ", where, ", whose largest id is ", data.piece_ends.size() - 1);
  }
  for (const auto* ids : {&data.prefix, &data.suffix}) {
    if (ids->size() > kMaxTemplateTokens)
      Fail(where, ": post_processor: more than ", kMaxTemplateTokens, " ids before or after a text");
    for (const uint32_t id : *ids) {
      if (id >= data.piece_ends.size()) Fail(where, ": post_processor: id ", id, " is no token");
    }
  }
}

// Added tokens that the model has no rows for: fine-tuning adds them to the tokenizer alone, or a published table was cut.
void DropTokensWithoutRows(uint32_t vocab_size, Vocabulary* vocabulary, TokenizerData* data) {
  const std::vector<AddedToken> dropped =
      vocabulary->added.Filter([vocab_size](const AddedToken& token) { return token.id < vocab_size; });
  if (dropped.empty()) return;
  data->note = std::to_string(dropped.size()) + " added tokens of the tokenizer are left out, the first is " +
               ValueText(dropped.front().content) + ": their ids are not below vocab_size = " + std::to_string(vocab_size);
}

// -1: no file names one.
int32_t SpecialTokenId(const std::string& folder, const TokenizerConfig& config, const char* key, const Vocabulary& vocabulary,
                       bool must_exist) {
  const std::string name = config.SpecialToken(key).value_or("");
  const std::optional<uint32_t> id = vocabulary.Find(name);
  if (id) return static_cast<int32_t>(*id);
  if (must_exist && !name.empty()) {
    Fail(folder, ": tokenizer_config.json or special_tokens_map.json: ", key, ": ", ValueText(name), " is no token");
  }
  return -1;
}

}  // namespace

TokenizerData ReadTokenizer(const std::string& folder, uint32_t vocab_size, TokenizerFiles files) {
  const TokenizerConfig config(folder);
  Vocabulary vocabulary;
  TokenizerData data;
  std::string where = folder + "/tokenizer.json";
  if (files == TokenizerFiles::kRwkv) {
    vocabulary = ReadRwkv(where = folder + "/rwkv_vocab.txt");
  } else if (files == TokenizerFiles::kCharacters) {
    vocabulary = ReadCharacters(where = folder + "/characters.json");
  } else if (IsFile(where)) {
    data = ReadTokenizerJson(ReadJson(where), where, &vocabulary);
  } else if (IsFile(folder + "/vocab.json") && IsFile(folder + "/merges.txt")) {
    where = folder + "/vocab.json";
    data = ReadVocabAndMerges(folder, config, &vocabulary);
  } else if (const std::string path = SentencePieceFile(folder); !path.empty()) {
    data = ReadSentencePieceFile(folder, config, where = path, &vocabulary);
  } else {
    if (IsFile(folder + "/vocab.json")) Fail(folder, ": vocab.json without merges.txt, expected both or a tokenizer.json");
    Fail(folder,
         ": no tokenizer.json, no vocab.json with merges.txt, no tokenizer.model, spiece.model, sentencepiece.bpe.model or "
         "vocab*.spm: "
         "\"tokenizer\" of ",
         "config.json asks for one of them");
  }
  const bool names_all = files == TokenizerFiles::kJson;  // other files may leave out special tokens
  const auto special = [&](const char* key) {
    const int32_t id = SpecialTokenId(folder, config, key, vocabulary, names_all);
    return id >= 0 && static_cast<uint32_t>(id) < vocab_size ? id : -1;
  };
  const int32_t bos_token = special("bos_token"), eos_token = special("eos_token"), mask_token = special("mask_token");
  DropTokensWithoutRows(vocab_size, &vocabulary, &data);
  CompileVocabulary(vocabulary, where, &data);
  CheckIds(data, where, vocab_size);
  if (bos_token >= 0) data.bos_token = bos_token;
  if (eos_token >= 0) data.eos_token = eos_token;
  if (mask_token >= 0) data.mask_token = mask_token;
  return data;
}

}  // namespace tarn::convert
