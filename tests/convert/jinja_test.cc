// The subset of Jinja against jinja2, whose answers lie in tests/data/chat.
#include "tools/convert/chat/jinja.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/convert/chat_testing.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

std::string Error(const std::string& source, const JinjaInput& input = {}) {
  try {
    return "rendered: " + JinjaTemplate(source).Render(input);
  } catch (const ConvertError& error) {
    return error.what();
  }
}

TEST(Jinja, TextsAreThoseOfJinja2) {
  size_t texts = 0, refused = 0;
  for (const ChatAnswer& answer : ChatAnswers()) {
    const std::string found = Error(ChatSource(answer.name), {answer.messages, answer.generation, kChatTexts});
    if (answer.text) {
      EXPECT_EQ(found, "rendered: " + *answer.text) << answer.name;
      ++texts;
    } else {
      EXPECT_NE(found.rfind("rendered: ", 0), 0u) << answer.name << ": " << found;
      ++refused;
    }
  }
  EXPECT_GT(texts, 200u);
  EXPECT_GT(refused, 5u);
}

// What jinja2 3.1.6 makes of these, as transformers sets it up.
TEST(Jinja, SmallTemplatesGiveWhatJinja2Gives) {
  const struct {
    const char* source;
    const char* text;
  } cases[] = {
      {"a\n{% if true %}\nb\n{% endif %}\nc\n\n", "a\nb\nc\n"},
      {"  {% if true %} x {%- endif +%}\n y {{- 1 }} {{ 2 -}} \n z", " x\n y1 2z"},
      {"{# c #}\nx {#- d -#} y", "xy"},
      {"{{ 'a' 'b' ~ 1 ~ true ~ none ~ nothing }}", "ab1TrueNone"},
      {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 + 3 * 4 - 1 }} {{ -2 }}", "3 -4 2 13 -2"},
      {"{{ 1 < 2 < 3 }} {{ 1 < 2 > 2 }} {{ 'a' in 'cab' }} {{ 'x' not in ['a'] }} {{ not 1 }}", "True False True True False"},
      {"{{ 'abc'[1:] }} {{ 'abc'[::-1] }} {{ 'abc'[-1] }} {{ 'abc'[5] }}|{{ [1,2,3][:-1] | length }}", "bc cba c |2"},
      {"{% for i in [1, 2, 3] if i != 2 %}{{ loop.index }}/{{ loop.length }}:{{ i }}{{ ', ' if not loop.last }}{% endfor %}",
       "1/2:1, 2/2:3"},
      {"{% for i in [] %}x{% else %}none{% endfor %}", "none"},
      {"{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% if i == 3 %}{% break %}{% endif %}{% endfor %}",
       "13"},
      {"{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}", "21"},
      {"{% set n = namespace(x=1) %}{% for i in [1] %}{% set n.x = 2 %}{% endfor %}{{ n.x }}", "2"},
      {"{% set x %}a{{ 1 }}{% endset %}[{{ x }}]", "[a1]"},
      {"{% macro m(a, b='d') %}<{{ a }}{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}{{ m() }}", "<1d><12><d>"},
      {"{{ ' a b '.split() | join('-') }} {{ 'a,b,,c'.split(',', 1)[1] }} {{ 'xxay'.strip('xy') }}", "a-b b,,c a"},
      {"{{ {'a': 1, 'b': [none, 'q\"']} | tojson }}", "{\"a\": 1, \"b\": [null, \"q\\\"\"]}"},
      {"{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}", "a1b2"},
      {"{{ nothing is defined }} {{ none is none }} {{ 3 is odd }} {{ 'a' is string }} {{ true is number }} {{ 2 is divisibleby 2 "
       "}}",
       "False True True True True True"},
      {"{{ nothing | default('d') }} {{ '' | default('d', true) }} {{ 'ABC' | lower }} {{ 'aBC' | capitalize }}", "d d abc Abc"},
      {"{{ '\\u00e9\\x41\\q' }}",
       "\xC3\xA9"
       "A\\q"},
      {"{% generation %}{% set x = 1 %}a{% endgeneration %}{{ x is defined }}", "aFalse"},
      {"{% for i in [1] if i > 5 %}x{% else %}{% set y = 1 %}{{ y }}{% endfor %}{{ y is defined }}", "1False"},
      {"{% for i in [1, 2] %}{{ i }}{% continue %}{% else %}E{% endfor %}", "12E"},
      {"{% for i in [1, 2] %}{% break %}{% else %}E{% endfor %}", "E"},
      {"{% for i in [1, 2] %}{% if i == 2 %}{% continue %}{% endif %}{% else %}E{% endfor %}", ""},
      {"{{ {'a': 1, 'b': 2, 'a': 3} | tojson }}", "{\"a\": 3, \"b\": 2}"},
      {"{{ nothing is callable }} {{ 1 is callable }}", "True False"},
      {"{% if (1 if 1) %}x{% endif %}{% for i in [1] if 1 if 1 %}y{% endfor %}", "xy"},
  };
  for (const auto& one : cases) EXPECT_EQ(Error(one.source), std::string("rendered: ") + one.text) << one.source;
}

