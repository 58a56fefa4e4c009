#include "tools/convert/checkpoint/marian_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/convert/checkpoint/marian_options.h"
#include "tools/convert/checkpoint/npz.h"
#include "tools/convert/checkpoint/zip.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

constexpr uint64_t kVersion = 1;
constexpr uint64_t kMaxDimensions = 8, kMaxName = 4096, kMaxOptions = 1'000'000;
constexpr char kOptions[] = "special:model.yml";
constexpr std::string_view kActivationScale = "_QuantMultA";

// Types by their numbers; of intgemm's 8 bits, those of both versions of Marian that write them.
constexpr uint64_t kIntgemm8[] = {0x4101, 0x10001};
struct Type {
  uint64_t number;
  StoredType dtype;
};
constexpr Type kTypes[] = {{0x404, StoredType::kF32},
                           {0x402, StoredType::kF16},
                           {0x408, StoredType::kF64},
                           {0x101, StoredType::kI8},
                           {0x102, StoredType::kI16},
                           {0x104, StoredType::kI32},
                           {0x108, StoredType::kI64},
                           {0x201, StoredType::kU8},
                           {0x202, StoredType::kU16},
                           {0x204, StoredType::kU32},
                           {0x208, StoredType::kU64},
                           {kIntgemm8[0], StoredType::kQuantizedI8},
                           {kIntgemm8[1], StoredType::kQuantizedI8}};

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

class Binary {
 public:
  Binary(const uint8_t* data, size_t size, const std::string& name) : data_(data), size_(size), name_(name) {}

  std::map<std::string, StoredTensor> Read() {
    const auto version = Take<uint64_t>("version");
    if (version != kVersion) Fail(name_, ": version ", version, " of Marian's files, ", kVersion, " expected");
    const auto count = Take<uint64_t>("number of items");
    if (count > (size_ - at_) / sizeof(Item::header)) FailAtSize("number of items", count);
    std::vector<Item> items(count);
    for (Item& item : items) {
      for (uint64_t& number : item.header) number = Take<uint64_t>("headers");
    }
    for (Item& item : items) ReadName(&item);
    for (Item& item : items) ReadShape(&item);
    Skip(Take<uint64_t>("padding"), "padding");
    std::map<std::string, StoredTensor> tensors;
    for (Item& item : items) {
      ReadData(&item);
      if (!tensors.emplace(item.name, item.tensor).second) Fail(name_, ": item ", ValueText(Json(item.name)), " is there twice");
    }
    if (at_ != size_) Fail(name_, ": ", size_ - at_, " bytes behind the last item");
    return tensors;
  }

 private:
  struct Item {
    uint64_t header[4];  // bytes of the name, type, dimensions, bytes of the data
    std::string name;
    StoredTensor tensor{StoredType::kF32, {}, nullptr, 1};
  };

  [[noreturn]] void FailAtSize(const std::string& what, uint64_t number) const {
    Fail(name_, ": ", what, ": ", number, " do not fit the file of ", size_, " bytes: truncated or damaged");
  }

  void Skip(uint64_t bytes, const std::string& what) {
    if (bytes > size_ - at_) FailAtSize(what + " (bytes)", bytes);
    at_ += bytes;
  }

  template <typename T>
  T Take(const char* what) {
    T value;
    const uint64_t at = at_;
    Skip(sizeof(value), what);
    std::memcpy(&value, data_ + at, sizeof(value));
    return value;
  }

  void ReadName(Item* item) {
    const uint64_t bytes = item->header[0], at = at_;
    Skip(bytes, "name");
    if (bytes < 2 || bytes > kMaxName || data_[at_ - 1] != 0)
      Fail(name_, ": a name of ", bytes, " bytes, 1 to ", kMaxName - 1, " and a zero expected");
    item->name.assign(reinterpret_cast<const char*>(data_ + at), bytes - 1);
  }

  std::string Where(const Item& item) const { return name_ + ": item " + ValueText(Json(item.name)); }

  void ReadShape(Item* item) {
    if (item->header[2] > kMaxDimensions)
      Fail(Where(*item), ": ", item->header[2], " dimensions, at most ", kMaxDimensions, " expected");
    for (uint64_t i = 0; i < item->header[2]; ++i) {
      const auto dimension = Take<int32_t>("shape");
      if (dimension < 0) Fail(Where(*item), ": shape: ", dimension, " is not a size");
      item->tensor.shape.push_back(static_cast<uint64_t>(dimension));
      if (__builtin_mul_overflow(item->tensor.elements, item->tensor.shape.back(), &item->tensor.elements)) {
        Fail(Where(*item), ": shape: ", ShapeText(item->tensor.shape), " overflows");
      }
    }
  }

