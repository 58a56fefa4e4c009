#include <algorithm>
#include <iterator>
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

  // What the body sets is its own.
  Flow ExecuteScope(const std::vector<Statement>& body) {
    frames_.emplace_back();
    const Flow flow = Execute(body);
    frames_.pop_back();
    return flow;
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
      case Statement::Kind::kScope:
        return ExecuteScope(one.body);
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
    PutMember(one.names[1], value, target.dict, &heap_);
  }

  Flow ExecuteSetBlock(const Statement& one) {
    const std::string before = std::exchange(output_, "");
    const Flow flow = ExecuteScope(one.body);
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

  // Finds the next item that the condition of a loop keeps. The condition sees what is there around the loop, wherever in its body
  // the item is asked for.
  bool FindMore(const Statement& one, const JinjaList& source, size_t outside, JinjaLoop* loop, size_t* next) {
    std::vector<Frame> inside(std::make_move_iterator(frames_.begin() + static_cast<std::ptrdiff_t>(outside)),
                              std::make_move_iterator(frames_.end()));
    frames_.resize(outside);
    bool keeps = false;
    while (!keeps && *next < source.size()) {
      const Value& item = source[(*next)++];
      frames_.emplace_back();
      SetTargets(one, item);
      keeps = IsTrue(Evaluate(*one.condition));
      frames_.pop_back();
      if (keeps) loop->items.push_back(item);
    }
    std::move(inside.begin(), inside.end(), std::back_inserter(frames_));
    return keeps;
  }

  Flow ExecuteFor(const Statement& one) {
    JinjaList source = ItemsOf(Evaluate(*one.expression), &heap_);
    JinjaLoop* loop = heap_.Loop();
    size_t next = 0;
    if (one.condition == nullptr) {
      loop->items = std::move(source);
    } else {
      loop->more = [&, outside = frames_.size(), calls = calls_] {
        if (calls != calls_) Fail("\"loop\" of a loop with \"if\" is not supported in a macro");
        return FindMore(one, source, outside, loop, &next);
      };
    }
    bool is_complete = false;  // some iteration came to the end of the body
    for (; loop->Has(loop->at); ++loop->at) {
      frames_.emplace_back();
      frames_.back()["loop"] = Value::Loop(loop);
      SetTargets(one, loop->items[loop->at]);
      const Flow flow = Execute(one.body);
      frames_.pop_back();
      is_complete = is_complete || flow == Flow::kOn;
      if (flow == Flow::kBreak) break;
    }
    if (loop->more) loop->more = []() -> bool { Fail("\"loop\" of a loop with \"if\" is not supported behind the loop"); };
    return is_complete ? Flow::kOn : ExecuteScope(one.other);
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
    if (calls_ > 0 && (name == "varargs" || name == "kwargs")) Fail("\"", name, "\" of a macro is not supported");
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
      PutMember(key.str(), Evaluate(*one.parts[i + 1]), &dict, &heap_);
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
    if (name == "range") return RangeOf(arguments, &heap_);
    if (arguments.values.size() != 1) Fail("raise_exception() expects a text");
    Fail("the template refuses the conversation: ", PrintedText(arguments.values[0]));
  }

  Value CallMacro(const Statement& macro, const JinjaArguments& arguments) {
    const size_t count = macro.names.size() - 1, required = count - macro.defaults.size();
    if (arguments.values.size() > count) Fail("\"", macro.names[0], "\" takes ", count, " arguments");
    std::vector<Frame> frames;
    frames.push_back(std::move(frames_[0]));
    std::swap(frames, frames_);  // it sees the names of the template, and its own
    ++calls_;
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
    --calls_;
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
      const Value right = Evaluate(*one.parts[i + 1]);
      if (!Holds(left, one.names[i], right, &heap_)) return Value::Bool(false);
      left = right;
    }
    return Value::Bool(true);
  }

  JinjaHeap heap_;
  std::vector<Frame> frames_;
  std::string output_;
  int depth_ = 0;
  int calls_ = 0;  // of macros, one in the other
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
