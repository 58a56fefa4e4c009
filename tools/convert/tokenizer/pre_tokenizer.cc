#include "tools/convert/tokenizer/pre_tokenizer.h"

#include <utility>
#include <vector>

#include "runtime/text/tokenizer_tables.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/component.h"
#include "tools/convert/tokenizer/pattern.h"
#include "tools/convert/tokenizer/utf8_codes.h"

namespace tarn::convert {
namespace {

using format::SplitBehavior;

constexpr char kGpt2Pattern[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// The package's Whitespace takes joiners for characters of words, which Oniguruma's \w does not.
constexpr char kWhitespacePattern[] = R"([\w\x{200C}\x{200D}]+|[^\w\s\x{200C}\x{200D}]+)";
constexpr char kPunctuationPattern[] = R"([\p{P}$+<=>^`|~])";

constexpr Choice<SplitBehavior> kBehaviors[] = {
    {"Removed", SplitBehavior::Removed},
    {"Isolated", SplitBehavior::Isolated},
    {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
    {"MergedWithNext", SplitBehavior::MergedWithNext},
    {"Contiguous", SplitBehavior::Contiguous},
};

// Characters of one script, the first of a run, and of none.
PatternNode ScriptRun() {
  const std::vector<CodeSet> scripts = ScriptSets();
  CodeSet all;
  for (const CodeSet& script : scripts) all = all.Union(script);
  PatternNode run;
  run.kind = PatternNode::Kind::kAlternate;
  for (const CodeSet& script : scripts) {
    PatternNode first, more, rest, sequence;
    first.kind = more.kind = PatternNode::Kind::kSet;
    first.set = script;
    more.set = script.Union(all.Complement());
    rest.kind = PatternNode::Kind::kRepeat;
    rest.max = PatternNode::kUnbounded;
    rest.children = {more};
    sequence.children = {first, rest};
    run.children.push_back(sequence);
  }
  return run;
}

enum class Prefix : uint8_t { kAlways, kFirst, kNever };
constexpr Choice<Prefix> kPrefixes[] = {{"always", Prefix::kAlways}, {"first", Prefix::kFirst}, {"never", Prefix::kNever}};

// Reads the parts of a sequence, one after the other. A part sees what those before it made: spaces may have become another
// character, and characters letters of the byte-level alphabet. The text itself stays as it is until words go to the model, so this
// is for the patterns to know (PatternView).
class PreTokenizerReader {
 public:
  explicit PreTokenizerReader(TokenizerData* data) : data_(data) {}

  void Read(const Json& part, const std::string& where) {
    Fields fields(part, where);
    const auto read = fields.OneOf("type", kTypes);
    (this->*read)(&fields, where);
    fields.Finish();
  }

 private:
  using ReadType = void (PreTokenizerReader::*)(Fields*, const std::string&);
  static const Choice<ReadType> kTypes[11];

  // Before a pattern is compiled, which takes time.
  void CheckRoom(const std::string& where) const {
    if (data_->splits.size() == kMaxSplits) Fail(where, ": split ", kMaxSplits + 1, ", at most ", kMaxSplits, " expected");
  }

  void Add(const std::string& pattern, const std::string& where, SplitBehavior behavior, bool invert = false,
           UnicodeVersion version = UnicodeVersion::k16) {
    CheckRoom(where);
    view_.version = version;
    data_->splits.push_back({CompilePattern(pattern, where, view_), behavior, invert, view_.by_bytes});
  }

  void AddPrefix(bool first_only, const std::string& where) {
    if (data_->prefix_space) Fail(where, ": a second step that puts a space before texts is not supported");
    data_->prefix_space = true;
    data_->prefix_first = first_only;
    data_->prefix_level = static_cast<uint8_t>(data_->splits.size());
  }

  void ReadSplit(Fields* fields, const std::string& where) {
    const Json* pattern = fields->Find("pattern");
    if (pattern == nullptr) fields->FailAt("pattern", "expected");
    Fields kind(*pattern, where + ".pattern");
    const std::string regex = kind.Has("Regex") ? kind.Text("Regex") : EscapePattern(kind.Text("String"));
    kind.Finish();
    const SplitBehavior behavior = fields->OneOf("behavior", kBehaviors);
    Add(regex, where + ".pattern", behavior, fields->Bool("invert", false));
  }

  void ReadDigits(Fields* fields, const std::string& where) {
    const bool individual = fields->Bool("individual_digits", false);
    Add(R"(\p{N})", where, individual ? SplitBehavior::Isolated : SplitBehavior::Contiguous, false, UnicodeVersion::k17);
  }

  void ReadPunctuation(Fields* fields, const std::string& where) {
    Add(kPunctuationPattern, where, fields->OneOf("behavior", kBehaviors, {SplitBehavior::Isolated}), false, UnicodeVersion::k8);
  }

  void ReadWhitespace(Fields*, const std::string& where) { Add(kWhitespacePattern, where, SplitBehavior::Removed, true); }

  void ReadWhitespaceSplit(Fields*, const std::string& where) { Add(R"(\s+)", where, SplitBehavior::Removed); }

  void ReadBert(Fields*, const std::string& where) {
    Add(R"(\s+)", where, SplitBehavior::Removed);
    Add(kPunctuationPattern, where, SplitBehavior::Isolated, false, UnicodeVersion::k8);
  }

  void ReadCharDelimiterSplit(Fields* fields, const std::string& where) {
    Add(EscapePattern(Character(fields, "delimiter", where)), where, SplitBehavior::Removed);
  }

  void ReadFixedLength(Fields* fields, const std::string& where) {
    const uint64_t length = fields->Integer("length", 1, 1000, 5);
    Add("(?m:.){1," + std::to_string(length) + "}", where, SplitBehavior::Isolated);
  }

  // What is in no script before the first one that is gets lost, as in the package.
  void ReadUnicodeScripts(Fields*, const std::string& where) {
    CheckRoom(where);
    data_->splits.push_back(
        {CompilePattern(ScriptRun(), "UnicodeScripts", where, view_), SplitBehavior::Removed, true, view_.by_bytes});
  }

  void ReadByteLevel(Fields* fields, const std::string& where) {
    const bool prefix = fields->Bool("add_prefix_space", true), use_regex = fields->Bool("use_regex", true);
    fields->Bool("trim_offsets", true);  // the post-processor's
    if (view_.by_bytes) Fail(where, ": ByteLevel twice is not supported");
    if (prefix) AddPrefix(false, where + ".add_prefix_space");
    // Behind Metaspace the model sees this space as one, and all others as the replacement.
    if (prefix && !data_->space.empty()) fields->FailAt("add_prefix_space", "true is not supported behind Metaspace, false is");
    if (use_regex) Add(kGpt2Pattern, where, SplitBehavior::Isolated);
    view_.by_bytes = data_->byte_level = true;
  }

  void ReadMetaspace(Fields* fields, const std::string& where) {
    if (view_.by_bytes || view_.space != ' ') Fail(where, ": Metaspace is not supported behind ByteLevel or another Metaspace");
    data_->space = Character(fields, "replacement", where);
    // Files of older versions say prepend_scheme by add_prefix_space, and the replacement a second time.
    const bool always = fields->Bool("add_prefix_space", true);
    fields->Find("str_rep");
    const Prefix prefix = fields->OneOf("prepend_scheme", kPrefixes, {always ? Prefix::kAlways : Prefix::kNever});
    if (!always && prefix != Prefix::kNever) fields->FailAt("add_prefix_space", "false contradicts prepend_scheme");
    view_.space = CodesOfUtf8(data_->space, where)[0];
    if (prefix != Prefix::kNever) AddPrefix(prefix == Prefix::kFirst, where);
    if (fields->Bool("split", true)) Add(EscapePattern(data_->space), where, SplitBehavior::MergedWithNext);
  }

  static std::string Character(Fields* fields, const char* key, const std::string& where) {
    std::string text = fields->Text(key);
    if (CodesOfUtf8(text, where).size() != 1) fields->FailAt(key, "\"" + text + "\" found, one character expected");
    return text;
  }

  TokenizerData* data_;
  PatternView view_;
};

const Choice<PreTokenizerReader::ReadType> PreTokenizerReader::kTypes[11] = {
    {"Split", &PreTokenizerReader::ReadSplit},
    {"ByteLevel", &PreTokenizerReader::ReadByteLevel},
    {"Metaspace", &PreTokenizerReader::ReadMetaspace},
    {"Digits", &PreTokenizerReader::ReadDigits},
    {"Punctuation", &PreTokenizerReader::ReadPunctuation},
    {"Whitespace", &PreTokenizerReader::ReadWhitespace},
    {"WhitespaceSplit", &PreTokenizerReader::ReadWhitespaceSplit},
    {"BertPreTokenizer", &PreTokenizerReader::ReadBert},
    {"CharDelimiterSplit", &PreTokenizerReader::ReadCharDelimiterSplit},
    {"FixedLength", &PreTokenizerReader::ReadFixedLength},
    {"UnicodeScripts", &PreTokenizerReader::ReadUnicodeScripts},
};

}  // namespace

void ReadPreTokenizer(const Json& object, const std::string& where, TokenizerData* data) {
  if (object.is_null()) return;
  PreTokenizerReader reader(data);
  for (const auto& [part, place] : Parts(object, where, "pretokenizers")) reader.Read(*part, place);
}

SplitStep Gpt2Split(const std::string& where) {
  return {CompilePattern(kGpt2Pattern, where), SplitBehavior::Isolated, false, false};
}

}  // namespace tarn::convert
