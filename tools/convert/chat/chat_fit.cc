#include "tools/convert/chat/chat_fit.h"

#include <algorithm>
#include <cstdint>

#include "runtime/text/chat_template.h"
#include "tools/convert/chat/jinja_text.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using Messages = std::vector<JinjaMessage>;

// Around contents, to see what becomes of spaces. Not of one length.
constexpr char kSpacesBefore[] = "\n \t", kSpacesBehind[] = " \n";
// Turns of the user in the conversations that a form is checked with: up to so many, and in one as many.
constexpr size_t kMostQuestions = 4, kManyQuestions = 20;
constexpr size_t kMaxLiterals = 64, kMaxLiteralBytes = 200;

// Roles of a conversation of `questions` turns of the user, the last one of which is open.
std::vector<std::string> Roles(bool with_system, size_t questions) {
  std::vector<std::string> roles;
  if (with_system) roles.push_back("system");
  for (size_t i = 0; i < questions; ++i) {
    if (i > 0) roles.push_back("assistant");
    roles.push_back("user");
  }
  return roles;
}

std::string RolesText(const Messages& messages) {
  std::string text;
  for (const JinjaMessage& one : messages) text += (text.empty() ? "" : ", ") + one.role;
  return text;
}

// A part of a text for a message.
std::string Quoted(const std::string& text) {
  constexpr size_t kMost = 40;
  std::string quoted = "\"";
  for (const char c : text.substr(0, kMost)) quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  return quoted + (text.size() > kMost ? "...\"" : "\"");
}

// A content that no template knows.
std::string Marker(size_t index) { return "Qz" + std::to_string(index) + "jq"; }

class Fitter {
 public:
  Fitter(const JinjaTemplate& jinja, const std::vector<std::pair<std::string, std::string>>& texts)
      : jinja_(jinja), texts_(texts) {}

  ChatFit Run() {
    FitPlain();
    Verify(/*with_system=*/false);
    try {
      FitSystem();
      Verify(/*with_system=*/true);
    } catch (const ConvertError& error) {
      fit_.no_system = error.what();
      chat_.has_system = false;
      chat_.system = chat_.after_system = {};
    }
    FindSpecialContents();
    FindBlankContent();
    fit_.chat = chat_;
    return fit_;
  }

 private:
  std::string Render(const Messages& messages) const {
    try {
      return jinja_.Render({messages, true, texts_});
    } catch (const ConvertError& error) {
      Fail("a conversation of ", RolesText(messages), ": ", error.what());
    }
  }

  // The texts before, between and behind the markers of a conversation.
  std::vector<std::string> Gaps(const std::vector<std::string>& roles, bool with_spaces) const {
    Messages messages;
    for (const std::string& role : roles) {
      const std::string marker = Marker(messages.size());
      messages.push_back({role, with_spaces ? kSpacesBefore + marker + kSpacesBehind : marker});
    }
    const std::string text = Render(messages);
    std::vector<std::string> gaps;
    size_t at = 0;
    for (size_t i = 0; i < messages.size(); ++i) {
      const std::string marker = Marker(i);
      const size_t found = text.find(marker);
      const std::string what = "the content of message " + std::to_string(i + 1) + ", of the " + messages[i].role + ", ";
      if (found == std::string::npos) Fail("a conversation of ", RolesText(messages), ": ", what, "is not in the text");
      if (found < at || text.find(marker, found + 1) != std::string::npos) {
        Fail("a conversation of ", RolesText(messages), ": ", what, "is not in its place, or is there twice");
      }
      gaps.push_back(text.substr(at, found - at));
      at = found + marker.size();
    }
    gaps.push_back(text.substr(at));
    for (const std::string& gap : gaps) {
      if (gap.size() > kMaxChatTextBytes) Fail("a text of ", gap.size(), " bytes, at most ", kMaxChatTextBytes, " expected");
    }
    return gaps;
  }

  // What became of the spaces at both sides of `text`, which is `gap` with them. nullptr: there are none on that side.
  static void FitSpaces(const std::string& text, const std::string& gap, bool* trim_end, bool* trim_begin) {
    for (const bool end : {false, true}) {
      for (const bool begin : {false, true}) {
        const std::string expected =
            (trim_end == nullptr || end ? "" : kSpacesBehind) + text + (trim_begin == nullptr || begin ? "" : kSpacesBefore);
        if (gap != expected) continue;
        if (trim_end != nullptr) *trim_end = end;
        if (trim_begin != nullptr) *trim_begin = begin;
        return;
      }
    }
    Fail("spaces around a content: some are left out and some are not");
  }