// jinja2 asks the condition of a loop only when it needs the next item: the body may have changed what the condition reads.
TEST(Jinja, ConditionsOfLoopsAreAskedWhenTheNextItemIs) {
  const std::string loop = "{% set n = namespace(c=0) %}{% for i in [1, 2, 3, 4] if n.c < 2 %}", add = "{% set n.c = n.c + 1 %}";
  const std::pair<std::string, const char*> cases[] = {
      {loop + add + "{{ i }}{% endfor %}", "12"},
      {loop + add + "{{ i }}{{ loop.last }}{% endfor %}", "1False2True"},
      {loop + "{{ loop.length }}" + add + "{{ i }}{{ loop.last }}{% endfor %}", "41False42False43False44True"},
      {loop + "{{ loop.first }}{{ loop.nextitem }}" + add + "{{ i }}|{% endfor %}", "True21|False32|False3|"},
      {loop + "{{ loop.revindex }}" + add + "{{ i }}|{% endfor %}", "41|32|23|14|"},
      {"{% set x = 1 %}{% for i in [1, 2] if x == 1 %}{% set x = 2 %}{{ loop.last }}{% endfor %}", "FalseTrue"},
      {"{% for x in [1] %}{% for i in [1, 2] if loop.length == 1 %}{{ loop.length }}{% endfor %}{% endfor %}", "22"},
  };
  for (const auto& [source, text] : cases) EXPECT_EQ(Error(source), std::string("rendered: ") + text) << source;
}

TEST(Jinja, WhatIsNotSupportedIsNamed) {
  const struct {
    const char* source;
    const char* words;
  } cases[] = {
      {"\n\n{% include 'x' %}", "line 3: the statement \"include\" is not supported"},
      {"{{ x | frobnicate }}", "line 1: the filter \"frobnicate\" is not supported"},
      {"{{ 'x'.format(1) }}", "the method \"format\" of a text is not supported"},
      {"{{ 1.5 }}", "the number 1 is not supported"},
      {"{{ 4 / 2 }}", "the operator \"/\" is not supported"},
      {"{{ x", "the tag has no end"},
      {"{# x", "the comment has no end"},
      {"{{ 'x }}", "the text has no end"},
      {"{% if x %}", "the end of the template found, \"endif\" expected"},
      {"{% endif %}", "the statement \"endif\" is not supported"},
      {"{{ (1, 2) }}", "a tuple is not supported"},
      {"{{ [1] }}", "a list as text is not supported"},
      {"{{ messages.x.y }}", "\"x\" of a list is not supported"},
      {"{{ nothing.x }}", "\"nothing\" is undefined"},
      {"{{ nothing + 'x' }}", "\"nothing\" is undefined"},
      {"{{ 'x' + 1 }}", "\"+\" of a text and an integer is not supported"},
      {"{{ strftime_now('%d') }}", "\"strftime_now\" is undefined"},
      {"{{ raise_exception('no') }}", "line 1: the template refuses the conversation: no"},
      {"{{ '\xC3\xA9' | upper }}", "letters that are not ASCII"},
      {"{% for x in 1 %}{% endfor %}", "an integer has no items"},
      {"{{ 9223372036854775807 }}", "is too large"},
      {"{% break %}", "outside of a loop"},
      {"{% if 1 if 1 %}x{% endif %}", "\"if\" found, the end of the tag expected"},
      {"{% macro m(a) %}{{ varargs }}{% endmacro %}{{ m(1) }}", "\"varargs\" of a macro is not supported"},
      {"{% macro m(a) %}{% endmacro %}{{ m.name }}", "\"name\" of a function is not supported"},
      {"{{ {'a': 1}['items'] is defined }}", "the method \"items\" is not called"},
      {"{% macro m(l) %}{{ l.last }}{% endmacro %}{% for i in [1, 2] if i %}{{ m(loop) }}{% endfor %}",
       "is not supported in a macro"},
      {"{% set n = namespace() %}{% for i in [1, 2] if i %}{% set n.l = loop %}{% endfor %}{{ n.l.last }}",
       "is not supported behind the loop"},
  };
  for (const auto& one : cases)
    EXPECT_NE(Error(one.source).find(one.words), std::string::npos) << one.source << ": " << Error(one.source);
}

TEST(Jinja, HostileTemplatesEnd) {
  const auto repeat = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  const std::string loop = "{% for a in range(60000) %}";
  EXPECT_NE(Error(loop + loop + "x").find("expected"), std::string::npos);
  EXPECT_NE(Error(loop + loop + "{% endfor %}{% endfor %}").find("more than 262144 steps"), std::string::npos);
  EXPECT_NE(Error("{% set x = 'a' %}" + repeat("{% set x = x ~ x %}", 64)).find("steps"), std::string::npos);
  EXPECT_NE(Error("{% set n = namespace(x=[1]) %}" + repeat("{% set n.x = n.x + n.x %}", 64)).find("steps"), std::string::npos);
  EXPECT_NE(Error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").find("levels"), std::string::npos);
  EXPECT_NE(Error("{{ " + repeat("(", 5000) + "1" + repeat(")", 5000) + " }}").find("more than 64 levels"), std::string::npos);
  EXPECT_NE(Error("{{ " + repeat("not ", 5000) + "1 }}").find("more than 64 levels"), std::string::npos);
  EXPECT_NE(Error("{{ 1" + repeat(" + 1", 5000) + " }}").find("more than 256 operators"), std::string::npos);
  EXPECT_NE(Error("{{ x" + repeat(".y", 5000) + " }}").find("more than 256 operators"), std::string::npos);
  EXPECT_NE(Error(repeat("{% if 1 %}", 5000)).find("more than 64 levels"), std::string::npos);
  EXPECT_NE(Error("{% if 1 %}" + repeat("{% elif 1 %}", 5000)).find("more than 64 levels"), std::string::npos);
  EXPECT_NE(Error(std::string(300000, 'x')).find("at most 262144 expected"), std::string::npos);
  EXPECT_EQ(Error("{% set n = namespace() %}{% set n.x = n %}{{ n.x.x is defined }}"), "rendered: True");
}

}  // namespace
}  // namespace tarn::convert
