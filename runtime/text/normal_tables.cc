#include "runtime/text/normal_tables.h"

#include <algorithm>
#include <initializer_list>

namespace tarn {
namespace {

// Takes parts of the words, one behind the other.
class Cutter {
 public:
  explicit Cutter(Span<const uint16_t> words) : words_(words) {}
  size_t rest() const { return words_.size() - at_; }
  const uint16_t* Take(uint64_t count) {
    const uint16_t* const part = words_.data() + at_;
    at_ = count <= words_.size() - at_ ? at_ + static_cast<size_t>(count) : words_.size() + Fail();
    return part;
  }
  bool failed() const { return failed_; }
  bool is_exact() const { return !failed_ && at_ == words_.size(); }

 private:
  size_t Fail() {
    failed_ = true;
    return 0;
  }
  Span<const uint16_t> words_;
  size_t at_ = 0;
  bool failed_ = false;
};

bool HasPattern(NormalStepKind kind) { return kind == NormalStepKind::kReplaceMatches || kind == NormalStepKind::kSurroundMatches; }

Status OpenPattern(size_t step, size_t size, Cutter* cutter, Pattern* opened) {
  if (size > cutter->rest()) {
    return Error(TARN_BAD_FORMAT, "normalizer: step %zu has a pattern of %zu words, %zu are left", step, size, cutter->rest());
  }
  Result<Pattern> pattern = Pattern::Open({cutter->Take(size), size});
  if (!pattern.ok()) return pattern.status().In("normalizer: step %zu", step);
  *opened = pattern.value();
  return Ok();
}

Status OpenCharsMap(size_t step, Cutter* cutter, NormalTables* tables) {
  if (tables->has_charsmap) return Error(TARN_BAD_FORMAT, "normalizer: step %zu is a second charsmap, one at most expected", step);
  tables->has_charsmap = true;
  TARN_RETURN_IF_ERROR(OpenPattern(step, tables->Words(step, 0), cutter, &tables->clusters));
  const size_t size = tables->Words(step, 2);
  if (size > cutter->rest()) {
    return Error(TARN_BAD_FORMAT, "normalizer: step %zu has a charsmap of %zu words, %zu are left", step, size, cutter->rest());
  }
  Result<CharsMap> charsmap = CharsMap::Open({cutter->Take(size), size});
  if (!charsmap.ok()) return charsmap.status().In("normalizer: step %zu", step);
  tables->charsmap = charsmap.value();
  return Ok();
}

Status OpenPatterns(NormalTables* tables, Cutter* cutter) {
  for (size_t i = 0; i < tables->step_count; ++i) {
    if (HasPattern(tables->kind(i))) {
      TARN_RETURN_IF_ERROR(OpenPattern(i, tables->Words(i, 2), cutter, &tables->patterns[i]));
    } else if (tables->kind(i) == NormalStepKind::kCharsMap) {
      TARN_RETURN_IF_ERROR(OpenCharsMap(i, cutter, tables));
    }
  }
  return Ok();
}

Status CheckText(const NormalTables& tables, const char* what, size_t index, size_t first, size_t count, size_t max_count) {
  if (first <= tables.text_count && count <= tables.text_count - first && count <= max_count) return Ok();
  return Error(TARN_BAD_FORMAT, "normalizer: %s %zu has texts %zu + %zu of %zu, at most %zu of them", what, index, first, count,
               tables.text_count, max_count);
}

Status CheckMappings(const NormalTables& tables, const NormalTables::Mappings& mappings, const char* what) {
  for (size_t i = 0; i < mappings.count; ++i) {
    const uint16_t* const row = mappings.words + i * kNormalMappingWords;
    const size_t first = row[2] | static_cast<size_t>(row[3]) << 16;
    TARN_RETURN_IF_ERROR(CheckText(tables, what, i, first, row[4], kMaxDecomposedCodes));
    if (row[4] == 0) return Error(TARN_BAD_FORMAT, "normalizer: %s %zu is empty", what, i);
  }
  return Ok();
}

// The most code points that a mapping makes of one; a Hangul syllable has up to three parts.
uint64_t LongestMapping(std::initializer_list<const NormalTables::Mappings*> kinds) {
  uint64_t longest = 3;
  for (const NormalTables::Mappings* mappings : kinds) {
    for (size_t i = 0; i < mappings->count; ++i) {
      longest = std::max<uint64_t>(longest, mappings->words[i * kNormalMappingWords + 4]);
    }
  }
  return longest;
}

// Each step makes more of what the one before it gives, so the product bounds what a text can become.
Status CheckGrowth(const NormalTables& tables) {
  uint64_t growth = 1;
  for (size_t i = 0; i < tables.step_count; ++i) {
    switch (tables.kind(i)) {
      case NormalStepKind::kForm:
        growth *= LongestMapping({&tables.canonical, &tables.compatibility});
        break;
      case NormalStepKind::kLowercase:
        growth *= LongestMapping({&tables.lowercase});
        break;
      case NormalStepKind::kStripAccents:
      case NormalStepKind::kStrip:
        break;
      case NormalStepKind::kReplaceMatches:
        growth *= std::max<uint64_t>(tables.argument(i, 1), 1);
        break;
      case NormalStepKind::kSurroundMatches:
        growth *= uint64_t{1} + 2 * uint64_t{tables.argument(i, 1)};
        break;
      case NormalStepKind::kPrepend:
        growth *= uint64_t{1} + tables.argument(i, 1);
        break;
      case NormalStepKind::kReplace:
        growth *= std::max<uint64_t>(tables.argument(i, 3), 1);
        break;
      case NormalStepKind::kBytes:
        growth *= 4;
        break;
      case NormalStepKind::kCharsMap:
        growth *= std::max<uint64_t>(tables.charsmap.MostCodes(), 1);
        break;
    }
    if (growth > kMaxNormalGrowth) {
      return Error(TARN_BAD_FORMAT, "normalizer: up to step %zu it may make a text %llu times as long, at most %llu expected", i,
                   static_cast<unsigned long long>(growth), static_cast<unsigned long long>(kMaxNormalGrowth));
    }
  }
  return Ok();
}

Status CheckSteps(const NormalTables& tables) {
  for (size_t i = 0; i < tables.step_count; ++i) {
    switch (tables.kind(i)) {
      case NormalStepKind::kForm:
      case NormalStepKind::kLowercase:
      case NormalStepKind::kStripAccents:
      case NormalStepKind::kStrip:
      case NormalStepKind::kCharsMap:
        break;
      case NormalStepKind::kBytes:
        TARN_RETURN_IF_ERROR(CheckText(tables, "step", i, tables.argument(i, 0), 256, 256));
        break;
      case NormalStepKind::kReplaceMatches:
      case NormalStepKind::kSurroundMatches:
      case NormalStepKind::kPrepend:
        TARN_RETURN_IF_ERROR(CheckText(tables, "step", i, tables.argument(i, 0), tables.argument(i, 1), kMaxNormalTexts));
        break;
      case NormalStepKind::kReplace:
        TARN_RETURN_IF_ERROR(CheckText(tables, "step", i, tables.argument(i, 0), tables.argument(i, 1), kMaxReplacedCodes));
        TARN_RETURN_IF_ERROR(CheckText(tables, "step", i, tables.argument(i, 2), tables.argument(i, 3), kMaxNormalTexts));
        if (tables.argument(i, 1) == 0) return Error(TARN_BAD_FORMAT, "normalizer: step %zu looks for an empty text", i);
        break;
      default:
        return Error(TARN_BAD_FORMAT, "normalizer: step %zu has kind %u", i, tables.steps[i * kNormalStepWords]);
    }
  }
  return Ok();
}

Status CheckCodes(const NormalTables& tables, size_t leaves) {
  for (size_t i = 0; i < kNormalRoots; ++i) {
    if (tables.roots[i] >= leaves)
      return Error(TARN_BAD_FORMAT, "normalizer: root %zu is leaf %u of %zu", i, tables.roots[i], leaves);
  }
  for (size_t i = 0; i < leaves * kNormalLeaf; ++i) {
    if (tables.leaves[i] >= tables.class_count) {
      return Error(TARN_BAD_FORMAT, "normalizer: class %zu of the leaves is %u of %zu", i, tables.leaves[i], tables.class_count);
    }
  }
  const CodeView texts = tables.Text(0, tables.text_count);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] > 0x10FFFF) return Error(TARN_BAD_FORMAT, "normalizer: text %zu is U+%x, no code point", i, texts[i]);
  }
  const CodeView composed(tables.compositions, tables.composition_count * 3);
  for (size_t i = 0; i < composed.size(); ++i) {
    if (composed[i] > 0x10FFFF)
      return Error(TARN_BAD_FORMAT, "normalizer: composition %zu has U+%x, no code point", i / 3, composed[i]);
  }
  return Ok();
}

}  // namespace

