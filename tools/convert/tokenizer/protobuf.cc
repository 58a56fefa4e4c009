#include "tools/convert/tokenizer/protobuf.h"

#include <cstring>

#include "tools/convert/json/error.h"

namespace tarn::convert {

uint64_t ProtobufFields::TakeVarint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(Take(1)[0]);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  Fail(where_, ": byte ", at_, ": a number of more than 10 bytes");
}

std::string_view ProtobufFields::Take(uint64_t size) {
  const size_t rest = bytes_.size() - at_;
  if (size > rest) Fail(where_, ": byte ", at_, ": ", size, " bytes expected, ", rest, " are left");
  const std::string_view taken = bytes_.substr(at_, static_cast<size_t>(size));
  at_ += taken.size();
  return taken;
}

bool ProtobufFields::Next() {
  if (at_ == bytes_.size()) return false;
  const size_t begin = at_;
  const uint64_t key = TakeVarint();
  number_ = key >> 3;
  type_ = static_cast<Type>(key & 7);
  switch (type_) {
    case Type::kVarint:
      integer_ = TakeVarint();
      return true;
    case Type::kFixed64:
      value_ = Take(8);
      return true;
    case Type::kBytes:
      value_ = Take(TakeVarint());
      return true;
    case Type::kFixed32:
      value_ = Take(4);
      return true;
  }
  Fail(where_, ": byte ", begin, ": a field of type ", key & 7, ", 0, 1, 2 or 5 expected: the file is damaged or no protobuf file");
}

void ProtobufFields::Require(Type type) const {
  if (type_ == type) return;
  Fail(where_, ": field ", number_, " has type ", static_cast<int>(type_), ", ", static_cast<int>(type), " expected");
}

uint64_t ProtobufFields::Integer() const {
  Require(Type::kVarint);
  return integer_;
}

float ProtobufFields::Number() const {
  Require(Type::kFixed32);
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; ++i) bits |= uint32_t{static_cast<uint8_t>(value_[i])} << 8 * i;
  float number;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

std::string_view ProtobufFields::Bytes() const {
  Require(Type::kBytes);
  return value_;
}

}  // namespace tarn::convert
