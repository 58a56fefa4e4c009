// Fields of a protocol buffer message, read in the bounds of its bytes.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_PROTOBUF_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_PROTOBUF_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tarn::convert {

// https://protobuf.dev/programming-guides/encoding
class ProtobufFields {
 public:
  // `bytes` outlive it. `where` begins every message.
  ProtobufFields(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  // The next field. False: there are no more. Errors: a field that goes on behind the end, or of a type that is not known.
  bool Next();
  uint64_t number() const { return number_; }
  // The value of the field. Errors: it has another type.
  uint64_t Integer() const;
  float Number() const;
  std::string_view Bytes() const;

 private:
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint64_t TakeVarint();
  std::string_view Take(uint64_t size);
  void Require(Type type) const;

  std::string_view bytes_;
  std::string where_;
  size_t at_ = 0;
  uint64_t number_ = 0;
  Type type_ = Type::kVarint;
  uint64_t integer_ = 0;
  std::string_view value_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_PROTOBUF_H_
