#include "tests/fuzz/graph_fields.h"

#include <cstring>
#include <set>
#include <utility>

#include "reflected/tarn_generated.h"

namespace tarn::test {
namespace {

using flatbuffers::TypeCode;
using flatbuffers::TypeTable;

constexpr uint32_t kMostElements = 64;  // of one vector

class Walker {
 public:
  explicit Walker(const uint8_t* graph) : graph_(graph) {}

  std::vector<Field> Walk() {
    Table(Target(0), format::ModelTypeTable());
    return std::move(fields_);
  }

 private:
  template <typename T>
  T Load(uint32_t at) const {
    T value;
    std::memcpy(&value, graph_ + at, sizeof(value));
    return value;
  }
  uint32_t Target(uint32_t at) const { return at + Load<uint32_t>(at); }

  void Add(Field::Kind kind, uint32_t bytes, uint32_t at, uint32_t type = 0) {
    fields_.push_back({kind, static_cast<uint8_t>(bytes), at, type});
  }

  // Equal for tables of one type, for strings, and for vectors of one kind of element.
  static uint32_t TypeOf(TypeCode code, const TypeTable* type) {
    uint32_t number = code.base_type + (code.is_repeating ? 16u : 0u);
    for (size_t i = 0; type != nullptr && i < type->num_elems; ++i) number = number * 31 + type->type_codes[i].base_type + 1;
    return number;
  }

  static uint32_t Bytes(TypeCode code) {
    static constexpr uint8_t kBytes[] = {1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};  // in the order of ElementaryType
    return kBytes[code.base_type];
  }

  void Scalar(TypeCode code, uint32_t at) {
    const bool is_float = code.base_type == flatbuffers::ET_FLOAT || code.base_type == flatbuffers::ET_DOUBLE;
    Add(is_float ? Field::Kind::kFloat : Field::Kind::kInteger, Bytes(code), at);
  }

  static const TypeTable* Refers(TypeCode code, const TypeTable* type) {
    return code.sequence_ref >= 0 ? type->type_refs[code.sequence_ref]() : nullptr;
  }

  void Struct(uint32_t at, const TypeTable* type) {
    for (size_t i = 0; i < type->num_elems; ++i) Scalar(type->type_codes[i], at + static_cast<uint32_t>(type->values[i]));
  }

  void String(uint32_t at) {
    Add(Field::Kind::kLength, 4, at);
    for (uint32_t i = 0; i < 4 && i < Load<uint32_t>(at); ++i) Add(Field::Kind::kInteger, 1, at + 4 + i);
  }

  void Vector(uint32_t at, TypeCode code, const TypeTable* element) {
    Add(Field::Kind::kLength, 4, at);
    const bool is_struct = element != nullptr && element->st == flatbuffers::ST_STRUCT;
    const bool is_reference =
        code.base_type == flatbuffers::ET_STRING || (element != nullptr && element->st == flatbuffers::ST_TABLE);
    const uint32_t stride = is_struct ? static_cast<uint32_t>(element->values[element->num_elems]) : is_reference ? 4 : Bytes(code);
    for (uint32_t i = 0; i < Load<uint32_t>(at) && i < kMostElements; ++i) {
      const uint32_t place = at + 4 + i * stride;
      if (is_struct) {
        Struct(place, element);
      } else if (is_reference) {
        code.is_repeating = 0;
        Reference(place, code, element);
      } else {
        Scalar(code, place);
      }
    }
  }

  void Reference(uint32_t at, TypeCode code, const TypeTable* type) {
    Add(Field::Kind::kReference, 4, at, TypeOf(code, type));
    const uint32_t target = Target(at);
    if (!visited_.insert(target).second) return;
    if (code.is_repeating) return Vector(target, code, type);
    if (code.base_type == flatbuffers::ET_STRING) return String(target);
    Table(target, type);
  }

  void Table(uint32_t at, const TypeTable* type) {
    const uint32_t vtable = at - static_cast<uint32_t>(Load<int32_t>(at));
    const uint32_t present = (Load<uint16_t>(vtable) - 4u) / 2;
    uint32_t union_type = 0;  // the field before the union's own
    for (uint32_t i = 0; i < present && i < type->num_elems; ++i) {
      const uint32_t entry = vtable + 4 + 2 * i;
      Add(Field::Kind::kPresence, 2, entry);
      if (Load<uint16_t>(entry) == 0) continue;
      const uint32_t place = at + Load<uint16_t>(entry);
      const TypeCode code = type->type_codes[i];
      const TypeTable* refers = Refers(code, type);
      if (code.is_repeating || code.base_type == flatbuffers::ET_STRING) {
        Reference(place, code, refers);
      } else if (code.base_type == flatbuffers::ET_UTYPE) {
        union_type = graph_[place];
        Scalar(code, place);
      } else if (refers == nullptr || refers->st == flatbuffers::ST_ENUM) {
        Scalar(code, place);
      } else if (refers->st == flatbuffers::ST_STRUCT) {
        Struct(place, refers);
      } else if (refers->st == flatbuffers::ST_TABLE) {
        Reference(place, code, refers);
      } else if (union_type > 0) {
        Reference(place, code, Refers(refers->type_codes[union_type], refers));
      }
    }
  }

  const uint8_t* const graph_;
  std::vector<Field> fields_;
  std::set<uint32_t> visited_;
};

}  // namespace

std::vector<Field> GraphFields(const uint8_t* graph) { return Walker(graph).Walk(); }

}  // namespace tarn::test
