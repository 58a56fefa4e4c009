#include "tools/convert/tokenizer/normalize.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "runtime/text/charsmap.h"
#include "runtime/text/code_point.h"
#include "runtime/text/normalize.h"
#include "runtime/text/normalize_format.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/byte_alphabet.h"
#include "tools/convert/tokenizer/graphemes.h"
#include "tools/convert/tokenizer/match_bounds.h"
#include "tools/convert/tokenizer/normal_forms.h"
#include "tools/convert/tokenizer/pattern.h"
#include "tools/convert/tokenizer/unicode.h"
#include "tools/convert/tokenizer/utf8_codes.h"

namespace tarn::convert {
namespace {

using Kind = NormalizerStep::Kind;
using Leaf = std::array<uint8_t, kNormalLeaf>;

constexpr uint32_t kHangulEnd = kHangulFirst + kHangulCount;

void PutCode(std::vector<uint16_t>* words, uint32_t code) {
  words->push_back(static_cast<uint16_t>(code & 0xFFFF));
  words->push_back(static_cast<uint16_t>(code >> 16));
}

class NormalizerCompiler {
 public:
  NormalizerCompiler(const std::vector<NormalizerStep>& steps, const std::string& where) : steps_(steps), where_(where) {}

  std::vector<uint16_t> Compile() {
    if (steps_.size() > kMaxNormalSteps) Fail(where_, ": ", steps_.size(), " normalizers are too many, at most ", kMaxNormalSteps);
    flags_.assign(kMaxCodePoint + 1, kNormalPlain);
    for (const NormalizerStep& step : steps_) AddStep(step);
    AddForms();
    return Words();
  }

 private:
  void Change(uint32_t code, uint16_t flags) { flags_[code] = static_cast<uint16_t>((flags_[code] & ~kNormalPlain) | flags); }

  void ChangeAll(const CodeSet& set, uint16_t flags) {
    for (const CodeSet::Range& range : set.ranges()) {
      for (uint32_t code = range.first; code <= range.second; ++code) Change(code, flags);
    }
  }

  void AddPattern(const std::vector<uint16_t>& words) {
    const MatchBounds bounds(words);
    if (bounds.MatchesEmptyText()) Fail(where_, ": a pattern that matches the empty text is not supported");
    const std::optional<size_t> waiting = bounds.MostWaiting();
    if (!waiting || *waiting > kMaxReplacedCodes) {
      Fail(where_, ": a pattern that has to look more than ", kMaxReplacedCodes, " characters ahead is not supported");
    }
    for (uint32_t code = 0; code <= kMaxCodePoint; ++code) {
      if (!bounds.IsInert(code)) Change(code, 0);
    }
    PutCode(&step_words_, static_cast<uint32_t>(words.size()));
    pattern_words_.insert(pattern_words_.end(), words.begin(), words.end());
  }

  void AddBytes() {
    step_words_.push_back(static_cast<uint16_t>(texts_.size()));
    texts_.insert(texts_.end(), ByteAlphabet().begin(), ByteAlphabet().end());
    for (uint32_t code = 0; code <= kMaxCodePoint; ++code) {
      if (code >= 0x80 || ByteAlphabet()[code] != code) Change(code, 0);
    }
  }

  void AddCharsMap(const std::vector<uint16_t>& words) {
    const CharsMap map = CharsMap::Open({words.data(), words.size()}).value();
    const std::vector<bool> joins = JoinsNeighbours();
    for (uint32_t code = 0; code <= kMaxCodePoint; ++code) {
      char bytes[4];
      Span<const char> text;
      if (joins[code] || map.FindShortest({bytes, EncodeCodePoint(code, bytes)}, &text)) Change(code, 0);
    }
    for (const std::vector<uint16_t>& part : {CompilePattern(GraphemePattern(), where_, {UnicodeVersion::k17}), words}) {
      PutCode(&step_words_, static_cast<uint32_t>(part.size()));
      pattern_words_.insert(pattern_words_.end(), part.begin(), part.end());
    }
  }

