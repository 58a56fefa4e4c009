#include "tools/convert/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/visible.h"
#include "tools/convert/checkpoint/half.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are copied as they lie in the file");

namespace tarn::convert {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;      // the limit of the format's own library
constexpr uint64_t kMaxDataBytes = uint64_t{1} << 62;  // no sum of sizes overflows
constexpr size_t kMaxDimensions = 8;

constexpr Choice<StoredType> kTypes[] = {
    {"F32", StoredType::kF32},   {"F16", StoredType::kF16},        {"BF16", StoredType::kBf16},     {"I32", StoredType::kI32},
    {"F64", StoredType::kF64},   {"I64", StoredType::kI64},        {"U64", StoredType::kU64},       {"U32", StoredType::kU32},
    {"I16", StoredType::kI16},   {"U16", StoredType::kU16},        {"I8", StoredType::kI8},         {"U8", StoredType::kU8},
    {"BOOL", StoredType::kBool}, {"F8_E4M3", StoredType::kF8E4M3}, {"F8_E5M2", StoredType::kF8E5M2}};

uint64_t Unsigned(const Fields& fields, const char* key, const Json& value) {
  if (!value.is_number_unsigned()) fields.FailAt(key, ValueText(value) + " is not a non-negative integer");
  return value.get<uint64_t>();
}

struct Range {
  uint64_t begin, end;
  const std::string* name;
  bool operator<(const Range& other) const { return std::tie(begin, end) < std::tie(other.begin, other.end); }
};

// One entry of the header; `range` becomes its data_offsets.
StoredTensor ParseEntry(Fields* fields, Range* range) {
  StoredTensor tensor{fields->OneOf<StoredType>("dtype", kTypes, std::nullopt, " (weights: F32, F16 or BF16)"), {}, nullptr, 1};

  const Json* shape = fields->Find("shape");
  if (shape == nullptr || !shape->is_array()) fields->FailAt("shape", "an array of integers is missing");
  if (shape->size() > kMaxDimensions) fields->FailAt("shape", ValueText(*shape) + " has too many dimensions");
  for (const Json& dimension : *shape) tensor.shape.push_back(Unsigned(*fields, "shape", dimension));
  for (const uint64_t dimension : tensor.shape) {
    if (__builtin_mul_overflow(tensor.elements, dimension, &tensor.elements)) {
      fields->FailAt("shape", ShapeText(tensor.shape) + " overflows");
    }
  }
  uint64_t bytes;
  if (__builtin_mul_overflow(tensor.elements, ElementBytes(tensor.dtype), &bytes)) {
    fields->FailAt("shape", ShapeText(tensor.shape) + " overflows");
  }

  const Json* offsets = fields->Find("data_offsets");
  if (offsets == nullptr || !offsets->is_array() || offsets->size() != 2) {
    fields->FailAt("data_offsets", "an array of two integers is missing");
  }
  range->begin = Unsigned(*fields, "data_offsets", (*offsets)[0]);
  range->end = Unsigned(*fields, "data_offsets", (*offsets)[1]);
  if (range->begin > range->end || range->end > kMaxDataBytes) {
    fields->FailAt("data_offsets", ValueText(*offsets) + " is not ascending, or above " + std::to_string(kMaxDataBytes));
  }
  if (range->end - range->begin != bytes) {
    fields->FailAt("data_offsets", ValueText(*offsets) + " spans " + std::to_string(range->end - range->begin) + " bytes, " +
                                       StoredTypeName(tensor.dtype) + " " + ShapeText(tensor.shape) + " needs " +
                                       std::to_string(bytes));
  }
  fields->Finish();
  return tensor;
}

void ParseMetadata(const Json& object, const std::string& name, std::map<std::string, std::string>* metadata) {
  if (!object.is_object()) Fail(name, ": __metadata__: ", ValueText(object), " is not an object");
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) Fail(name, ": __metadata__: ", key, ": ", ValueText(value), " is not a string");
    metadata->emplace(key, value.get<std::string>());
  }
}

