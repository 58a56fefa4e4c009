#include "tools/common/npy.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>

#include "tools/common/failure.h"
#include "tools/common/integer.h"

namespace tarn::tools {
namespace {

const std::string kMagic = "\x93NUMPY";

// The dictionary of a header, as text: {'descr': '<i4', 'fortran_order': False, 'shape': (3,), } in any order of its keys.
std::map<std::string, std::string> ParseHeader(const std::string& header, const std::string& name) {
  std::string text;
  std::copy_if(header.begin(), header.end(), std::back_inserter(text),
               [](unsigned char letter) { return std::isspace(letter) == 0; });
  std::replace(text.begin(), text.end(), '"', '\'');
  const Failure bad(name + ": the .npy header is no dictionary of descr, fortran_order and shape");
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') throw bad;
  text = text.substr(1, text.size() - 2);

  std::map<std::string, std::string> fields;
  for (size_t at = 0; at < text.size();) {
    const size_t colon = text.find("':", at);
    if (text[at] != '\'' || colon == std::string::npos) throw bad;
    const std::string key = text.substr(at + 1, colon - at - 1);
    const size_t begin = colon + 2;
    // A tuple has commas of its own.
    const bool tuple = begin < text.size() && text[begin] == '(';
    const size_t close = tuple ? text.find(')', begin) : begin;
    if (close == std::string::npos) throw bad;
    const size_t end = std::min(text.find(',', close), text.size());
    fields[key] = text.substr(begin, end - begin);
    at = end + 1;
  }
  if (fields.size() != 3 || fields.count("descr") + fields.count("fortran_order") + fields.count("shape") != 3) throw bad;
  return fields;
}

// "(12,)" -> 12
uint64_t ParseLength(const std::string& shape, const std::string& name) {
  const std::string digits = shape.size() > 3 ? shape.substr(1, shape.size() - 3) : "";
  const std::optional<uint64_t> length = ParseInteger<uint64_t>(digits, 0, UINT64_MAX);
  if (!length || shape != "(" + digits + ",)") {
    throw Failure(name + ": the .npy array has shape " + shape + ", expected one dimension of token ids");
  }
  return *length;
}

}  // namespace

std::vector<int32_t> ParseNpyTokens(const std::string& bytes, const std::string& name) {
  if (bytes.compare(0, kMagic.size(), kMagic) != 0 || bytes.size() < 8) {
    throw Failure(name + ": not a .npy file, and the model has no tokenizer: expected a .npy file of int32 token ids");
  }
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version != 1 && version != 2) {
    throw Failure(name + ": .npy format version " + std::to_string(version) + ", expected 1 or 2");
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t header_bytes = 0;
  if (bytes.size() >= 8 + length_bytes) std::memcpy(&header_bytes, bytes.data() + 8, length_bytes);  // little-endian, as we are
  const size_t data_offset = 8 + length_bytes + header_bytes;
  if (bytes.size() < data_offset) {
    throw Failure(name + ": " + std::to_string(bytes.size()) + " bytes, the .npy header alone needs " +
                  std::to_string(data_offset));
  }
  auto fields = ParseHeader(bytes.substr(8 + length_bytes, header_bytes), name);
  if (fields["descr"] != "'<i4'") throw Failure(name + ": the .npy array has type " + fields["descr"] + ", expected '<i4' (int32)");
  if (fields["fortran_order"] != "False")
    throw Failure(name + ": fortran_order is " + fields["fortran_order"] + ", expected False");

  const uint64_t count = ParseLength(fields["shape"], name);
  if ((bytes.size() - data_offset) / sizeof(int32_t) != count || (bytes.size() - data_offset) % sizeof(int32_t) != 0) {
    throw Failure(name + ": " + std::to_string(bytes.size() - data_offset) + " bytes of data, shape " + fields["shape"] +
                  " wants 4 for each id");
  }
  std::vector<int32_t> tokens(count);
  if (count != 0) std::memcpy(tokens.data(), bytes.data() + data_offset, count * sizeof(int32_t));
  return tokens;
}

std::string NpyHeader(uint64_t rows, uint64_t columns) {
  constexpr size_t kAlignment = 64;
  std::string dictionary =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  // Spaces and a newline up to where the values begin.
  const size_t used = kMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  dictionary += '\n';
  const auto size = static_cast<uint16_t>(dictionary.size());
  return kMagic + '\x01' + '\0' + static_cast<char>(size & 0xFF) + static_cast<char>(size >> 8) + dictionary;
}

}  // namespace tarn::tools
