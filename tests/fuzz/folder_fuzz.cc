// A checkpoint directory with anything in its files: the converter refuses it with words, or writes a model that opens or is
// refused with words.
//
// The input says how a good folder is spoiled, so that corpus files keep their sense whatever the folders hold:
//
//   [ folder | precision | number of edits, mod 8 | { file and kind: u8, where: u16, value: u16 } ... ]
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fuzz/use_model.h"
#include "tools/convert/build/model_graph.h"
#include "tools/convert/checkpoint/random_weights.h"
#include "tools/convert/conversion.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/mapped_file.h"
#include "tools/convert/writer/model_writer.h"

namespace {

using Json = nlohmann::json;
using tarn::convert::ReadFile;

// Not the numbers of corpus files: at the end.
constexpr const char* kFolders[] = {"families/llama_d",
                                    "families/qwen2_b",
                                    "families/gemma2_a",
                                    "families/phi3_d",
                                    "families/gpt_neox_a",
                                    "families/smollm3_a",
                                    "families/gla_b",
                                    "families/kda_b",
                                    "families/delta_net_a",
                                    "families/abc_a",
                                    "families/bart_b",
                                    "families/marian_a",
                                    "families/bert_b",
                                    "torch/zip",
                                    "torch/old",
                                    "torch/shards",
                                    "v1.0.json",
                                    "v1.2.json",
                                    "families/gsa_b",
                                    "families/retnet_b",
                                    "families/linear_attn_c",
                                    "families/opt_b",
                                    "families/mistral_c",
                                    "v1.2-classifier.json",
                                    "families/marian_nmt_a",
                                    "families/marian_nmt_b",
                                    "families/marian_nmt_c",
                                    "families/marian_nmt_b+lex"};

// What a field may become; behind them, values of other fields.
const Json& Value(size_t number) {
  static const Json* const values = new Json(Json::parse(R"([null, true, false, -1, 0, 1, 2, 3, 7, 16, 33, 64, 255, 65536, 16777216,
      4294967295, 18446744073709551615, -9223372036854775808, 0.5, -0.5, 1e-300, 1e300, 1e38, "", "x", "none", "gelu", "silu", "l2",
      "default", "full_attention", [], {}, [0], [1, 2, 3], {"x": 1}, [[]], "../config.json", "F32", "I64"])"));
  return (*values)[number % values->size()];
}

using Files = std::map<std::string, std::string>;

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint32_t Take(size_t bytes) {
    uint32_t value = 0;
    bytes = std::min(bytes, size_);
    std::memcpy(&value, data_, bytes);
    data_ += bytes;
    size_ -= bytes;
    return value;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// The bytes of a safetensors file.
std::string Packed(const Json& header, const std::string& data) {
  const std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data;
}

// A folder with a config of tarn's own and random weights.
Files OwnFolder(const std::string& config) {
  tarn::convert::GraphBuilder builder(tarn::convert::Precision::kF32);
  tarn::convert::BuildModel(tarn::convert::ParseConfig(config, "config.json"), &builder);
  const tarn::convert::RandomWeights random(1);
  Json header = Json::object();
  std::string data;
  for (const tarn::convert::WeightSpec& spec : builder.weights()) {
    std::vector<float> values(tarn::convert::ElementCount(spec.shape));
    random.Read(spec, 0, values.size(), values.data());
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header[spec.name] = {{"dtype", "F32"}, {"shape", spec.shape}, {"data_offsets", {begin, data.size()}}};
  }
  return {{"config.json", config}, {"model.safetensors", Packed(header, data)}};
}

void Append(uint64_t number, size_t bytes, std::string* to) { to->append(reinterpret_cast<const char*>(&number), bytes); }

// Of a binary shortlist of Marian (checkpoint/shortlist_file.cc), whose edits are to be read and not refused for their hash alone.
void SetHash(std::string* lex) {
  uint64_t hash = 0;
  for (size_t at = 16; at + 8 <= lex->size(); at += 8) {
    uint64_t number;
    std::memcpy(&number, lex->data() + at, sizeof(number));
    hash ^= number + 0x9e3779b9 + (hash << 6) + (hash >> 2);
  }
  if (lex->size() >= 16) std::memcpy(lex->data() + 8, &hash, sizeof(hash));
}

// Of `tokens` tokens, which list themselves and the first one.
std::string Lex(uint64_t tokens) {
  std::string lex;
  for (const uint64_t number : {uint64_t{0xF11A48D5013417F5}, uint64_t{0}, uint64_t{4}, uint64_t{2}, tokens + 1, 2 * tokens}) {
    Append(number, 8, &lex);
  }
  for (uint64_t token = 0; token <= tokens; ++token) Append(2 * token, 8, &lex);
  for (uint64_t token = 0; token < tokens; ++token) {
    Append(0, 4, &lex);
    Append(token, 4, &lex);
  }
  SetHash(&lex);
  return lex;
}

bool EndsWith(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

Files ReadFolder(const std::string& path) {
  if (EndsWith(path, "+lex")) {
    Files files = ReadFolder(path.substr(0, path.size() - 4));
    files["lex.bin"] = Lex(37);
    return files;
  }
  if (EndsWith(path, ".json")) return OwnFolder(ReadFile(path));
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name != "expected.safetensors") files[name] = ReadFile(entry.path().string());
  }
  return files;
}

// One value of a JSON document becomes another one, is left out, or is there under another name.
void EditJson(Json* document, uint32_t where, uint32_t value) {
  const Json flat = document->flatten();
  std::vector<std::string> pointers;
  for (const auto& [pointer, unused] : flat.items()) pointers.push_back(pointer);
  if (pointers.empty()) return;
  Json::json_pointer at(pointers[where % pointers.size()]);
  if ((value & 0x8000) != 0 && !at.empty()) at = at.parent_pointer();  // a whole object or list
  const uint32_t kind = value >> 12 & 7, choice = value & 0xFFF;
  if (kind < 4 || at.empty()) {
    (*document)[at] = kind < 3 ? Value(choice) : flat[pointers[choice % pointers.size()]];
    return;
  }
  Json& parent = (*document)[at.parent_pointer()];
  const std::string key = at.back();
  if (parent.is_object()) {
    if (kind == 4) parent["x" + key] = parent[key];
    if (kind == 5) parent["x" + key] = parent[key], parent.erase(key);
    if (kind > 5) parent.erase(key);
  } else if (parent.is_array()) {
    if (kind == 4) parent.push_back(Value(choice));
    if (kind > 4) parent.erase(parent.size() - 1);
  }
}

void EditText(std::string* text, uint32_t where, uint32_t value) {
  Json document = Json::parse(*text, nullptr, false);
  if (document.is_discarded()) return;
  try {
    EditJson(&document, where, value);
  } catch (const Json::exception&) {  // no such place after an edit before it
  }
  *text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void EditHeader(std::string* bytes, uint32_t where, uint32_t value) {
  uint64_t length = 0;
  if (bytes->size() < sizeof(length)) return;
  std::memcpy(&length, bytes->data(), sizeof(length));
  if (length > bytes->size() - sizeof(length)) return;
  std::string header = bytes->substr(sizeof(length), length);
  EditText(&header, where, value);
  const uint64_t changed = header.size();
  *bytes = std::string(reinterpret_cast<const char*>(&changed), sizeof(changed)) + header + bytes->substr(sizeof(length) + length);
}

void EditBytes(std::string* bytes, uint32_t where, uint32_t value) {
  if (bytes->empty()) return;
  if (value >> 8 == 0xFF) return bytes->resize(bytes->size() - std::min<size_t>(bytes->size(), where));
  (*bytes)[where % bytes->size()] = static_cast<char>(value);
}

void Edit(Files* files, uint32_t what, uint32_t where, uint32_t value) {
  auto file = files->find("config.json");
  if (what % 4 != 0) {
    file = files->begin();
    std::advance(file, what / 4 % files->size());
  }
  if (file == files->end()) return;  // it got another name before
  if (what >= 252) {                 // under another name
    const std::string bytes = file->second, name = (value & 1) != 0 ? "model.pt" : "pytorch_model.bin.index.json";
    if ((value & 2) != 0) files->erase(file);
    (*files)[name] = bytes;
    return;
  }
  const bool as_bytes = what % 4 == 3;
  if (file->first == "lex.bin") {
    EditBytes(&file->second, where, value);
    return SetHash(&file->second);
  }
  if (as_bytes || EndsWith(file->first, ".bin") || EndsWith(file->first, ".npz")) return EditBytes(&file->second, where, value);
  if (EndsWith(file->first, ".json")) return EditText(&file->second, where, value);
  if (EndsWith(file->first, ".safetensors")) return EditHeader(&file->second, where, value);
}

// A directory that is gone when the process ends.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tarn_folder_fuzz_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& Hold(const Files& files) {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove(entry.path());
    for (const auto& [name, bytes] : files) std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
    return path_;
  }

