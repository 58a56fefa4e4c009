#include <algorithm>
#include <map>
#include <optional>

#include "tools/convert/chat/jinja.h"
#include "tools/convert/chat/jinja_calls.h"
#include "tools/convert/chat/jinja_operators.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using Expression = JinjaExpression;
using Kind = JinjaValue::Kind;
using Statement = JinjaStatement;
using Value = JinjaValue;

constexpr size_t kMaxOutputBytes = 1u << 20;
constexpr int kMaxDepth = 400;
constexpr int64_t kMaxRange = 1 << 16;

enum class Flow : uint8_t { kOn, kBreak, kContinue };

class Renderer {
 public:
  explicit Renderer(const JinjaInput& input) {
    JinjaList messages;
    for (const JinjaMessage& one : input.messages) {
      messages.push_back(heap_.Dict({{"role", Value::Text(one.role)}, {"content", Value::Text(one.content)}}));
    }
    Frame globals = {{"messages", heap_.List(messages)},
                     {"add_generation_prompt", Value::Bool(input.add_generation_prompt)},
                     {"tools", Value::None()},
                     {"documents", Value::None()}};
    for (const char* name : {"raise_exception", "namespace", "range"}) globals[name] = Value::Builtin(name);
    for (const auto& [name, text] : input.texts) globals[name] = Value::Text(text);
    frames_.push_back(std::move(globals));
  }

  std::string Run(const std::vector<Statement>& body) {
    Execute(body);
    return std::move(output_);
  }

 private:
  using Frame = std::map<std::string, Value>;

  class Level {
   public:
    Level(Renderer* renderer, int line) : renderer_(renderer) {
      if (++renderer->depth_ > kMaxDepth) Fail("line ", line, ": more than ", kMaxDepth, " levels");
    }
    ~Level() { --renderer_->depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Renderer* renderer_;
  };

  // Errors get the line where they happened, the innermost one.
  template <typename F>
  auto AtLine(int line, const F& work) -> decltype(work()) {
    try {
      return work();
    } catch (const ConvertError& error) {
      if (std::string(error.what()).rfind("line ", 0) == 0) throw;
      Fail("line ", line, ": ", error.what());
    }
  }

  // ---- Statements ----

  void Print(const std::string& text) {
    heap_.Spend(1 + text.size() / 16);
    output_ += text;
    if (output_.size() > kMaxOutputBytes) Fail("more than ", kMaxOutputBytes, " bytes of text");
  }

  Flow Execute(const std::vector<Statement>& body) {
    for (const Statement& one : body) {
      const Level level(this, one.line);
      const Flow flow = AtLine(one.line, [&] { return ExecuteOne(one); });
      if (flow != Flow::kOn) return flow;
    }
    return Flow::kOn;
  }

  Flow ExecuteOne(const Statement& one) {
    heap_.Spend(1);
    switch (one.kind) {
      case Statement::Kind::kData:
        Print(one.text);
        return Flow::kOn;
      case Statement::Kind::kPrint:
        Print(PrintedText(Evaluate(*one.expression)));
        return Flow::kOn;
      case Statement::Kind::kIf:
        return Execute(IsTrue(Evaluate(*one.expression)) ? one.body : one.other);
      case Statement::Kind::kFor:
        return ExecuteFor(one);
      case Statement::Kind::kSet:
        Set(one, Evaluate(*one.expression));
        return Flow::kOn;
      case Statement::Kind::kSetBlock:
        return ExecuteSetBlock(one);
      case Statement::Kind::kMacro:
        if (frames_.size() != 1) Fail("a macro in a loop or a macro is not supported");
        frames_.back()[one.names[0]] = Value::Macro(&one);
        return Flow::kOn;
      case Statement::Kind::kScope: {
        frames_.emplace_back();
        const Flow flow = Execute(one.body);
        frames_.pop_back();
        return flow;
      }
      case Statement::Kind::kBreak:
        return Flow::kBreak;
      case Statement::Kind::kContinue:
        return Flow::kContinue;
    }
    return Flow::kOn;
  }