  void FitPlain() {
    const std::vector<std::string> roles = Roles(false, 2);
    const std::vector<std::string> gaps = Gaps(roles, false), spaced = Gaps(roles, true);
    chat_.first.before = gaps[0];
    chat_.assistant.before = gaps[1];
    chat_.next.before = gaps[2];
    chat_.answer = gaps[3];
    FitSpaces(gaps[0], spaced[0], nullptr, &chat_.first.trim_begin);
    FitSpaces(gaps[1], spaced[1], &chat_.first.trim_end, &chat_.assistant.trim_begin);
    FitSpaces(gaps[2], spaced[2], &chat_.assistant.trim_end, &chat_.next.trim_begin);
    FitSpaces(gaps[3], spaced[3], &chat_.next.trim_end, nullptr);
  }

  void FitSystem() {
    const std::vector<std::string> roles = Roles(true, 2);
    const std::vector<std::string> gaps = Gaps(roles, false), spaced = Gaps(roles, true);
    chat_.has_system = true;
    chat_.system.before = gaps[0];
    chat_.after_system.before = gaps[1];
    FitSpaces(gaps[0], spaced[0], nullptr, &chat_.system.trim_begin);
    FitSpaces(gaps[1], spaced[1], &chat_.system.trim_end, &chat_.after_system.trim_begin);
    bool trim_assistant = false;
    FitSpaces(gaps[2], spaced[2], &chat_.after_system.trim_end, &trim_assistant);
  }

  // Where the rendering is another one; empty: nowhere.
  std::string Difference(const Messages& messages) const {
    const std::string wanted = Render(messages), found = FormatChat(chat_, messages);
    if (wanted == found) return "";
    size_t at = 0;
    while (at < wanted.size() && at < found.size() && wanted[at] == found[at]) ++at;
    return "a conversation of " + RolesText(messages) + " is rendered otherwise: " + Quoted(wanted.substr(at)) + " at byte " +
           std::to_string(at) + ", and not " + Quoted(found.substr(at));
  }

  std::string DifferenceOrRefusal(const Messages& messages) const {
    try {
      return Difference(messages);
    } catch (const ConvertError& error) {
      return error.what();
    }
  }

  void Verify(bool with_system) const {
    static const std::vector<std::string> kContents = {
        "x",
        "Hello, world!",
        " spaces around it\n\n",
        "several\nlines\n\n\nof text",
        "{{ messages }} {% if x %} {# none #}",
        "quotes ' and \", \\ and \\n",
        "<b>&amp;</b>",
        "\xC3\xBC"
        "ber \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x98\x80",
        "0",
        "None",
        "\tuser\r\nassistant: system",
        std::string(3000, 'a'),
        "\xE3\x80\x80wide spaces\xC2\xA0",
    };
    size_t next = 0;
    const size_t rounds = 2 * kContents.size();
    for (size_t round = 0; round <= rounds; ++round) {
      Messages messages;
      for (const std::string& role : Roles(with_system, round < rounds ? 1 + round % kMostQuestions : kManyQuestions))
        messages.push_back({role, kContents[next++ % kContents.size()]});
      const std::string difference = Difference(messages);
      if (!difference.empty()) Fail(difference);
    }
  }

  // What looks into contents, looks for a text of its own.
  void FindSpecialContents() {
    size_t probes = 0;
    for (const std::string& literal : jinja_.literals()) {
      const bool is_blank = StripSpaces(literal, true, true).empty();
      const bool is_known =
          std::find(fit_.special_contents.begin(), fit_.special_contents.end(), literal) != fit_.special_contents.end();
      if (is_blank || is_known || literal.size() > kMaxLiteralBytes || ++probes > kMaxLiterals) continue;
      for (const std::string& content : {"a" + literal + "b", literal}) {
        if (!IsOrdinary(content)) {
          fit_.special_contents.push_back(literal);
          break;
        }
      }
    }
  }

  bool IsOrdinary(const std::string& content) const {
    Messages messages;
    for (const std::string& role : Roles(chat_.has_system, 2)) messages.push_back({role, content});
    return DifferenceOrRefusal(messages).empty();
  }

  // A template may leave out a turn without text.
  void FindBlankContent() {
    const std::vector<std::string> roles = Roles(chat_.has_system, 2);
    for (const auto& [content, what] : {std::pair{"", "an empty"}, std::pair{" \n", "a blank"}}) {
      for (size_t i = 0; i < roles.size(); ++i) {
        Messages messages;
        for (const std::string& role : roles) messages.push_back({role, messages.size() == i ? content : "x"});
        const std::string difference = DifferenceOrRefusal(messages);
        if (difference.empty()) continue;
        fit_.blank_content = std::string("with ") + what + " content of message " + std::to_string(i + 1) + ", " + difference;
        return;
      }
    }
  }

  const JinjaTemplate& jinja_;
  const std::vector<std::pair<std::string, std::string>> texts_;
  ChatData chat_;
  ChatFit fit_;
};

}  // namespace

ChatFit FitChat(const JinjaTemplate& jinja, const std::vector<std::pair<std::string, std::string>>& texts) {
  return Fitter(jinja, texts).Run();
}

}  // namespace tarn::convert
