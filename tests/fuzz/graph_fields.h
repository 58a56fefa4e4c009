// Every place in the graph of a good model file that a hostile one could hold something else in, found by the schema's type tables:
// so a fuzzer changes fields instead of bytes, and keeps up with tarn.fbs by itself.
#ifndef TARN_TESTS_FUZZ_GRAPH_FIELDS_H_
#define TARN_TESTS_FUZZ_GRAPH_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tarn::test {

struct Field {
  enum class Kind : uint8_t {
    kInteger,    // of a table, a struct or a vector; enumerators, types of unions and characters of names too
    kFloat,      //
    kReference,  // offset of a table, a vector or a string, counted from itself
    kLength,     // of a vector or a string
    kPresence,   // entry of a table's vtable: 0 where the field is left out
  };
  Kind kind;
  uint8_t bytes;
  uint32_t at;    // in the graph
  uint32_t type;  // of what a reference leads to: equal for two that may lead to the same
};

// In the order of the graph's tables. `graph` has been verified.
std::vector<Field> GraphFields(const uint8_t* graph);

}  // namespace tarn::test

#endif  // TARN_TESTS_FUZZ_GRAPH_FIELDS_H_
