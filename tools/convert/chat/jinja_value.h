// Values of a Jinja template, as Python has them, but no floating point numbers.
#ifndef TARN_TOOLS_CONVERT_CHAT_JINJA_VALUE_H_
#define TARN_TOOLS_CONVERT_CHAT_JINJA_VALUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/chat/jinja_parser.h"

namespace tarn::convert {

struct JinjaLoop;
struct JinjaValue;
using JinjaList = std::vector<JinjaValue>;
using JinjaDict = std::vector<std::pair<std::string, JinjaValue>>;  // in the order in which it was made

// Lists and the like belong to a JinjaHeap, so that a copy is the same list, as in Python.
struct JinjaValue {
  enum class Kind : uint8_t { kUndefined, kNone, kBool, kInteger, kText, kList, kDict, kNamespace, kLoop, kMacro, kBuiltin };

  Kind kind = Kind::kUndefined;
  int64_t number = 0;                       // of a bool 0 or 1
  std::shared_ptr<const std::string> text;  // also the name of a builtin, or of what is undefined
  JinjaList* list = nullptr;
  JinjaDict* dict = nullptr;  // also of a namespace
  JinjaLoop* loop = nullptr;
  const JinjaStatement* macro = nullptr;

  static JinjaValue None() { return Of(Kind::kNone); }
  static JinjaValue Bool(bool value) {
    JinjaValue made = Of(Kind::kBool);
    made.number = value ? 1 : 0;
    return made;
  }
  static JinjaValue Integer(int64_t value) {
    JinjaValue made = Of(Kind::kInteger);
    made.number = value;
    return made;
  }
  static JinjaValue Text(std::string value) { return Named(Kind::kText, std::move(value)); }
  static JinjaValue Undefined(std::string name) { return Named(Kind::kUndefined, std::move(name)); }
  static JinjaValue Builtin(std::string name) { return Named(Kind::kBuiltin, std::move(name)); }
  static JinjaValue Macro(const JinjaStatement* statement) {
    JinjaValue made = Of(Kind::kMacro);
    made.macro = statement;
    return made;
  }
  static JinjaValue Loop(JinjaLoop* loop) {
    JinjaValue made = Of(Kind::kLoop);
    made.loop = loop;
    return made;
  }

  bool Is(Kind one) const { return kind == one; }
  bool IsNumber() const { return kind == Kind::kInteger || kind == Kind::kBool; }
  const std::string& str() const { return *text; }

 private:
  static JinjaValue Of(Kind kind) {
    JinjaValue made;
    made.kind = kind;
    return made;
  }
  static JinjaValue Named(Kind kind, std::string text) {
    JinjaValue made = Of(kind);
    made.text = std::make_shared<const std::string>(std::move(text));
    return made;
  }
};

// The `loop` of a for statement. With a condition it is a generator: the condition is asked only when the next item is.
struct JinjaLoop {
  JinjaList items;             // those that are known
  size_t at = 0;               // of the one that the body has
  std::function<bool()> more;  // makes the next one known, false: there is none; empty: all are known

  bool Has(size_t index) {
    while (items.size() <= index) {
      if (!more || !more()) return false;
    }
    return true;
  }
};

// Owns what values point to, and counts what a rendering takes: templates are untrusted.
class JinjaHeap {
 public:
  JinjaValue List(JinjaList items);
  JinjaValue Dict(JinjaDict items, JinjaValue::Kind kind = JinjaValue::Kind::kDict);
  JinjaLoop* Loop();

  // Counts `steps`, of which one is about the time of a small operation. Errors: too many.
  void Spend(size_t steps);

 private:
  std::deque<JinjaList> lists_;
  std::deque<JinjaDict> dicts_;
  std::deque<JinjaLoop> loops_;
  size_t spent_ = 0;
};

// For messages: "a text", "a list".
const char* JinjaKindName(const JinjaValue& value);
bool IsTrue(const JinjaValue& value);
// ==, of lists and dicts too. Spends steps.
bool AreEqual(const JinjaValue& left, const JinjaValue& right, JinjaHeap* heap, int depth = 0);
// dict[key] = value. Spends steps.
void PutMember(const std::string& key, const JinjaValue& value, JinjaDict* dict, JinjaHeap* heap);
// What {{ value }} prints. Errors: a list, a dict: no template prints them.
std::string PrintedText(const JinjaValue& value);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_JINJA_VALUE_H_