  void AddStep(const NormalizerStep& step) {
    const auto kind = [&](NormalStepKind of) { step_words_.push_back(static_cast<uint16_t>(of)); };
    switch (step.kind) {
      case Kind::kNfc:
      case Kind::kNfd:
      case Kind::kNfkc:
      case Kind::kNfkd: {
        const bool is_compatibility = step.kind == Kind::kNfkc || step.kind == Kind::kNfkd;
        const bool composes = step.kind == Kind::kNfc || step.kind == Kind::kNfkc;
        kind(NormalStepKind::kForm);
        step_words_.push_back(is_compatibility);
        step_words_.push_back(composes);
        has_form_ = true;
        has_compatibility_ = has_compatibility_ || is_compatibility;
        (composes ? composes_ : decomposes_) = true;
        break;
      }
      case Kind::kLowercase:
        kind(NormalStepKind::kLowercase);
        lowercase_ = LowercaseMappings();
        for (const auto& item : lowercase_) Change(item.first, kNormalLower);
        break;
      case Kind::kStripAccents:
        kind(NormalStepKind::kStripAccents);
        ChangeAll(*PropertySet("M", UnicodeVersion::k9), kNormalMark);
        break;
      case Kind::kPrepend:
        kind(NormalStepKind::kPrepend);
        AddText(step.text, kMaxReplacedCodes);
        break;
      case Kind::kReplace:
        kind(NormalStepKind::kReplace);
        for (const uint32_t code : AddText(step.text, kMaxReplacedCodes)) Change(code, 0);
        AddText(step.content, kMaxReplacedCodes);
        if (step.text.empty()) Fail(where_, ": a Replace looks for an empty text");
        break;
      case Kind::kReplaceMatches:
      case Kind::kSurroundMatches:
        kind(step.kind == Kind::kReplaceMatches ? NormalStepKind::kReplaceMatches : NormalStepKind::kSurroundMatches);
        AddText(step.content, kMaxReplacedCodes);
        AddPattern(CompilePattern(step.text, where_, {step.version}));
        break;
      case Kind::kStrip:
        kind(NormalStepKind::kStrip);
        step_words_.push_back(step.left);
        step_words_.push_back(step.right);
        ChangeAll(*PropertySet("space", UnicodeVersion::k16), kNormalSpace);
        break;
      case Kind::kBytes:
        kind(NormalStepKind::kBytes);
        AddBytes();
        break;
      case Kind::kCharsMap:
        kind(NormalStepKind::kCharsMap);
        AddCharsMap(step.charsmap);
        break;
    }
    step_words_.resize((step_words_.size() + kNormalStepWords - 1) / kNormalStepWords * kNormalStepWords);
  }

  std::vector<uint32_t> AddText(const std::string& text, size_t max_codes) {
    const std::vector<uint32_t> codes = CodesOfUtf8(text, where_);
    if (codes.size() > max_codes) Fail(where_, ": a text of ", codes.size(), " characters, at most ", max_codes, " are supported");
    step_words_.push_back(static_cast<uint16_t>(texts_.size()));
    step_words_.push_back(static_cast<uint16_t>(codes.size()));
    texts_.insert(texts_.end(), codes.begin(), codes.end());
    return codes;
  }

  void AddForms() {
    if (!has_form_) return;
    combining_ = CombiningClasses();
    canonical_ = CanonicalDecompositions();
    if (has_compatibility_) compatibility_ = CompatibilityDecompositions();
    if (composes_) compositions_ = Compositions();
    for (const auto& [code, parts] : compatibility_) Change(code, kNormalCompatibility);
    for (const auto& [code, parts] : canonical_) {
      // What composes again is plain where nothing but composing forms work.
      const bool stays = !decomposes_ && std::any_of(compositions_.begin(), compositions_.end(),
                                                     [&, c = code](const auto& composition) { return composition[2] == c; });
      if (stays) {
        flags_[code] |= kNormalCanonical;
      } else {
        Change(code, kNormalCanonical);
      }
    }
    for (const auto& composition : compositions_) Change(composition[1], 0);
    for (uint32_t code = kHangulFirst; code < kHangulEnd; ++code) {
      flags_[code] |= kNormalHangul;
      if (decomposes_) Change(code, kNormalHangul);
    }
    if (composes_) {
      for (uint32_t code = 0x1161; code <= 0x1175; ++code) Change(code, 0);
      for (uint32_t code = 0x11A8; code <= 0x11C2; ++code) Change(code, 0);
    }
    for (uint32_t code = 0; code <= kMaxCodePoint; ++code) flags_[code] = static_cast<uint16_t>(flags_[code] | combining_[code]);
  }