  void Set(const Statement& one, const Value& value) {
    if (one.names.size() == 1) {
      frames_.back()[one.names[0]] = value;
      return;
    }
    const Value target = Find(one.names[0]);
    if (!target.Is(Kind::kNamespace)) Fail("\"", one.names[0], "\" is ", JinjaKindName(target), ", a namespace expected");
    heap_.Spend(target.dict->size());
    for (auto& [name, member] : *target.dict) {
      if (name != one.names[1]) continue;
      member = value;
      return;
    }
    target.dict->emplace_back(one.names[1], value);
  }

  Flow ExecuteSetBlock(const Statement& one) {
    const std::string before = std::exchange(output_, "");
    frames_.emplace_back();  // what it sets is its own
    const Flow flow = Execute(one.body);
    frames_.pop_back();
    frames_.back()[one.names[0]] = Value::Text(std::exchange(output_, before));
    return flow;
  }

  void SetTargets(const Statement& one, const Value& item) {
    if (one.names.size() == 1) {
      frames_.back()[one.names[0]] = item;
      return;
    }
    if (!item.Is(Kind::kList) || item.list->size() != one.names.size()) {
      Fail("a list of ", one.names.size(), " items expected in the loop");
    }
    for (size_t i = 0; i < one.names.size(); ++i) frames_.back()[one.names[i]] = (*item.list)[i];
  }

  Flow ExecuteFor(const Statement& one) {
    const JinjaList all = ItemsOf(Evaluate(*one.expression), &heap_);
    JinjaList wanted;
    for (const Value& item : all) {
      frames_.emplace_back();
      SetTargets(one, item);
      if (one.condition == nullptr || IsTrue(Evaluate(*one.condition))) wanted.push_back(item);
      frames_.pop_back();
    }
    const Value items = heap_.List(std::move(wanted));
    JinjaLoop* loop = heap_.Loop(items.list);
    for (loop->at = 0; loop->at < items.list->size(); ++loop->at) {
      frames_.emplace_back();
      frames_.back()["loop"] = Value::Loop(loop);
      SetTargets(one, (*items.list)[loop->at]);
      const Flow flow = Execute(one.body);
      frames_.pop_back();
      if (flow == Flow::kBreak) break;
    }
    return items.list->empty() ? Execute(one.other) : Flow::kOn;
  }

  // ---- Expressions ----

  Value Find(const std::string& name) const {
    for (size_t i = frames_.size(); i-- > 0;) {
      const auto found = frames_[i].find(name);
      if (found != frames_[i].end()) return found->second;
    }
    for (const char* global : {"dict", "lipsum", "cycler", "joiner"}) {
      if (name == global) Fail("\"", name, "\" is not supported");
    }
    return Value::Undefined(name);
  }

  Value Evaluate(const Expression& one) {
    const Level level(this, one.line);
    return AtLine(one.line, [&] {
      heap_.Spend(1);
      return EvaluateOne(one);
    });
  }

