// The notation: which texts a grammar takes, and what is said of a grammar that is none.
#include <gtest/gtest.h>

#include <string>

#include "runtime/grammar/rules.h"
#include "runtime/grammar/syntax.h"
#include "tests/grammar/grammar_fixture.h"

namespace tarn {
namespace {

using Progress = Grammar::Progress;

struct TextCase {
  const char* grammar;
  const char* text;
  size_t taken;  // bytes
  Progress progress;
};

TEST(Notation, TakesTexts) {
  constexpr Progress kOpen = Progress::kOpen, kMayEnd = Progress::kMayEnd, kComplete = Progress::kComplete;
  const TextCase cases[] = {
      {"root ::= \"abc\"", "abc", 3, kComplete},
      {"root ::= \"abc\"", "abd", 2, kOpen},
      {"\xEF\xBB\xBFroot ::= \"abc\"", "abc", 3, kComplete},  // a byte-order mark
      {"root ::= \"abc\"", "", 0, kOpen},
      {"root ::= \"\"", "", 0, kComplete},
      {"root ::=", "a", 0, kComplete},
      {"root ::= \"a\" | \"ab\" | \"b\"", "ab", 2, kComplete},
      {"root ::= \"a\" | \"ab\" | \"b\"", "a", 1, kMayEnd},
      {"root ::= [a-c]*", "abcabc", 6, kMayEnd},
      {"root ::= [a-c]*", "abd", 2, kMayEnd},
      {"root ::= [a-c]+", "", 0, kOpen},
      {"root ::= [a-c]+ \"x\"", "abx", 3, kComplete},
      {"root ::= \"ab\"? \"c\"", "c", 1, kComplete},
      {"root ::= \"ab\"? \"c\"", "abc", 3, kComplete},
      {"root ::= \"ab\"* \"c\"", "ababc", 5, kComplete},
      {"root ::= \"a\"{3}", "aaaa", 3, kComplete},
      {"root ::= \"a\"{2,}", "aaaa", 4, kMayEnd},
      {"root ::= \"a\"{2,}", "a", 1, kOpen},
      {"root ::= \"a\"{ 1 , 2 }", "aaa", 2, kComplete},
      {"root ::= \"a\"{0,2}", "", 0, kMayEnd},
      {"root ::= \"a\"{0} \"b\"", "ab", 0, kOpen},
      {"root ::= (\"a\"{2}){2}", "aaaaa", 4, kComplete},
      {"root ::= (\"a\" | \"b\" \"c\")+", "abca", 4, kMayEnd},
      {"root ::= (\"a\"*)* \"b\"", "aab", 3, kComplete},
      {"root ::= (\"\" | \"a\")* \"b\"", "aab", 3, kComplete},
      {"root ::= \"a\"*? \"b\"", "aab", 3, kComplete},
      {"root ::= .", "\xC3\xA9", 2, kComplete},
      {"root ::= .", "\xC3", 1, kOpen},
      {"root ::= .", "\xFF", 0, kOpen},
      {"root ::= .", "\n", 1, kComplete},
      {"root ::= .*", "\xED\xA0\x80", 1, kOpen},        // a surrogate
      {"root ::= .*", "\xF4\x8F\xBF\xBF", 4, kMayEnd},  // U+10FFFF
      {"root ::= .*", "\xF4\x90\x80\x80", 1, kOpen},    // above it
      {"root ::= .*", "\xC0\x80", 0, kMayEnd},          // overlong
      {"root ::= .*", "\xE0\x9F\xBF", 1, kOpen},        // overlong
      {"root ::= .*", "\xF0\x90\x80\x80", 4, kMayEnd},  // U+10000
      {"root ::= [^\"\\\\]*", "a\xE2\x82\xAC\"", 4, kMayEnd},
      {"root ::= [^a]", "a", 0, kOpen},
      {"root ::= [\xC3\xA0-\xC3\xBF]", "\xC3\xA9", 2, kComplete},
      {"root ::= [\xC3\xA0-\xC3\xBF]", "\xC3\x9F", 1, kOpen},
      {"root ::= [\\u00e0-\\U0001F600]", "\xF0\x9F\x98\x80", 4, kComplete},
      {"root ::= [\\u00e0-\\U0001F600]", "\xF0\x9F\x98\x81", 3, kOpen},
      {"root ::= \"\\xe9\\n\\t\\r\\\\\\\"\\[\\]\"", "\xC3\xA9\n\t\r\\\"[]", 9, kComplete},
      {"root ::= [a-]", "-", 1, kComplete},
      {"root ::= [-a]", "-", 1, kComplete},
      {"root ::= [\\]^]", "]", 1, kComplete},
      {"root ::= a b\na ::= \"1\"*\nb ::= \"2\" | a \"3\"", "1113", 4, kComplete},
      {"# begin\nroot ::= a # one\n\na ::= # two\n  \"x\" | # three\n  \"y\"\n", "y", 1, kComplete},
      {"root ::= (\n \"a\"\n | \"b\"\n)\n", "b", 1, kComplete},
      {"a ::= \"x\"\r\nroot ::= a\r\n", "x", 1, kComplete},
      {"root ::= \"(\" root \")\" | \"x\"", "((x))", 5, kComplete},
      {"root ::= \"(\" root \")\" | \"x\"", "((x", 3, kOpen},
      {"root ::= \"(\" root? \")\" root?", "(())()", 6, kMayEnd},
      {"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"", "aadbc", 5, kComplete},
      {"root ::= \"1\" | \"1\" tail\ntail ::= \"+\" root", "1+1+1", 5, kMayEnd},
  };
  for (const TextCase& c : cases) {
    const Result<Grammar*> created = test::CreateGrammar(c.grammar);
    ASSERT_TRUE(created.ok()) << c.grammar << "\n" << created.status().message();
    const test::GrammarOwner grammar(created.value(), Grammar::Destroy);
    EXPECT_EQ(test::TakenBytes(grammar.get(), c.text), c.taken) << c.grammar << "\n" << c.text;
    EXPECT_EQ(grammar->progress(), c.progress) << c.grammar << "\n" << c.text;
  }
}

struct ErrorCase {
  const char* grammar;
  const char* message;
};

TEST(Notation, ErrorsNameLineAndColumn) {
  const ErrorCase cases[] = {
      {"", "the grammar has no rule 'root'"},
      {"a ::= \"x\"", "the grammar has no rule 'root'"},
      {"root := \"x\"", "line 1, column 6: expected '::=' behind the name of a rule, found ':'"},
      {"root ::= \"x", "line 1, column 12: expected a closing '\"', but the grammar ends"},
      {"root ::= \"x\ny\"", "line 1, column 12: expected a closing '\"', found the end of the line"},
      {"root ::= [a", "line 1, column 12: expected ']', but the grammar ends"},
      {"root ::= []", "line 1, column 12: a class without characters"},
      {"root ::= [^\\x00-\\U0010FFFF]", "a class without characters"},
      {"root ::= [b-a]", "line 1, column 11: a range of characters ends before it begins"},
      {"root ::= \"\\q\"", "line 1, column 11: an unknown escape, expected one of \\n"},
      {"root ::= \"\\u12\"", "line 1, column 11: an escape with too few hexadecimal digits"},
      {"root ::= \"\\uD800\"", "line 1, column 11: an escape that is no character of Unicode"},
      {"root ::= \"\\U00110000\"", "line 1, column 11: an escape that is no character of Unicode"},
      {"root ::= a", "line 1, column 10: rule 'a' is not defined"},
      {"root ::= \"x\"\nroot ::= \"y\"", "line 2, column 1: rule 'root' is defined twice"},
      {"root ::= (\"x\"", "line 1, column 14: expected an element, '|' or ')', but the grammar ends"},
      {"root ::= \"x\")", "line 1, column 13: expected an element, '|' or the end of the line, found ')'"},
      {"root ::= \"x\" <[7]>", "line 1, column 14: expected a rule, \"text\", [class], '.' or '(', found '<'"},
      {"root ::= *", "line 1, column 10: expected a rule, \"text\", [class], '.' or '(', found '*'"},
      {"root ::= \"x\"{2,1}", "line 1, column 18: a repetition {m,n} with n below m"},
      {"root ::= \"x\"{a}", "line 1, column 14: expected a number of repetitions, found 'a'"},
      {"root ::= \"x\"{99999999}", "a number of repetitions above 1048576"},
      {"root ::= \"\xC3\xA9\xC3\xA9\" x", "line 1, column 15: rule 'x' is not defined"},
      {"root ::= \"\xFF\"", "line 1, column 11: the grammar is not UTF-8"},
      {"root ::= \xFF", "found '?'"},
      {"\xEF\xBB\xBFroot ::= y", "line 1, column 10: rule 'y' is not defined"},
      {"root ::= a\na ::= \"x\" a", "line 1, column 1: rule 'root' never comes to an end"},
      {"root ::= a\na ::= a \"x\" | \"y\"", "line 2, column 1: rule 'a' begins with itself (a -> a): write"},
      {"root ::= e\ne ::= t \"+\" e | t\nt ::= n e | \"1\"\nn ::= \"\" | \"-\" e",
       "line 3, column 1: rule 't' begins with itself (t -> e -> t): write"},
      {"root ::= \"a\"{400}{400}", "rule 'root': more than max_states 65536 states"},
      {"root ::= [ab]* \"a\" [ab]{30}", "rule 'root': more than max_states 65536 states"},
  };
  for (const ErrorCase& c : cases) {
    const Result<Grammar*> created = test::CreateGrammar(c.grammar);
    ASSERT_FALSE(created.ok()) << c.grammar;
    EXPECT_NE(std::string(created.status().message()).find(c.message), std::string::npos) << c.grammar << "\n"
                                                                                          << created.status().message();
  }
}

std::string Repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(Notation, DepthOfAGrammarIsBounded) {
  EXPECT_NE(test::MakeGrammar("root ::= " + Repeated("(", 64) + "\"x\"" + Repeated(")", 64)), nullptr);
  const Result<Grammar*> nested = test::CreateGrammar("root ::= " + Repeated("(", 100000));
  EXPECT_NE(std::string(nested.status().message()).find("more than 64 groups"), std::string::npos) << nested.status().message();
  const Result<Grammar*> operators = test::CreateGrammar("root ::= \"x\"" + Repeated("*", 100000));
  EXPECT_NE(std::string(operators.status().message()).find("more than 8 repetitions"), std::string::npos);

  const Result<Grammar*> nothing = test::CreateGrammar("root ::= (\"\"" + Repeated(" | \"\"", 1000) + "){60000}");
  EXPECT_NE(std::string(nothing.status().message()).find("repetitions {m,n} of more than 1048576 parts"), std::string::npos)
      << nothing.status().message();

  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 8000; ++i) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  const test::GrammarOwner grammar = test::MakeGrammar(chain + "r8000 ::= \"x\"");
  ASSERT_NE(grammar, nullptr);
  EXPECT_EQ(test::TakenBytes(grammar.get(), "x"), 1u);
  for (int i = 0; i < 300; ++i) chain += "s" + std::to_string(i) + " ::= \"\"\n";
  const Result<Grammar*> rules = test::CreateGrammar(chain);
  EXPECT_NE(std::string(rules.status().message()).find("more than 8192 rules"), std::string::npos) << rules.status().message();
}

std::string Rule(int number) { return "a" + std::to_string(number); }

// Rules use each other to and fro, and one that nothing uses has many references.
TEST(Work, OfRulesIsInProportionToTheGrammar) {
  for (const int count : {1000, 4000}) {
    std::string text = "root ::= " + Rule(0) + "\nbig ::=";
    for (int i = 0; i < 10 * count; ++i) text += " " + Rule(i % count);
    text += "\n";
    for (int i = 0; i < count / 2; ++i) {
      text += Rule(i) + " ::= " + Rule(count - 1 - i) + "\n";
      text += Rule(count - 1 - i) + " ::= " + (i + 1 < count / 2 ? Rule(i + 1) : "\"x\"") + "\n";
    }
    Syntax syntax(DefaultAllocator(), {text.data(), text.size()});
    ASSERT_TRUE(syntax.Parse().ok());
    Array<RuleFacts> facts(DefaultAllocator());
    uint64_t work = 0;
    ASSERT_TRUE(FindFacts(syntax, DefaultAllocator(), &facts, &work).ok());
    EXPECT_LT(work, 6 * syntax.node_count());
    EXPECT_EQ(facts[syntax.root()].ends, 1);
    EXPECT_EQ(facts[syntax.root()].nullable, 0);
    EXPECT_EQ(facts[1].used, 1) << "a0";
    EXPECT_EQ(facts[2].used, 0) << "big";
  }
}

// As many empty edges as one likes are looked at for each of the sets that the repetition behind them makes.
TEST(Work, OfEmptyAlternativesIsCounted) {
  const std::string text = "root ::= [ab]* [a] (" + std::string(100000, '|') + ") [ab]{13}";
  GrammarConfig config = test::kGrammarConfig;
  config.max_work = 1u << 27;
  const Status status = test::CreateGrammar(text, test::ByteTokens(), config).status();
  EXPECT_EQ(status.code(), TARN_UNSUPPORTED);
  EXPECT_NE(std::string(status.message()).find("more than max_work 134217728 steps"), std::string::npos) << status.message();
}

TEST(Work, NamesAreFoundWhateverTheirOrder) {
  std::string text = "root ::=";
  for (int i = 0; i < 2000; ++i) text += " " + Rule(i * 7919 % 2000);
  for (int i = 0; i < 2000; ++i) {
    const int number = i * 997 % 2000;
    text += "\n" + Rule(number) + " ::= \"" + static_cast<char>('a' + number % 26) + "\"";
  }
  const test::GrammarOwner grammar = test::MakeGrammar(text);
  ASSERT_NE(grammar, nullptr);
  std::string taken;
  for (int i = 0; i < 2000; ++i) taken += static_cast<char>('a' + i * 7919 % 2000 % 26);
  EXPECT_EQ(test::TakenBytes(grammar.get(), taken), taken.size());
}

}  // namespace
}  // namespace tarn