  void PutMappings(const CodeMapping& mapping) {
    for (const auto& [code, parts] : mapping) {
      PutCode(&words_, code);
      PutCode(&words_, static_cast<uint32_t>(texts_.size()));
      words_.push_back(static_cast<uint16_t>(parts.size()));
      texts_.insert(texts_.end(), parts.begin(), parts.end());
    }
  }

  // Roots, leaves and classes of the flags.
  void PutClasses(std::vector<uint16_t>* roots, std::vector<Leaf>* leaves, std::vector<uint16_t>* classes) {
    std::map<uint16_t, uint8_t> class_numbers;
    std::map<Leaf, uint16_t> leaf_numbers;
    for (uint32_t first = 0; first <= kMaxCodePoint; first += kNormalLeaf) {
      Leaf leaf;
      for (uint32_t i = 0; i < kNormalLeaf; ++i) {
        const auto [found, is_new] = class_numbers.emplace(flags_[first + i], static_cast<uint8_t>(classes->size()));
        if (is_new) classes->push_back(flags_[first + i]);
        leaf[i] = found->second;
      }
      const auto [found, is_new] = leaf_numbers.emplace(leaf, static_cast<uint16_t>(leaves->size()));
      if (is_new) leaves->push_back(leaf);
      roots->push_back(found->second);
    }
    if (classes->size() > 256) Fail(where_, ": these normalizers tell apart more than 256 classes of characters");
  }

  std::vector<uint16_t> Words() {
    std::vector<uint16_t> roots, classes;
    std::vector<Leaf> leaves;
    PutClasses(&roots, &leaves, &classes);
    const auto count = [](size_t n) { return static_cast<uint16_t>(n); };
    words_ = {kNormalVersion,           count(steps_.size()),         count(leaves.size()),     count(classes.size()),
              count(canonical_.size()), count(compatibility_.size()), count(lowercase_.size()), count(compositions_.size())};
    words_.resize(kNormalHeaderWords);
    words_.insert(words_.end(), step_words_.begin(), step_words_.end());
    words_.insert(words_.end(), roots.begin(), roots.end());
    for (const Leaf& leaf : leaves) {
      for (size_t i = 0; i < leaf.size(); i += 2) words_.push_back(static_cast<uint16_t>(leaf[i] | leaf[i + 1] << 8));
    }
    words_.insert(words_.end(), classes.begin(), classes.end());
    PutMappings(canonical_);
    PutMappings(compatibility_);
    PutMappings(lowercase_);
    for (const auto& composition : compositions_) {
      for (const uint32_t code : composition) PutCode(&words_, code);
    }
    for (const uint32_t code : texts_) PutCode(&words_, code);
    words_.insert(words_.end(), pattern_words_.begin(), pattern_words_.end());
    words_[8] = static_cast<uint16_t>(texts_.size() & 0xFFFF);
    words_[9] = static_cast<uint16_t>(texts_.size() >> 16);
    return std::move(words_);
  }

  const std::vector<NormalizerStep>& steps_;
  const std::string where_;
  bool has_form_ = false, has_compatibility_ = false, composes_ = false, decomposes_ = false;
  std::vector<uint16_t> flags_;  // of each code point: its class
  std::vector<uint8_t> combining_;
  CodeMapping canonical_, compatibility_, lowercase_;
  std::vector<std::array<uint32_t, 3>> compositions_;
  std::vector<uint16_t> step_words_, pattern_words_, words_;
  std::vector<uint32_t> texts_;
};

}  // namespace

std::vector<uint16_t> CompileNormalizer(const std::vector<NormalizerStep>& steps, const std::string& where) {
  std::vector<uint16_t> words = NormalizerCompiler(steps, where).Compile();
  const Result<Normalizer> opened = Normalizer::Open({words.data(), words.size()});  // as every reader will
  if (!opened.ok()) Fail(where, ": ", opened.status().message());
  return words;
}

std::string Normalized(const std::vector<uint16_t>& words, const std::string& text) {
  if (words.empty()) return text;
  const Normalizer opened = Normalizer::Open({words.data(), words.size()}).value();
  std::vector<uint32_t> working(opened.working_words());
  NormalizedText reader(opened, {text.data(), text.size()}, {working.data(), working.size()});
  char bytes[64];
  TextRange origins[64];
  std::string made;
  while (const size_t size = reader.Read(bytes, origins)) made.append(bytes, size);
  return made;
}

}  // namespace tarn::convert
