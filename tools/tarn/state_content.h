// What is in a saved state: the snapshot of a file, its states with the names that their model gives them, and what their numbers
// are. Nothing here takes memory that a file could ask for.
#ifndef TARN_TOOLS_TARN_STATE_CONTENT_H_
#define TARN_TOOLS_TARN_STATE_CONTENT_H_

#include <tarn/inspect.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/tarn/files.h"
#include "tools/tarn/model.h"
#include "tools/tarn/prompt_cache.h"

namespace tarn_cli {

// A file that --save-state, /save or the prompt cache wrote.
class StateContent {
 public:
  explicit StateContent(const std::string& path);  // throws Failure with the path

  const std::string& path() const { return path_; }
  const tarn_snapshot_info& info() const { return info_; }
  // A delta snapshot, which has no states without its base.
  bool is_delta() const { return info_.version == 3; }
  bool is_compact() const { return info_.version == 4; }
  const std::optional<PromptFile>& prompt() const { return prompt_; }
  std::vector<uint64_t> SequenceTokens() const;
  std::vector<uint32_t> SourceTokens() const;
  // Bytes [offset, offset + size) of all states.
  void Read(uint64_t offset, uint8_t* bytes, size_t size) const;

  // Throw Failure with the path.
  void ExpectSameShape(const StateContent& other) const;
  void ExpectModel(const Model& model) const;

 private:
  const char* data() const { return file_.text().data() + begin_; }
  uint64_t size() const { return file_.text().size() - begin_; }

  const std::string path_;
  const InputText file_;
  std::optional<PromptFile> prompt_;
  size_t begin_ = 0;  // of the snapshot in the file
  tarn_snapshot_info info_ = {};
};

// A state of all sequences or sources.
struct StatePart {
  std::string name;  // empty: all states, as bytes, since no model says what they are
  std::string dtype;
  std::vector<uint32_t> shape;
  uint64_t begin = 0;  // in what Read() reads
  uint64_t bytes = 0;
};

// `model` may be nullptr. Throws Failure where the states are not those of the model.
std::vector<StatePart> StateParts(const StateContent& content, const Model* model);

// Of one state. Numbers of types that are not f32, f16 or i8 are not looked at.
struct StateNumbers {
  bool has_values = false;
  uint64_t stored_bytes = 0;  // in blocks of 64 bytes that are not all zero
  double largest = 0;         // absolute
  uint64_t not_finite = 0;    // numbers that are neither in `largest`
};
StateNumbers Measure(const StateContent& content, const StatePart& part);  // throws Failure if it is interrupted

// Between the same state of two files.
struct StateDifference {
  bool has_values = false;
  uint64_t elements = 0;              // bytes where there are no values
  uint64_t differing = 0;             // by a bit or more
  double largest = 0;                 // |b - a|, where both are finite
  std::optional<double> relative_l2;  // |b - a| / |a| over those; nothing: a is zero and b is not
  uint64_t not_finite = 0;            // elements of which one is not finite
};
StateDifference Compare(const StateContent& a, const StateContent& b, const StatePart& part);  // as Measure

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_STATE_CONTENT_H_