// Errors: the ranges end behind the data: a copy or a download that was cut.
void CheckComplete(const std::vector<Range>& ranges, uint64_t data_begin, uint64_t size, const std::string& name) {
  uint64_t end = 0;
  for (const Range& range : ranges) end = std::max(end, range.end);
  if (data_begin + end <= size) return;
  Fail(name, ": ", size, " bytes, expected ", data_begin + end, " (header): truncated; copy it again");
}

void CheckNoHoles(std::vector<Range> ranges, uint64_t data_bytes, const std::string& name) {
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = 0;
  const std::string* previous = nullptr;
  for (const Range& range : ranges) {
    if (range.begin < end) {
      Fail(name, ": tensor \"", *range.name, "\": data_offsets: begins at ", range.begin, ", inside tensor \"", *previous, "\"");
    }
    if (range.begin > end) {
      Fail(name, ": tensor \"", *range.name, "\": data_offsets: begins at ", range.begin, ", bytes ", end, " .. ", range.begin,
           " belong to no tensor");
    }
    end = range.end;
    previous = range.name;
  }
  if (end != data_bytes) {
    Fail(name, ": bytes ", end, " .. ", data_bytes, " of the data belong to no tensor: the file was changed; copy it again");
  }
}

// 'a', or 0x03.
std::string ByteText(uint8_t byte) {
  if (byte > 0x20 && byte < 0x7F) return {'\'', static_cast<char>(byte), '\''};
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

void ReadRun(const StoredTensor& tensor, uint64_t first, uint64_t count, float* out);

// Elements by their row-major numbers, each from where its strides say.
void ReadStrided(StoredTensor tensor, uint64_t first, uint64_t count, float* out) {
  const std::shared_ptr<const Strides> layout = std::move(tensor.strides);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t rest = first + i, at = 0;
    for (size_t d = layout->shape.size(); d-- > 0; rest /= layout->shape[d]) at += rest % layout->shape[d] * layout->strides[d];
    ReadRun(tensor, at, 1, out + i);
  }
}

// Elements that lie one after the other, unless strides say more.
void ReadRun(const StoredTensor& tensor, uint64_t first, uint64_t count, float* out) {
  if (tensor.strides != nullptr) return ReadStrided(tensor, first, count, out);
  const uint8_t* source = tensor.data + first * ElementBytes(tensor.dtype);
  if (tensor.dtype == StoredType::kF32) {
    if (count > 0) std::memcpy(out, source, count * sizeof(float));
    return;
  }
  if (tensor.dtype == StoredType::kQuantizedI8) {
    for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(source[i]);
    return;
  }
  const bool bf16 = tensor.dtype == StoredType::kBf16;
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, source + 2 * i, sizeof(bits));
    out[i] = bf16 ? FloatOfBf16(bits) : FloatOfF16(bits);
  }
}

// Elements of rows in another order, or of a matrix that is stored as its transposed.
void ReadRows(const StoredTensor& tensor, uint64_t first, uint64_t count, float* out) {
  if (count == 0) return;
  const uint64_t columns = tensor.elements / (tensor.row_order == nullptr ? tensor.shape[0] : tensor.row_order->size());
  const auto row_of = [&](uint64_t row) { return tensor.row_order == nullptr ? row : (*tensor.row_order)[row]; };
  if (tensor.column_stride != 0) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t row = row_of((first + i) / columns), column = (first + i) % columns;
      ReadRun(tensor, tensor.first + row + column * tensor.column_stride, 1, out + i);
    }
    return;
  }
  for (uint64_t done = 0; done < count;) {
    const uint64_t column = (first + done) % columns, run = std::min(columns - column, count - done);
    ReadRun(tensor, tensor.first + row_of((first + done) / columns) * columns + column, run, out + done);
    done += run;
  }
}

}  // namespace

uint64_t ElementBytes(StoredType dtype) {
  switch (dtype) {
    case StoredType::kF64:
    case StoredType::kI64:
    case StoredType::kU64:
      return 8;
    case StoredType::kF32:
    case StoredType::kI32:
    case StoredType::kU32:
      return 4;
    case StoredType::kF16:
    case StoredType::kBf16:
    case StoredType::kI16:
    case StoredType::kU16:
      return 2;
    default:
      return 1;
  }
}