  Value EvaluateOne(const Expression& one) {
    switch (one.kind) {
      case Expression::Kind::kText:
        return Value::Text(one.text);
      case Expression::Kind::kInteger:
        return Value::Integer(one.number);
      case Expression::Kind::kConstant:
        return one.text == "none" ? Value::None() : Value::Bool(one.text == "true");
      case Expression::Kind::kName:
        return Find(one.text);
      case Expression::Kind::kList: {
        JinjaList items;
        for (const auto& part : one.parts) items.push_back(Evaluate(*part));
        return heap_.List(std::move(items));
      }
      case Expression::Kind::kDict:
        return MakeDict(one);
      case Expression::Kind::kAttribute:
        return MemberOf(Evaluate(*one.parts[0]), one.text, /*is_attribute=*/true);
      case Expression::Kind::kItem:
        return ItemAt(Evaluate(*one.parts[0]), Evaluate(*one.parts[1]), &heap_);
      case Expression::Kind::kSlice:
        return Slice(one);
      case Expression::Kind::kCall:
        return Call(one);
      case Expression::Kind::kFilter:
        return Filter(one);
      case Expression::Kind::kTest: {
        const Value value = Evaluate(*one.parts[0]);
        return Value::Bool(CallTest(one.text, value, Arguments(one), &heap_));
      }
      case Expression::Kind::kNot:
        return Value::Bool(!IsTrue(Evaluate(*one.parts[0])));
      case Expression::Kind::kMinus:
        return Negative(Evaluate(*one.parts[0]));
      case Expression::Kind::kAnd: {
        Value left = Evaluate(*one.parts[0]);
        return IsTrue(left) ? Evaluate(*one.parts[1]) : left;
      }
      case Expression::Kind::kOr: {
        Value left = Evaluate(*one.parts[0]);
        return IsTrue(left) ? left : Evaluate(*one.parts[1]);
      }
      case Expression::Kind::kCompare:
        return Compare(one);
      case Expression::Kind::kArithmetic:
        return Calculate(one.text, Evaluate(*one.parts[0]), Evaluate(*one.parts[1]), &heap_);
      case Expression::Kind::kChoice:
        if (IsTrue(Evaluate(*one.parts[0]))) return Evaluate(*one.parts[1]);
        return one.parts[2] == nullptr ? Value::Undefined("the value without else") : Evaluate(*one.parts[2]);
    }
    return {};
  }

  Value MakeDict(const Expression& one) {
    JinjaDict dict;
    for (size_t i = 0; i < one.parts.size(); i += 2) {
      const Value key = Evaluate(*one.parts[i]);
      if (!key.Is(Kind::kText)) Fail(JinjaKindName(key), " as a key is not supported");
      dict.emplace_back(key.str(), Evaluate(*one.parts[i + 1]));
    }
    return heap_.Dict(std::move(dict));
  }

  Value Slice(const Expression& one) {
    const Value value = Evaluate(*one.parts[0]);
    const auto bound = [&](size_t part) -> std::optional<int64_t> {
      if (one.parts[part] == nullptr) return std::nullopt;
      const Value given = Evaluate(*one.parts[part]);
      if (given.Is(Kind::kNone)) return std::nullopt;
      if (!given.Is(Kind::kInteger)) Fail(JinjaKindName(given), " as a bound is not supported");
      return given.number;
    };
    const auto begin = bound(1), end = bound(2);
    return SliceOf(value, begin, end, bound(3).value_or(1), &heap_);
  }

  JinjaArguments Arguments(const Expression& one) {
    JinjaArguments arguments;
    for (size_t i = 1; i < one.parts.size(); ++i) arguments.values.push_back(Evaluate(*one.parts[i]));
    for (size_t i = 0; i < one.named.size(); ++i) arguments.named.emplace_back(one.names[i], Evaluate(*one.named[i]));
    return arguments;
  }

  Value Call(const Expression& one) {
    const Expression& callee = *one.parts[0];
    if (callee.kind == Expression::Kind::kAttribute) {
      const Value value = Evaluate(*callee.parts[0]);
      if (!value.Is(Kind::kNamespace)) return CallMethod(value, callee.text, Arguments(one), &heap_);
    }
    const Value function = Evaluate(callee);
    const JinjaArguments arguments = Arguments(one);
    if (function.Is(Kind::kMacro)) return CallMacro(*function.macro, arguments);
    if (function.Is(Kind::kUndefined)) Fail("\"", function.str(), "\" is undefined");
    if (!function.Is(Kind::kBuiltin)) Fail("a call of ", JinjaKindName(function));
    const std::string& name = function.str();
    if (name == "namespace") {
      if (!arguments.values.empty()) Fail("this use of \"namespace\" is not supported");
      return heap_.Dict(arguments.named, Kind::kNamespace);
    }
    if (name == "range") return Range(arguments);
    if (arguments.values.size() != 1) Fail("raise_exception() expects a text");
    Fail("the template refuses the conversation: ", PrintedText(arguments.values[0]));
  }