  // The data may be padded.
  void ReadData(Item* item) {
    StoredTensor& tensor = item->tensor;
    const uint64_t number = item->header[1], bytes = item->header[3];
    const auto* const type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& known) { return known.number == number; });
    if (type == std::end(kTypes)) {
      Fail(Where(*item), ": type ", number,
           " is packed for one kind of processor or has other than 8 bits; convert model.npz or a float32 .bin");
    }
    tensor.dtype = type->dtype;
    tensor.data = data_ + at_;
    Skip(bytes, item->name);
    const bool quantized = tensor.dtype == StoredType::kQuantizedI8;
    uint64_t needed = 0;
    if (__builtin_mul_overflow(tensor.elements, ElementBytes(tensor.dtype), &needed) ||
        __builtin_add_overflow(needed, quantized ? sizeof(float) : 0, &needed) || needed > bytes) {
      Fail(Where(*item), ": ", StoredTypeName(tensor.dtype), " ", ShapeText(tensor.shape), " does not fit its ", bytes, " bytes");
    }
    if (quantized) SetQuantization(*item, &tensor);
  }

  void SetQuantization(const Item& item, StoredTensor* tensor) const {
    float multiplier = 0;
    std::memcpy(&multiplier, tensor->data + tensor->elements, sizeof(multiplier));
    tensor->scale = 1 / multiplier;
    if (!std::isfinite(tensor->scale) || !std::isfinite(multiplier) || multiplier <= 0) {
      Fail(Where(item), ": it was multiplied by ", multiplier, ", a number above 0 expected");
    }
    if (item.name.find("Wemb") != std::string::npos) return;
    if (tensor->shape.size() != 2) Fail(Where(item), ": ", ShapeText(tensor->shape), ", a matrix expected");
    tensor->strides = std::make_shared<const Strides>(Strides{tensor->shape, {1, tensor->shape[0]}});
  }

  const uint8_t* const data_;
  const uint64_t size_;
  const std::string& name_;
  uint64_t at_ = 0;
};

// Whether a .bin is one of Marian: its version stands where other files have a magic number.
bool BeginsAsBinary(const std::string& path) {
  uint64_t version = 0;
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  const bool read = std::fread(&version, sizeof(version), 1, file) == 1;
  std::fclose(file);
  return read && version == kVersion;
}

}  // namespace

std::string FindMarianFile(const std::string& folder) {
  std::set<std::string> found;
  std::error_code failed;  // then there are none
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::filesystem::path& path = entry.path();
    if (!std::filesystem::is_regular_file(path, failed)) continue;
    if (path.extension() == ".npz" || (path.extension() == ".bin" && BeginsAsBinary(path))) found.insert(path.filename().string());
  }
  if (found.count("model.npz") != 0) return "model.npz";
  if (found.size() > 1) Fail(folder, ": has ", *found.begin(), " and ", *std::next(found.begin()), ": which of them is the model?");
  return found.empty() ? "" : *found.begin();
}

std::map<std::string, StoredTensor> ParseMarianFile(const uint8_t* data, size_t size, const std::string& name) {
  std::map<std::string, StoredTensor> items = IsZip(data, size) ? ParseNpz(data, size, name) : Binary(data, size, name).Read();
  for (auto item = items.begin(); item != items.end();)
    item = EndsWith(item->first, kActivationScale) ? items.erase(item) : std::next(item);
  return items;
}

std::string TakeMarianOptions(std::map<std::string, StoredTensor>* items, const std::string& name) {
  const auto item = items->find(kOptions);
  if (item == items->end()) Fail(name, ": ", kOptions, " is missing: is it a model of Marian?");
  const StoredTensor options = item->second;
  if (options.dtype != StoredType::kI8 || options.elements > kMaxOptions) {
    Fail(name, ": ", kOptions, ": found ", StoredTypeName(options.dtype), " ", ShapeText(options.shape), ", expected at most ",
         kMaxOptions, " bytes of text");
  }
  std::string_view text(reinterpret_cast<const char*>(options.data), options.elements);
  text = text.substr(0, text.find('\0'));
  items->erase(item);
  return MarianOptions(text, name + ": " + kOptions);
}

}  // namespace tarn::convert
