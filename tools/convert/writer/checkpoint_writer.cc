#include "tools/convert/writer/checkpoint_writer.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"
#include "tools/convert/json/mapped_file.h"
#include "tools/convert/writer/output_file.h"

namespace tarn::convert {
namespace {

constexpr uint64_t kBlock = 1 << 16;  // elements that are in memory at a time

// The header of a .safetensors file: its length in 8 bytes, then JSON, padded with spaces to a multiple of 8.
std::string Header(const std::vector<WeightSpec>& specs) {
  Json header = Json::object();
  uint64_t end = 0;
  for (const WeightSpec& spec : specs) {
    const uint64_t begin = end;
    end += ElementCount(spec.shape) * sizeof(float);
    header[spec.name] = {{"dtype", "F32"}, {"shape", spec.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length;
  for (uint64_t i = 0; i < 8; ++i) length += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return length + text;
}

void WriteFile(const std::string& path, const std::vector<std::string>& inputs, const void* bytes, size_t count) {
  OutputFile file(path, inputs);
  file.Write(bytes, count);
  file.Commit();
}

uint64_t WriteWeights(const CheckpointSource& source, const std::string& path,
                      const std::function<void(uint64_t elements)>& progress) {
  OutputFile file(path, source.inputs);
  const std::string header = Header(source.specs);
  file.Write(header.data(), header.size());
  uint64_t bytes = header.size();
  std::vector<float> block(kBlock);
  for (const WeightSpec& spec : source.specs) {
    const uint64_t elements = ElementCount(spec.shape);
    for (uint64_t first = 0; first < elements; first += kBlock) {
      const uint64_t count = std::min(kBlock, elements - first);
      source.weights.Read(spec, first, count, block.data());
      file.Write(block.data(), count * sizeof(float));
      bytes += count * sizeof(float);
      progress(count);
    }
  }
  file.Commit();
  return bytes;
}

}  // namespace

uint64_t WriteCheckpoint(const CheckpointSource& source, const std::string& folder,
                         const std::function<void(uint64_t elements)>& progress) {
  const std::string config = folder + "/config.json";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) Fail(folder, ": cannot be made: ", error.message());
  const std::string weights = folder + "/model.safetensors";
  for (const std::string& path : {config, weights}) {
    if (std::filesystem::exists(path, error)) Fail(path, ": exists; name another directory, or remove that one");
  }
  constexpr char kTokenizerConfig[] = "tokenizer_config.json";
  for (const std::string& name : source.texts) {
    if (name == kTokenizerConfig) continue;
    const MappedFile file(source.folder + "/" + name);
    WriteFile(folder + "/" + name, source.inputs, file.data(), file.size());
  }
  const std::string& said = source.tokenizer_config;
  if (!said.empty()) WriteFile(folder + "/" + kTokenizerConfig, source.inputs, said.data(), said.size());
  const uint64_t bytes = WriteWeights(source, weights, progress);
  std::string text = source.config_text;
  if (text.empty() || text.back() != '\n') text += '\n';
  WriteFile(config, source.inputs, text.data(), text.size());
  return bytes;
}

}  // namespace tarn::convert
