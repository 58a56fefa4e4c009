#include "tools/convert/chat/jinja_parser.h"

#include <algorithm>
#include <utility>

#include "tools/convert/chat/jinja_stream.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using Pointer = JinjaExpression::Pointer;
using Statement = JinjaStatement;
using Token = JinjaToken;

class StatementParser {
 public:
  explicit StatementParser(const std::vector<Token>& tokens) : stream_(tokens) {}

  std::vector<Statement> Run() {
    std::vector<Statement> body = ParseBody({});
    if (!stream_.Is(Token::Kind::kEnd)) stream_.FailExpected("a statement");
    return body;
  }

 private:
  using Kind = Statement::Kind;

  bool IsAny(const std::vector<const char*>& names) const {
    return std::any_of(names.begin(), names.end(), [this](const char* name) { return stream_.IsName(name); });
  }
  Pointer ParseExpression(bool with_choice = true) { return ParseJinjaExpression(&stream_, with_choice); }
  void EndBlock() { stream_.Expect(Token::Kind::kBlockEnd, "the end of the tag"); }

  // Up to a tag that begins with one of `ends`, whose name is then the current token.
  std::vector<Statement> ParseBody(const std::vector<const char*>& ends) {
    const JinjaStream::Level level(&stream_);
    std::vector<Statement> body;
    for (;;) {
      Statement one;
      one.line = stream_.current().line;
      if (stream_.Is(Token::Kind::kData)) {
        one.kind = Kind::kData;
        one.text = stream_.Take().text;
      } else if (stream_.Is(Token::Kind::kPrintBegin)) {
        stream_.Take();
        one.kind = Kind::kPrint;
        one.expression = ParseExpression();
        stream_.Expect(Token::Kind::kPrintEnd, "the end of the tag");
      } else if (stream_.Is(Token::Kind::kBlockBegin)) {
        stream_.Take();
        if (IsAny(ends)) return body;
        ParseStatement(&one);
      } else if (ends.empty() && stream_.Is(Token::Kind::kEnd)) {
        return body;
      } else {
        stream_.FailExpected(ends.empty() ? "a statement" : "\"" + std::string(ends.back()) + "\"");
      }
      body.push_back(std::move(one));
    }
  }

  void End(const char* name) {
    if (!stream_.SkipName(name)) stream_.FailExpected(name);
    EndBlock();
  }

  void ParseStatement(Statement* one) {
    const std::string name = stream_.TakeName("the name of a statement");
    if (name == "if") return ParseIf(one);
    if (name == "for") return ParseFor(one);
    if (name == "set") return ParseSet(one);
    if (name == "macro") return ParseMacro(one);
    if (name == "generation") return ParseGeneration(one);
    if (name == "break" || name == "continue") {
      if (loops_ == 0) stream_.FailHere("\"", name, "\" outside of a loop");
      one->kind = name == "break" ? Kind::kBreak : Kind::kContinue;
      return EndBlock();
    }
    stream_.FailHere("the statement \"", name, "\" is not supported");
  }

  void ParseIf(Statement* one) {
    const JinjaStream::Level level(&stream_);
    one->kind = Kind::kIf;
    one->expression = ParseExpression(/*with_choice=*/false);
    EndBlock();
    one->body = ParseBody({"elif", "else", "endif"});
    if (stream_.SkipName("elif")) {
      Statement other;
      other.line = stream_.current().line;
      ParseIf(&other);
      one->other.push_back(std::move(other));
      return;
    }
    if (stream_.SkipName("else")) {
      EndBlock();
      one->other = ParseBody({"endif"});
    }
    End("endif");
  }

  void ParseFor(Statement* one) {
    one->kind = Kind::kFor;
    do {
      one->names.push_back(stream_.TakeName("a name"));
    } while (stream_.SkipOperator(","));
    if (!stream_.SkipName("in")) stream_.FailExpected("\"in\"");
    one->expression = ParseExpression(/*with_choice=*/false);
    if (stream_.SkipName("if")) one->condition = ParseExpression();
    if (stream_.IsName("recursive")) stream_.FailHere("a recursive loop is not supported");
    EndBlock();
    ++loops_;
    one->body = ParseBody({"else", "endfor"});
    --loops_;
    if (stream_.SkipName("else")) {
      EndBlock();
      one->other = ParseBody({"endfor"});
    }
    End("endfor");
  }

  void ParseSet(Statement* one) {
    one->names.push_back(stream_.TakeName("a name"));
    if (stream_.SkipOperator(".")) one->names.push_back(stream_.TakeName("a name"));
    if (stream_.IsOperator(",")) stream_.FailHere("setting several names is not supported");
    if (stream_.SkipOperator("=")) {
      one->kind = Kind::kSet;
      one->expression = ParseExpression();
      return EndBlock();
    }
    if (one->names.size() == 2 || stream_.IsOperator("|")) stream_.FailHere("this form of \"set\" is not supported");
    one->kind = Kind::kSetBlock;
    EndBlock();
    one->body = ParseBody({"endset"});
    End("endset");
  }

  // Marks what is learned from: no part of the text.
  void ParseGeneration(Statement* one) {
    one->kind = Kind::kScope;
    EndBlock();
    const int loops = std::exchange(loops_, 0);
    one->body = ParseBody({"endgeneration"});
    loops_ = loops;
    End("endgeneration");
  }

  void ParseMacro(Statement* one) {
    one->kind = Kind::kMacro;
    one->names.push_back(stream_.TakeName("a name"));
    stream_.ExpectOperator("(");
    while (!stream_.IsOperator(")")) {
      one->names.push_back(stream_.TakeName("a name"));
      if (stream_.SkipOperator("=")) {
        one->defaults.push_back(ParseExpression());
      } else if (!one->defaults.empty()) {
        stream_.FailExpected("a default");
      }
      if (!stream_.IsOperator(")")) stream_.ExpectOperator(",");
    }
    stream_.Take();
    EndBlock();
    const int loops = std::exchange(loops_, 0);
    one->body = ParseBody({"endmacro"});
    loops_ = loops;
    End("endmacro");
  }

  JinjaStream stream_;
  int loops_ = 0;
};

}  // namespace

std::vector<Statement> ParseJinja(const std::vector<Token>& tokens) { return StatementParser(tokens).Run(); }

}  // namespace tarn::convert
