#include <algorithm>

#include "tools/convert/chat/jinja_parser.h"
#include "tools/convert/chat/jinja_stream.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using Expression = JinjaExpression;
using Pointer = JinjaExpression::Pointer;

class ExpressionParser {
 public:
  explicit ExpressionParser(JinjaStream* stream) : stream_(*stream) {}

  // a if b else c
  Pointer Parse(bool with_choice = true) {
    const JinjaStream::Level level(&stream_);
    Pointer value = ParseOr();
    while (with_choice && stream_.IsName("if")) {
      Pointer choice = Make(Expression::Kind::kChoice);
      stream_.Take();
      choice->parts.push_back(ParseOr());
      choice->parts.push_back(std::move(value));
      choice->parts.push_back(stream_.SkipName("else") ? Parse() : nullptr);
      value = std::move(choice);
    }
    return value;
  }

 private:
  using Kind = Expression::Kind;
  using TokenKind = JinjaToken::Kind;

  Pointer Make(Kind kind) const {
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->line = stream_.current().line;
    return made;
  }
  // An expression that begins with `first`. Loops that make them count levels, too: the tree is as deep.
  Pointer Make(Kind kind, Pointer first, const std::string& text = "") {
    Pointer made = Make(kind);
    made->text = text;
    made->parts.push_back(std::move(first));
    if (++chained_ > kMaxChained) stream_.FailHere("more than ", kMaxChained, " operators in an expression");
    return made;
  }

  Pointer ParseOr() {
    Pointer left = ParseAnd();
    while (stream_.SkipName("or")) {
      left = Make(Kind::kOr, std::move(left));
      left->parts.push_back(ParseAnd());
    }
    return left;
  }

  Pointer ParseAnd() {
    Pointer left = ParseNot();
    while (stream_.SkipName("and")) {
      left = Make(Kind::kAnd, std::move(left));
      left->parts.push_back(ParseNot());
    }
    return left;
  }

  Pointer ParseNot() {
    if (!stream_.IsName("not")) return ParseCompare();
    const JinjaStream::Level level(&stream_);
    Pointer made = Make(Kind::kNot);
    stream_.Take();
    made->parts.push_back(ParseNot());
    return made;
  }

  std::string TakeComparison() {
    for (const char* one : {"==", "!=", "<", "<=", ">", ">="}) {
      if (stream_.SkipOperator(one)) return one;
    }
    if (stream_.SkipName("in")) return "in";
    if (!stream_.IsName("not") || stream_.next().kind != TokenKind::kName || stream_.next().text != "in") return "";
    stream_.Take();
    stream_.Take();
    return "not in";
  }

  Pointer ParseCompare() {
    Pointer left = ParseSum();
    std::string comparison = TakeComparison();
    if (comparison.empty()) return left;
    left = Make(Kind::kCompare, std::move(left));
    for (; !comparison.empty(); comparison = TakeComparison()) {
      left->names.push_back(comparison);
      left->parts.push_back(ParseSum());
    }
    return left;
  }

  Pointer ParseSum() {
    Pointer left = ParseConcatenation();
    while (stream_.IsOperator("+") || stream_.IsOperator("-")) {
      left = Make(Kind::kArithmetic, std::move(left), stream_.Take().text);
      left->parts.push_back(ParseConcatenation());
    }
    return left;
  }

  Pointer ParseConcatenation() {
    Pointer left = ParseProduct();
    while (stream_.SkipOperator("~")) {
      left = Make(Kind::kArithmetic, std::move(left), "~");
      left->parts.push_back(ParseProduct());
    }
    return left;
  }

  Pointer ParseProduct() {
    Pointer left = ParseUnary(true);
    for (;;) {
      const std::string& sign = stream_.current().text;
      if (!stream_.Is(TokenKind::kOperator)) return left;
      if (sign == "/" || sign == "**") stream_.FailHere("the operator \"", sign, "\" is not supported");
      if (sign != "*" && sign != "//" && sign != "%") return left;
      left = Make(Kind::kArithmetic, std::move(left), stream_.Take().text);
      left->parts.push_back(ParseUnary(true));
    }
  }

  Pointer ParseUnary(bool with_filters) {
    const JinjaStream::Level level(&stream_);
    Pointer value;
    if (stream_.IsOperator("-")) {
      value = Make(Kind::kMinus);
      stream_.Take();
      value->parts.push_back(ParseUnary(false));
    } else {
      value = ParsePrimary();
    }
    value = ParsePostfix(std::move(value));
    return with_filters ? ParseFilters(std::move(value)) : std::move(value);
  }

  Pointer ParsePrimary() {
    const JinjaToken& token = stream_.current();
    if (token.kind == TokenKind::kText) {
      Pointer made = Make(Kind::kText);
      while (stream_.Is(TokenKind::kText)) made->text += stream_.Take().text;
      return made;
    }
    if (token.kind == TokenKind::kInteger) {
      Pointer made = Make(Kind::kInteger);
      if (token.text.size() > 18) stream_.FailHere("the number ", token.text, " is too large");
      made->number = std::stoll(stream_.Take().text);
      return made;
    }
    if (token.kind == TokenKind::kName) return ParseName();
    if (stream_.IsOperator("(")) return ParseBrackets();
    if (stream_.IsOperator("[")) return ParseList();
    if (stream_.IsOperator("{")) return ParseDict();
    stream_.FailExpected("a value");
  }

