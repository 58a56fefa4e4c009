#include "tools/convert/checkpoint/npz.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tools/convert/checkpoint/zip.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6), kEnding = ".npy";
constexpr size_t kMaxDimensions = 8, kMaxDigits = 15;  // no number of so many overflows

constexpr Choice<StoredType> kDescriptions[] = {{"<f4", StoredType::kF32}, {"<f2", StoredType::kF16}, {"<f8", StoredType::kF64},
                                                {"|i1", StoredType::kI8},  {"<i1", StoredType::kI8},  {"|u1", StoredType::kU8},
                                                {"<u1", StoredType::kU8},  {"<i2", StoredType::kI16}, {"<u2", StoredType::kU16},
                                                {"<i4", StoredType::kI32}, {"<u4", StoredType::kU32}, {"<i8", StoredType::kI64},
                                                {"<u8", StoredType::kU64}, {"|b1", StoredType::kBool}};

// The dictionary of a header, which is Python.
class Header {
 public:
  Header(std::string_view text, const std::string& where) : rest_(text), where_(where) {}

  StoredTensor Read() {
    Expect('{');
    bool has_type = false, has_order = false, has_shape = false;
    while (!Accept('}')) {
      const std::string key = Quoted();
      Expect(':');
      if (key == "descr" && !has_type) {
        has_type = true;
        ReadType();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        if (!AcceptWord("False")) Fail(where_, ": fortran_order: False expected; save numpy.ascontiguousarray(array)");
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        ReadShape();
      } else {
        Fail(where_, ": ", ValueText(Json(key)), " in the header: descr, fortran_order and shape expected, each once");
      }
      if (Accept(',')) continue;
      Expect('}');
      break;
    }
    SkipSpace();
    if (!rest_.empty() || !has_type || !has_order || !has_shape) FailDamaged();
    return tensor_;
  }

 private:
  [[noreturn]] void FailDamaged() const {
    Fail(where_, ": its header is damaged, {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } expected");
  }

  void SkipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }

  bool Accept(char c) {
    SkipSpace();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool AcceptWord(std::string_view word) {
    SkipSpace();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void Expect(char c) {
    if (!Accept(c)) FailDamaged();
  }

  std::string Quoted() {
    Expect('\'');
    const size_t end = rest_.find('\'');
    if (end == std::string_view::npos) FailDamaged();
    const std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  void ReadType() {
    const std::string type = Quoted();
    const auto* const found =
        std::find_if(std::begin(kDescriptions), std::end(kDescriptions), [&](const auto& known) { return type == known.name; });
    if (found == std::end(kDescriptions))
      Fail(where_, ": descr: ", ValueText(Json(type)), " is not supported, '<f4' or '<f2' expected");
    tensor_.dtype = found->value;
  }

  void ReadShape() {
    Expect('(');
    while (!Accept(')')) {
      SkipSpace();
      const size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      if (digits == 0 || digits > kMaxDigits || tensor_.shape.size() == kMaxDimensions) FailDamaged();
      tensor_.shape.push_back(std::stoull(std::string(rest_.substr(0, digits))));
      rest_.remove_prefix(digits);
      if (__builtin_mul_overflow(tensor_.elements, tensor_.shape.back(), &tensor_.elements)) {
        Fail(where_, ": shape: ", ShapeText(tensor_.shape), " overflows");
      }
      if (Accept(',')) continue;
      Expect(')');
      break;
    }
  }

  std::string_view rest_;
  const std::string& where_;
  StoredTensor tensor_{StoredType::kF32, {}, nullptr, 1};
};

StoredTensor ParseNpy(const uint8_t* data, uint64_t size, const std::string& where) {
  const uint64_t version_at = kMagic.size();
  if (size < version_at + 4 || std::memcmp(data, kMagic.data(), version_at) != 0) Fail(where, ": no array of NumPy");
  const unsigned version = data[version_at];
  if (version < 1 || version > 3 || data[version_at + 1] != 0) {
    Fail(where, ": version ", version, ".", unsigned{data[version_at + 1]}, " of .npy, 1.0 to 3.0 expected");
  }
  const uint64_t header_at = version_at + (version == 1 ? 4 : 6);
  uint32_t length = 0;
  if (size >= header_at) std::memcpy(&length, data + version_at + 2, header_at - version_at - 2);
  if (size < header_at || length > size - header_at) Fail(where, ": ", size, " bytes end inside the header: truncated");
  StoredTensor tensor = Header({reinterpret_cast<const char*>(data) + header_at, length}, where).Read();
  const uint64_t bytes = size - header_at - length, width = ElementBytes(tensor.dtype);
  if (bytes / width != tensor.elements || bytes % width != 0) {
    Fail(where, ": ", StoredTypeName(tensor.dtype), " ", ShapeText(tensor.shape), " does not fit the ", bytes,
         " bytes behind the header");
  }
  tensor.data = data + header_at + length;
  return tensor;
}

}  // namespace

std::map<std::string, StoredTensor> ParseNpz(const uint8_t* data, size_t size, const std::string& name) {
  std::map<std::string, StoredTensor> arrays;
  for (const auto& [entry, place] : ReadZip(data, size, name)) {
    const std::string where = name + ": " + ValueText(Json(entry));
    if (entry.size() <= kEnding.size() || entry.substr(entry.size() - kEnding.size()) != kEnding) {
      Fail(where, ": a name that ends in .npy expected");
    }
    if (!place.stored) Fail(where, ": is compressed; save it with numpy.savez");
    arrays.emplace(entry.substr(0, entry.size() - kEnding.size()), ParseNpy(data + place.begin, place.bytes, where));
  }
  return arrays;
}

}  // namespace tarn::convert