Result<NormalTables> NormalTables::Open(Span<const uint16_t> words) {
  if (words.size() < kNormalHeaderWords) {
    return Error(TARN_BAD_FORMAT, "normalizer: it has %zu words, a header has %zu", words.size(), kNormalHeaderWords);
  }
  if (words[0] != kNormalVersion) {
    return Error(TARN_UNSUPPORTED, "normalizer: its layout has version %u, this library reads version %u", words[0],
                 kNormalVersion);
  }
  NormalTables tables;
  tables.step_count = words[1];
  const size_t leaves = words[2];
  tables.class_count = words[3];
  tables.canonical.count = words[4];
  tables.compatibility.count = words[5];
  tables.lowercase.count = words[6];
  tables.composition_count = words[7];
  tables.text_count = words[8] | static_cast<size_t>(words[9]) << 16;
  if (tables.step_count > kMaxNormalSteps || leaves == 0 || leaves > kNormalRoots || tables.class_count > 256 ||
      tables.text_count > kMaxNormalTexts) {
    return Error(TARN_BAD_FORMAT, "normalizer: %zu steps, %zu leaves, %zu classes and %zu texts are beyond what it may have",
                 tables.step_count, leaves, tables.class_count, tables.text_count);
  }
  Cutter cutter(words);
  cutter.Take(kNormalHeaderWords);
  tables.steps = cutter.Take(tables.step_count * kNormalStepWords);
  tables.roots = cutter.Take(kNormalRoots);
  tables.leaves = reinterpret_cast<const uint8_t*>(cutter.Take(leaves * kNormalLeaf / 2));
  tables.classes = cutter.Take(tables.class_count);
  for (Mappings* mappings : {&tables.canonical, &tables.compatibility, &tables.lowercase}) {
    mappings->words = cutter.Take(mappings->count * kNormalMappingWords);
  }
  tables.compositions = cutter.Take(tables.composition_count * kNormalCompositionWords);
  tables.texts = cutter.Take(tables.text_count * 2);
  if (!cutter.failed()) TARN_RETURN_IF_ERROR(OpenPatterns(&tables, &cutter));
  if (!cutter.is_exact())
    return Error(TARN_BAD_FORMAT, "normalizer: it has %zu words, which its header does not say", words.size());
  TARN_RETURN_IF_ERROR(CheckSteps(tables));
  TARN_RETURN_IF_ERROR(CheckCodes(tables, leaves));
  TARN_RETURN_IF_ERROR(CheckMappings(tables, tables.canonical, "canonical mapping"));
  TARN_RETURN_IF_ERROR(CheckMappings(tables, tables.compatibility, "compatibility mapping"));
  TARN_RETURN_IF_ERROR(CheckMappings(tables, tables.lowercase, "lowercase mapping"));
  TARN_RETURN_IF_ERROR(CheckGrowth(tables));
  return tables;
}

CodeView NormalTables::Map(const Mappings& mappings, uint32_t code) const {
  size_t low = 0, high = mappings.count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const uint16_t* const row = mappings.words + middle * kNormalMappingWords;
    const uint32_t key = row[0] | static_cast<uint32_t>(row[1]) << 16;
    if (key == code) return Text(row[2] | static_cast<size_t>(row[3]) << 16, row[4]);
    (key < code ? low : high) = key < code ? middle + 1 : middle;
  }
  return {};
}

uint32_t NormalTables::Compose(uint32_t first, uint32_t second) const {
  const uint32_t l = first - kLFirst, v = second - kVFirst, syllable = first - kHangulFirst, t = second - kTFirst;
  if (l < kLCount && v < kVCount) return kHangulFirst + (l * kVCount + v) * kTCount;
  if (syllable < kHangulCount && syllable % kTCount == 0 && t > 0 && t < kTCount) return first + t;
  const CodeView table(compositions, composition_count * 3);
  size_t low = 0, high = composition_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const uint32_t a = table[middle * 3], b = table[middle * 3 + 1];
    if (a == first && b == second) return table[middle * 3 + 2];
    if (a < first || (a == first && b < second)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return 0;
}

}  // namespace tarn