  Pointer ParseName() {
    Pointer made = Make(Kind::kName);
    const std::string name = stream_.Take().text;
    made->text = name;
    for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
      if (name != constant) continue;
      made->kind = Kind::kConstant;
      std::transform(name.begin(), name.end(), made->text.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    }
    for (const char* word : {"and", "or", "not", "in", "if", "else", "is"}) {
      if (name == word) Fail("line ", made->line, ": \"", name, "\" found, a value expected");
    }
    return made;
  }

  Pointer ParseBrackets() {
    stream_.Take();
    Pointer value = Parse();
    if (stream_.IsOperator(",")) stream_.FailHere("a tuple is not supported, a list is");
    stream_.ExpectOperator(")");
    return value;
  }

  Pointer ParseList() {
    Pointer made = Make(Kind::kList);
    stream_.Take();
    while (!stream_.IsOperator("]")) {
      made->parts.push_back(Parse());
      if (!stream_.IsOperator("]")) stream_.ExpectOperator(",");
    }
    stream_.Take();
    return made;
  }

  Pointer ParseDict() {
    Pointer made = Make(Kind::kDict);
    stream_.Take();
    while (!stream_.IsOperator("}")) {
      made->parts.push_back(Parse());
      stream_.ExpectOperator(":");
      made->parts.push_back(Parse());
      if (!stream_.IsOperator("}")) stream_.ExpectOperator(",");
    }
    stream_.Take();
    return made;
  }

  Pointer ParsePostfix(Pointer value) {
    for (;;) {
      if (stream_.IsOperator(".")) {
        value = Make(Kind::kAttribute, std::move(value));
        stream_.Take();
        value->text = stream_.TakeName("a name");
      } else if (stream_.IsOperator("[")) {
        value = ParseSubscript(std::move(value));
      } else if (stream_.IsOperator("(")) {
        value = Make(Kind::kCall, std::move(value));
        ParseArguments(value.get());
      } else {
        return value;
      }
    }
  }

  Pointer ParseSubscript(Pointer value) {
    Pointer made = Make(Kind::kItem, std::move(value));
    stream_.Take();
    const auto bound = [this]() -> Pointer { return stream_.IsOperator(":") || stream_.IsOperator("]") ? nullptr : Parse(); };
    made->parts.push_back(bound());
    while (stream_.SkipOperator(":")) {
      made->kind = Kind::kSlice;
      made->parts.push_back(bound());
    }
    if (made->parts.size() > 4 || (made->kind == Kind::kItem && made->parts[1] == nullptr)) stream_.FailExpected("an index");
    if (made->kind == Kind::kSlice) made->parts.resize(4);
    stream_.ExpectOperator("]");
    return made;
  }

  // (a, b, c=d)
  void ParseArguments(Expression* call) {
    stream_.ExpectOperator("(");
    while (!stream_.IsOperator(")")) {
      if (stream_.IsOperator("*") || stream_.IsOperator("**")) stream_.FailHere("arguments from a list are not supported");
      const bool has_name =
          stream_.Is(TokenKind::kName) && stream_.next().kind == TokenKind::kOperator && stream_.next().text == "=";
      if (has_name) {
        call->names.push_back(stream_.Take().text);
        stream_.Take();
        call->named.push_back(Parse());
      } else {
        if (!call->named.empty()) stream_.FailExpected("an argument with a name");
        call->parts.push_back(Parse());
      }
      if (!stream_.IsOperator(")")) stream_.ExpectOperator(",");
    }
    stream_.Take();
  }

  Pointer ParseFilters(Pointer value) {
    for (;;) {
      if (stream_.IsOperator("|")) {
        value = Make(Kind::kFilter, std::move(value));
        stream_.Take();
        value->text = stream_.TakeName("the name of a filter");
        if (stream_.IsOperator("(")) ParseArguments(value.get());
      } else if (stream_.IsName("is")) {
        value = ParseTest(std::move(value));
      } else if (stream_.IsOperator("(")) {
        value = Make(Kind::kCall, std::move(value));
        ParseArguments(value.get());
      } else {
        return value;
      }
    }
  }

  Pointer ParseTest(Pointer value) {
    Pointer made = Make(Kind::kTest, std::move(value));
    stream_.Take();
    const bool is_negated = stream_.SkipName("not");
    made->text = stream_.TakeName("the name of a test");
    if (stream_.IsOperator("(")) {
      ParseArguments(made.get());
    } else if (TakesBareArgument()) {
      made->parts.push_back(ParsePostfix(ParsePrimary()));
    }
    if (!is_negated) return made;
    Pointer negated = Make(Kind::kNot, std::move(made));
    return negated;
  }

  bool TakesBareArgument() const {
    if (stream_.Is(TokenKind::kText) || stream_.Is(TokenKind::kInteger) || stream_.IsOperator("[") || stream_.IsOperator("{"))
      return true;
    if (!stream_.Is(TokenKind::kName)) return false;
    for (const char* word : {"else", "or", "and", "is", "if", "in", "not"}) {
      if (stream_.IsName(word)) return false;
    }
    return true;
  }

  static constexpr int kMaxChained = 256;

  JinjaStream& stream_;
  int chained_ = 0;
};

}  // namespace

Pointer ParseJinjaExpression(JinjaStream* stream, bool with_choice) { return ExpressionParser(stream).Parse(with_choice); }

}  // namespace tarn::convert
