#include "tools/convert/tokenizer/decoder.h"

#include <algorithm>

#include "runtime/text/code_point.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/component.h"
#include "tools/convert/tokenizer/vocabulary.h"

namespace tarn::convert {
namespace {

constexpr Choice<DecoderKind> kKinds[] = {
    {"ByteLevel", DecoderKind::kByteLevel}, {"ByteFallback", DecoderKind::kByteFallback},
    {"Fuse", DecoderKind::kFuse},           {"Strip", DecoderKind::kStrip},
    {"Replace", DecoderKind::kReplace},     {"Metaspace", DecoderKind::kMetaspace},
    {"WordPiece", DecoderKind::kWordPiece}, {"BPEDecoder", DecoderKind::kBpe},
};

// Ends as soon as it has more than `max_bytes`.
std::string ReplaceAll(const std::string& text, const std::string& from, const std::string& to, size_t max_bytes) {
  if (from.empty()) return text;
  std::string made;
  size_t begin = 0;
  for (size_t at = text.find(from); at != std::string::npos && made.size() <= max_bytes; at = text.find(from, begin)) {
    made.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  return made.append(text, begin);
}

// The package's cleanup() of WordPiece.
std::string CleanUp(std::string text) {
  constexpr const char* kReplacements[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                              {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                              {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kReplacements) text = ReplaceAll(text, from, to, text.size());  // none makes it longer
  return text;
}

std::string Strip(const DecoderStep& step, const std::string& text) {
  const size_t bytes = step.text.size();
  size_t begin = 0, end = text.size();
  for (uint64_t i = 0; i < step.start && text.compare(begin, bytes, step.text) == 0; ++i) begin += bytes;
  for (uint64_t i = 0; i < step.stop && end - begin >= bytes && text.compare(end - bytes, bytes, step.text) == 0; ++i) end -= bytes;
  return text.substr(begin, end - begin);
}

std::string Apply(const DecoderStep& step, const std::string& token, bool is_first, size_t max_bytes) {
  switch (step.kind) {
    case DecoderKind::kByteLevel:
      return BytesOf(token).value_or(token);
    case DecoderKind::kStrip:
      return Strip(step, token);
    case DecoderKind::kReplace:
      return ReplaceAll(token, step.text, step.content, max_bytes);
    case DecoderKind::kMetaspace:
      return ReplaceAll(token, step.text, is_first && step.flag ? "" : " ", max_bytes);
    case DecoderKind::kWordPiece: {
      const bool goes_on = token.rfind(step.text, 0) == 0;
      const std::string joined = is_first ? token : goes_on ? token.substr(step.text.size()) : " " + token;
      return step.flag ? CleanUp(joined) : joined;
    }
    case DecoderKind::kBpe:
      return ReplaceAll(token, step.text, " ", max_bytes);
    default:
      return token;
  }
}

// The byte of a token such as <0x0A>; -1: it is none. As Rust reads hexadecimal numbers, with a sign.
int ByteOf(const std::string& token) {
  if (token.size() != 6 || token.rfind("<0x", 0) != 0 || token[5] != '>') return -1;
  const std::string digits = token[3] == '+' ? token.substr(4, 1) : token.substr(3, 2);
  if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return -1;
  return std::stoi(digits, nullptr, 16);
}

std::string ReadCharacter(Fields* fields, const char* key, const std::string& fallback) {
  std::string text = fields->Text(key, fallback);
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  if (text.empty() || DecodeCodePoint(bytes, bytes + text.size()).bytes != text.size()) {
    fields->FailAt(key, "\"" + text + "\", one character expected");
  }
  return text;
}

std::string ReadReplaced(Fields* fields) {
  const Json* pattern = fields->Find("pattern");
  if (pattern == nullptr) fields->FailAt("pattern", "expected");
  Fields kind(*pattern, fields->where() + ".pattern");
  std::string text = kind.Text("String");
  kind.Finish();
  return text;
}

void ReadMetaspace(Fields* fields, DecoderStep* step) {
  constexpr Choice<bool> kSchemes[] = {{"always", true}, {"first", true}, {"never", false}};
  step->text = ReadCharacter(fields, "replacement", "\xE2\x96\x81");
  step->flag = fields->OneOf<bool>("prepend_scheme", kSchemes, true);
  if (!fields->Bool("add_prefix_space", true)) step->flag = false;
  fields->Bool("split", true);
  fields->Find("str_rep");
}

DecoderStep ReadStep(const Json& object, const std::string& where) {
  Fields fields(object, where);
  DecoderStep step;
  step.kind = fields.OneOf("type", kKinds);
  switch (step.kind) {
    case DecoderKind::kByteLevel:
      for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) fields.Bool(key, true);
      break;
    case DecoderKind::kStrip:
      step.text = ReadCharacter(&fields, "content", " ");
      step.start = fields.Integer("start", 0, Fields::kMaxSize, 0);
      step.stop = fields.Integer("stop", 0, Fields::kMaxSize, 0);
      break;
    case DecoderKind::kReplace:
      step.text = ReadReplaced(&fields);
      step.content = fields.Text("content");
      break;
    case DecoderKind::kMetaspace:
      ReadMetaspace(&fields, &step);
      break;
    case DecoderKind::kWordPiece:
      step.text = fields.Text("prefix", "##");
      step.flag = fields.Bool("cleanup", true);
      break;
    case DecoderKind::kBpe:
      step.text = fields.Text("suffix", "</w>");
      if (step.text.empty()) fields.FailAt("suffix", "\"\" is not supported");
      break;
    default:
      break;
  }
  fields.Finish();
  return step;
}

bool Joins(DecoderKind kind) { return kind == DecoderKind::kFuse || kind == DecoderKind::kByteLevel; }

// Behind ByteFallback, and behind what joins tokens, the text of several tokens is one.
void AddStep(const DecoderStep& step, const std::string& where, Decoder* decoder) {
  const DecoderKind last = decoder->steps.empty() ? DecoderKind::kStrip : decoder->steps.back().kind;
  const std::string name = kKinds[static_cast<size_t>(step.kind)].name;
  if (Joins(last)) {
    const bool drops_one = step.kind == DecoderKind::kStrip && step.text == " " && step.start == 1 && step.stop == 0;
    if (!drops_one && step.kind != DecoderKind::kFuse)
      Fail(where, ": ", name, " is not supported here: of all tokens together, Strip of one space at the beginning is");
    decoder->text_drops_space |= drops_one;
    return;
  }
  const bool needs_joining = last == DecoderKind::kByteFallback || last == DecoderKind::kBpe;
  if (needs_joining && step.kind != DecoderKind::kFuse) Fail(where, ": ", name, " is not supported here, Fuse is");
  decoder->steps.push_back(step);
}

}  // namespace

Decoder ReadDecoder(const Json& object, const std::string& where) {
  Decoder decoder;
  if (object.is_null()) return decoder;
  decoder.has_steps = true;
  for (const auto& [part, place] : Parts(object, where, "decoders")) AddStep(ReadStep(*part, place), place, &decoder);
  decoder.is_byte_level = !decoder.steps.empty() && decoder.steps.back().kind == DecoderKind::kByteLevel;
  return decoder;
}

bool LastTokenDropsSpace(const Decoder& decoder) {
  for (const DecoderStep& step : decoder.steps) {
    if (step.kind == DecoderKind::kBpe) return true;
  }
  return false;
}

Piece Decode(const Decoder& decoder, const std::string& token, const std::string& where, size_t max_bytes) {
  if (!decoder.has_steps) return {token, " " + token};
  Piece piece = {token, token};
  for (const DecoderStep& step : decoder.steps) {
    if (std::max(piece.first.size(), piece.later.size()) > max_bytes) return piece;
    const bool ends_word = step.kind == DecoderKind::kBpe;
    const size_t suffix = ends_word ? piece.later.find(step.text) : std::string::npos;
    const bool has_other_space = !piece.later.empty() && piece.later.back() == ' ';
    if (ends_word && (has_other_space || (suffix != std::string::npos && suffix + step.text.size() != piece.later.size()))) {
      Fail(where, ": token \"", token, "\": a space, or \"", step.text, "\" of BPEDecoder, is not supported there");
    }
    if (step.kind == DecoderKind::kByteFallback) {
      const int byte = ByteOf(piece.later);
      if (byte < 0) continue;
      piece.first = piece.later = std::string(1, static_cast<char>(byte));
      piece.is_byte = true;
      return piece;
    }
    piece.first = Apply(step, piece.first, true, max_bytes);
    piece.later = Apply(step, piece.later, false, max_bytes);
  }
  return piece;
}

}  // namespace tarn::convert
