// Pickles of Python, protocols 2 to 5, read as data. What a pickle would import and call becomes nodes of a tree: nothing is
// looked up, and nothing is executed.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_PICKLE_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/span.h"

namespace tarn::convert {

enum class PickleKind : uint8_t {
  kNone,
  kBool,        // integer: 0 or 1
  kInteger,     // integer
  kLong,        // text: more than 8 bytes, little-endian, two's complement
  kFloat,       // number
  kText,        // text
  kBytes,       // text
  kTuple,       // items
  kList,        // items
  kDict,        // items: key, value, key, value, ...
  kGlobal,      // integer: which of the known ones
  kCall,        // items: function, arguments (a tuple), then keys and values that were set in the result
  kPersistent,  // items: the id of an object that lies elsewhere
};

struct PickleNode {
  PickleKind kind = PickleKind::kNone;
  int64_t integer = 0;
  double number = 0;
  std::string_view text = {};        // borrowed from the pickle; of any bytes
  std::vector<uint32_t> items = {};  // numbers of nodes; a list or a dict may contain itself
};

// Something that a pickle may import.
struct PickleGlobal {
  std::string_view module, name;
};

struct Pickle {
  std::vector<PickleNode> nodes;
  uint32_t root = 0;
  size_t bytes = 0;  // of the pickle: others may lie behind it
};

// "a dict", as an error message calls it.
const char* PickleKindName(PickleKind kind);

// `where` begins every message. The result borrows `data`. Its memory is bounded by a fixed number of nodes and the size of the
// data. Errors: a global that is not `known`, by its name; an opcode that pickles of data do not need; a pickle that ends early,
// has arguments of other kinds, or is too large.
Pickle ReadPickle(const uint8_t* data, size_t size, const std::string& where, Span<const PickleGlobal> known);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_PICKLE_H_