const char* StoredTypeName(StoredType dtype) {
  if (dtype == StoredType::kQuantizedI8) return "I8 with a scale";
  for (const auto& type : kTypes) {
    if (type.value == dtype) return type.name;
  }
  return "?";
}

// What people have in place of a safetensors file, and what to do; "" where it is not known.
static std::string_view WhatElse(const uint8_t* data) {
  constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"\x1f\x8b\b", "a gzip file: unpack it"},
      {"PK\3\4", "a ZIP archive: a file of torch.save() is called pytorch_model.bin"},
      {"GGUF", "a GGUF file, which is not read"},
      {"version ", "a Git LFS pointer: git lfs pull"},
  };
  for (const auto& [magic, is] : kKnown) {
    if (std::memcmp(data, magic.data(), magic.size()) == 0) return is;
  }
  return LooksLikeText(data, kLengthBytes) ? "a text, perhaps the page of an error: fetch it again" : "";
}

Safetensors ParseSafetensors(const uint8_t* data, size_t size, const std::string& name) {
  if (size < kLengthBytes) Fail(name, ": ", size, " bytes are too few for a safetensors file");
  uint64_t header_bytes;
  std::memcpy(&header_bytes, data, kLengthBytes);
  if (header_bytes > kMaxHeaderBytes) {
    if (const std::string_view is = WhatElse(data); !is.empty()) Fail(name, ": not a safetensors file but ", is);
    Fail(name, ": header length ", header_bytes, " is above ", kMaxHeaderBytes, ": not a safetensors file");
  }
  if (header_bytes > size - kLengthBytes) {
    if (size > kLengthBytes && data[kLengthBytes] != '{') {
      Fail(name, ": byte 8 is ", ByteText(data[kLengthBytes]), ", expected '{', which begins a header: not a safetensors file");
    }
    Fail(name, ": ", size, " bytes, expected at least ", kLengthBytes + header_bytes,
         " (length of its header): truncated; copy it again");
  }
  const uint64_t data_begin = kLengthBytes + header_bytes;
  const std::string_view text(reinterpret_cast<const char*>(data) + kLengthBytes, header_bytes);

  Safetensors result;
  std::vector<Range> ranges;
  ReadMembers(text, name + ": header", [&](const std::string& key, const Json& value) {
    if (key == "__metadata__") return ParseMetadata(value, name, &result.metadata);
    Fields fields(value, name + ": tensor " + ValueText(key));
    Range range{};
    StoredTensor tensor = ParseEntry(&fields, &range);
    range.name = &result.tensors.emplace(key, std::move(tensor)).first->first;
    ranges.push_back(range);
  });
  CheckComplete(ranges, data_begin, size, name);
  for (const Range& range : ranges) result.tensors.at(*range.name).data = data + data_begin + range.begin;
  CheckNoHoles(std::move(ranges), size - data_begin, name);
  return result;
}

void ReadAsF32(const StoredTensor& tensor, uint64_t first, uint64_t count, float* out) {
  const uint64_t stored = tensor.elements - tensor.appended,
                 appended = first + count - std::min(first + count, std::max(first, stored));
  std::fill(out + (count - appended), out + count, tensor.appended_value);
  count -= appended;
  if (tensor.data == nullptr) {
    std::fill(out, out + count, 0.0f);
  } else if (tensor.column_stride == 0 && tensor.row_order == nullptr) {
    ReadRun(tensor, tensor.first + first, count, out);
  } else {
    ReadRows(tensor, first, count, out);
  }
  if (tensor.scale < 1 || tensor.scale > 1 || tensor.added < 0 || tensor.added > 0) {
    for (uint64_t i = 0; i < count; ++i) out[i] = tensor.scale * out[i] + tensor.added;
  }
  if (tensor.added_row == nullptr) return;
  std::vector<float> added(tensor.added_row->elements);
  ReadAsF32(*tensor.added_row, 0, added.size(), added.data());
  for (uint64_t i = 0; i < count; ++i) out[i] += added[(first + i) % added.size()];
}

}  // namespace tarn::convert
