#include "tools/convert/tokenizer/normalizer.h"

#include <utility>
#include <vector>

#include "tools/convert/tokenizer/charsmap.h"
#include "tools/convert/tokenizer/component.h"
#include "tools/convert/tokenizer/normalize.h"

namespace tarn::convert {
namespace {

using Kind = NormalizerStep::Kind;
using Steps = std::vector<NormalizerStep>;

// What BertNormalizer takes for control characters, for spaces, and for Chinese.
constexpr char kBertControls[] = R"([\x{0}\x{FFFD}\p{Cc}\p{Cf}\p{Co}&&[^\t\n\r]])";
constexpr char kBertSpaces[] = R"([\t\n\r\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}])";
constexpr char kBertChinese[] = R"([\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF})"
                                R"(\x{20000}-\x{2A6DF}\x{2A700}-\x{2B81F}\x{2B920}-\x{2CEAF}\x{2F800}-\x{2FA1F}])";
// SentencePiece's "nmt" rules: controls that go, and what becomes a space.
constexpr char kNmtControls[] = R"([\x{1}-\x{8}\x{B}\x{E}-\x{1F}\x{7F}\x{8F}\x{9F}])";
constexpr char kNmtSpaces[] = R"([\t\n\x{C}\r\x{1680}\x{200B}-\x{200F}\x{2028}\x{2029}\x{2581}\x{FEFF}\x{FFFD}])";

template <Kind kKind>
void ReadPlain(Fields*, Steps* steps) {
  steps->push_back({kKind});
}

void ReadPrepend(Fields* fields, Steps* steps) { steps->push_back({Kind::kPrepend, fields->Text("prepend")}); }

void ReadReplace(Fields* fields, Steps* steps) {
  const Json* pattern = fields->Find("pattern");
  if (pattern == nullptr) fields->FailAt("pattern", "expected");
  Fields kind(*pattern, fields->where() + ".pattern");
  const bool is_regex = kind.Has("Regex");
  const std::string text = kind.Text(is_regex ? "Regex" : "String");
  kind.Finish();
  steps->push_back({is_regex ? Kind::kReplaceMatches : Kind::kReplace, text, fields->Text("content")});
}

void ReadStrip(Fields* fields, Steps* steps) {
  NormalizerStep step{Kind::kStrip};
  step.left = fields->Bool("strip_left", true);
  step.right = fields->Bool("strip_right", true);
  steps->push_back(step);
}

void ReadPrecompiled(Fields* fields, Steps* steps) {
  const std::string where = fields->where() + ".precompiled_charsmap";
  NormalizerStep step{Kind::kCharsMap};
  step.charsmap = CompileCharsMap(DecodeBase64(fields->Text("precompiled_charsmap"), where), where);
  steps->push_back(std::move(step));
}

void ReadNmt(Fields*, Steps* steps) {
  steps->push_back({Kind::kReplaceMatches, kNmtControls, ""});
  steps->push_back({Kind::kReplaceMatches, kNmtSpaces, " "});
}

void ReadBert(Fields* fields, Steps* steps) {
  if (fields->Bool("clean_text", true)) {
    steps->push_back({Kind::kReplaceMatches, kBertControls, "", UnicodeVersion::k8});
    steps->push_back({Kind::kReplaceMatches, kBertSpaces, " "});
  }
  if (fields->Bool("handle_chinese_chars", true)) steps->push_back({Kind::kSurroundMatches, kBertChinese, " "});
  const bool lowercase = fields->Bool("lowercase", true);
  const Json* strips = fields->Find("strip_accents");
  if (strips == nullptr || strips->is_null() ? lowercase : fields->Bool("strip_accents")) {
    steps->push_back({Kind::kNfd});
    steps->push_back({Kind::kReplaceMatches, R"(\p{Mn})", "", UnicodeVersion::k8});
  }
  if (lowercase) steps->push_back({Kind::kLowercase});
}

using ReadType = void (*)(Fields*, Steps*);
constexpr Choice<ReadType> kTypes[] = {
    {"NFC", ReadPlain<Kind::kNfc>},
    {"NFD", ReadPlain<Kind::kNfd>},
    {"NFKC", ReadPlain<Kind::kNfkc>},
    {"NFKD", ReadPlain<Kind::kNfkd>},
    {"Lowercase", ReadPlain<Kind::kLowercase>},
    {"StripAccents", ReadPlain<Kind::kStripAccents>},
    {"Prepend", ReadPrepend},
    {"Replace", ReadReplace},
    {"Strip", ReadStrip},
    {"Nmt", ReadNmt},
    {"BertNormalizer", ReadBert},
    {"ByteLevel", ReadPlain<Kind::kBytes>},
    {"Precompiled", ReadPrecompiled},
};

}  // namespace

void ReadNormalizer(const Json& object, const std::string& where, TokenizerData* data) {
  if (object.is_null()) return;
  Steps steps;
  for (const auto& [part, place] : Parts(object, where, "normalizers")) {
    Fields fields(*part, place);
    fields.OneOf("type", kTypes)(&fields, &steps);
    fields.Finish();
  }
  if (!steps.empty()) data->normalizer = CompileNormalizer(steps, where);
}

}  // namespace tarn::convert
