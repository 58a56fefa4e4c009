// The tokens of a template for a parser.
#ifndef TARN_TOOLS_CONVERT_CHAT_JINJA_STREAM_H_
#define TARN_TOOLS_CONVERT_CHAT_JINJA_STREAM_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tools/convert/chat/jinja_lexer.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {

// Tokens, and how deep the tree is.
class JinjaStream {
 public:
  explicit JinjaStream(const std::vector<JinjaToken>& tokens) : tokens_(tokens) {}

  const JinjaToken& current() const { return tokens_[at_]; }
  const JinjaToken& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool Is(JinjaToken::Kind kind) const { return current().kind == kind; }
  bool Is(JinjaToken::Kind kind, const char* text) const { return Is(kind) && current().text == text; }
  bool IsName(const char* text) const { return Is(JinjaToken::Kind::kName, text); }
  bool IsOperator(const char* text) const { return Is(JinjaToken::Kind::kOperator, text); }
  JinjaToken Take() {
    const JinjaToken token = current();
    if (token.kind != JinjaToken::Kind::kEnd) ++at_;
    return token;
  }
  bool Skip(JinjaToken::Kind kind, const char* text) {
    const bool is_it = Is(kind, text);
    if (is_it) ++at_;
    return is_it;
  }
  bool SkipName(const char* text) { return Skip(JinjaToken::Kind::kName, text); }
  bool SkipOperator(const char* text) { return Skip(JinjaToken::Kind::kOperator, text); }

  template <typename... Parts>
  [[noreturn]] void FailHere(const Parts&... parts) const {
    Fail("line ", current().line, ": ", parts...);
  }
  [[noreturn]] void FailExpected(const std::string& what) const { FailHere(Found(), " found, ", what, " expected"); }
  void Expect(JinjaToken::Kind kind, const char* what) {
    if (!Is(kind)) FailExpected(what);
    Take();
  }
  void ExpectOperator(const char* text) {
    if (!SkipOperator(text)) FailExpected("\"" + std::string(text) + "\"");
  }
  std::string TakeName(const char* what) {
    if (!Is(JinjaToken::Kind::kName)) FailExpected(what);
    return Take().text;
  }

  class Level {
   public:
    explicit Level(JinjaStream* stream) : stream_(stream) {
      if (++stream->depth_ > kMaxLevels) stream->FailHere("more than ", kMaxLevels, " levels");
    }
    ~Level() { --stream_->depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    JinjaStream* stream_;
  };

 private:
  static constexpr int kMaxLevels = 64;

  std::string Found() const {
    switch (current().kind) {
      case JinjaToken::Kind::kData:
      case JinjaToken::Kind::kBlockBegin:
      case JinjaToken::Kind::kPrintBegin:
        return "text of the template";
      case JinjaToken::Kind::kBlockEnd:
      case JinjaToken::Kind::kPrintEnd:
        return "the end of the tag";
      case JinjaToken::Kind::kEnd:
        return "the end of the template";
      default:
        return "\"" + current().text + "\"";
    }
  }

  const std::vector<JinjaToken>& tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHAT_JINJA_STREAM_H_
