// The fields that a parser reads, recorded while it reads them: what `tarn-convert --list-fields` prints is derived from the parse
// itself, and cannot differ from it.
#ifndef TARN_TOOLS_CONVERT_JSON_FIELD_LOG_H_
#define TARN_TOOLS_CONVERT_JSON_FIELD_LOG_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tarn::convert {

using Json = nlohmann::json;

enum class FieldKind : uint8_t {
  kInteger,  // min .. max
  kNumber,   // `text` says the range
  kBool,
  kChoice,  // one of `choices`
  kList,    // ascending integers, 0 .. max
  kFixed,   // `fallback` is the only value
  kOther,   // `text` says what
};

struct FieldRecord {
  std::string key;
  FieldKind kind;
  std::optional<Json> fallback;  // none: the field is required
  uint64_t min = 0, max = 0;
  std::string text = {};
  std::vector<Json> choices = {};  // of kBool and kChoice

  bool operator==(const FieldRecord& other) const;
};

// Of one object. A required field that the object lacks gets a sample value, so that the parser goes on.
struct FieldLog {
  Json object;
  std::vector<FieldRecord> records;  // in the order in which they were asked for
  bool descending = false;           // sample values of sizes: each below the one before it, else above
};

// A parse of `object` with the values `set` in it.
struct FieldRun {
  std::vector<std::pair<std::string, Json>> set;  // none: the object as it was given
  std::vector<FieldRecord> records;
  Json object;            // with the sample values
  bool accepted = false;  // else the parser threw, and `records` ends there

  const FieldRecord* Find(const std::string& key) const;
};

// Parses `object`, then once more for every other value of every boolean and every choice that the parser asks for, and so on for
// those that only such a value brings up. The field `fixed` keeps its value. The first run is the one without `set`. `parse` reads
// the object that it is given with the log; its ConvertErrors are caught.
using ParseWithLog = std::function<void(const Json& object, FieldLog* log)>;
std::vector<FieldRun> ExploreFields(const Json& object, const ParseWithLog& parse, const std::string& fixed = "");

// Where runs have something that some run has: "" if everywhere, else as in `"gate" is "forget"`. Of a run that was not accepted,
// that it lacks something says nothing.
using RunHas = std::function<bool(const FieldRun& run)>;
std::string Where(const std::vector<FieldRun>& runs, const RunHas& has);
// The same for a field that some run asked for.
std::string WhereRead(const std::vector<FieldRun>& runs, const std::string& key);
// Whether any run asked for it.
bool IsRead(const std::vector<FieldRun>& runs, const std::string& key);
// Every field that some run asked for.
std::vector<std::string> FieldNames(const std::vector<FieldRun>& runs);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_JSON_FIELD_LOG_H_