 private:
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<Files>* const folders = [] {
    auto* read = new std::vector<Files>;
    for (const char* name : kFolders) read->push_back(ReadFolder(std::string("tests/data/") + name));
    return read;
  }();
  static Scratch scratch;
  Input input(data, size);
  Files files = (*folders)[input.Take(1) % folders->size()];
  tarn::convert::ConversionOptions options;
  const uint32_t precision = input.Take(1);
  options.quant = tarn::convert::PrecisionNames()[precision % 4];
  options.state = precision / 4 % 4 == 0 ? "f16" : "f32";
  if (precision / 16 % 4 == 0) options.family.max_context = 32;
  for (uint32_t edits = input.Take(1) % 8; edits > 0; --edits) {
    const uint32_t what = input.Take(1), where = input.Take(2);
    Edit(&files, what, where, input.Take(2));
  }
  options.input = scratch.Hold(files);
  tarn::convert::MemorySink sink;
  try {
    const tarn::convert::Conversion conversion(options);
    const auto builder = conversion.Build(conversion.Rules());
    tarn::convert::WriteModel(builder->graph(), conversion.weights(), &sink);
  } catch (const tarn::convert::ConvertError&) {
    return 0;  // the only way to say no
  }
  tarn::test::UseModel(sink.bytes());
  return 0;
}