  Value Range(const JinjaArguments& arguments) {
    const size_t count = arguments.values.size();
    for (const Value& one : arguments.values) {
      if (!one.Is(Kind::kInteger)) Fail("this use of \"range\" is not supported");
    }
    if (!arguments.named.empty() || count < 1 || count > 2) Fail("this use of \"range\" is not supported");
    const int64_t begin = count == 1 ? 0 : arguments.values[0].number, end = arguments.values[count - 1].number;
    if (begin < -kMaxRange || end > kMaxRange) Fail("a range from ", begin, " to ", end, " is not supported");
    JinjaList items;
    for (int64_t i = begin; i < end; ++i) items.push_back(Value::Integer(i));
    return heap_.List(std::move(items));
  }

  Value CallMacro(const Statement& macro, const JinjaArguments& arguments) {
    const size_t count = macro.names.size() - 1, required = count - macro.defaults.size();
    if (arguments.values.size() > count) Fail("\"", macro.names[0], "\" takes ", count, " arguments");
    std::vector<Frame> frames;
    frames.push_back(std::move(frames_[0]));
    std::swap(frames, frames_);  // it sees the names of the template, and its own
    frames_.emplace_back();
    const std::string before = std::exchange(output_, "");
    for (size_t i = 0; i < count; ++i) {
      const std::string& name = macro.names[i + 1];
      const auto named =
          std::find_if(arguments.named.begin(), arguments.named.end(), [&](const auto& one) { return one.first == name; });
      frames_.back()[name] = i < arguments.values.size()      ? arguments.values[i]
                             : named != arguments.named.end() ? named->second
                             : i >= required                  ? Evaluate(*macro.defaults[i - required])
                                                              : Value::Undefined(name);
    }
    for (const auto& [name, value] : arguments.named) {
      if (frames_.back().count(name) == 0) Fail("\"", macro.names[0], "\" has no argument \"", name, "\"");
    }
    Execute(macro.body);
    frames[0] = std::move(frames_[0]);
    frames_ = std::move(frames);
    return Value::Text(std::exchange(output_, before));
  }

  Value Filter(const Expression& one) {
    const Value value = Evaluate(*one.parts[0]);
    return CallFilter(one.text, value, Arguments(one), &heap_);
  }

  Value Compare(const Expression& one) {
    Value left = Evaluate(*one.parts[0]);
    for (size_t i = 0; i < one.names.size(); ++i) {
      const std::string& sign = one.names[i];
      const Value right = Evaluate(*one.parts[i + 1]);
      bool holds = false;
      if (sign == "==" || sign == "!=") {
        holds = AreEqual(left, right, &heap_) == (sign == "==");
      } else if (sign == "in" || sign == "not in") {
        holds = Contains(right, left, &heap_) == (sign == "in");
      } else if (sign == "<" || sign == ">=") {
        holds = IsLess(left, right, &heap_) == (sign == "<");
      } else {
        holds = IsLess(right, left, &heap_) == (sign == ">");
      }
      if (!holds) return Value::Bool(false);
      left = right;
    }
    return Value::Bool(true);
  }

  JinjaHeap heap_;
  std::vector<Frame> frames_;
  std::string output_;
  int depth_ = 0;
};

}  // namespace

JinjaTemplate::JinjaTemplate(const std::string& source) {
  const std::vector<JinjaToken> tokens = LexJinja(source);
  for (const JinjaToken& token : tokens) {
    if (token.kind == JinjaToken::Kind::kText) literals_.push_back(token.text);
    names_the_date_ = names_the_date_ || (token.kind == JinjaToken::Kind::kName && token.text == "strftime_now");
  }
  body_ = ParseJinja(tokens);
}

std::string JinjaTemplate::Render(const JinjaInput& input) const { return Renderer(input).Run(body_); }

}  // namespace tarn::convert
