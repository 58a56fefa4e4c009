#include "tools/tarn/sources.h"

#include <algorithm>
#include <utility>

#include "tools/common/integer.h"
#include "tools/tarn/error.h"
#include "tools/tarn/report.h"

namespace tarn_cli {

namespace {

constexpr uint64_t kMostSourceTokens = 65536;  // that a session takes

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

// Ids between commas, which may have spaces around them, or between runs of spaces. A blank text has none.
void VisitIds(std::string_view text, char separator, const std::string& what, const std::function<bool(int32_t)>& take) {
  text = Trim(text);
  const std::string_view separators = separator == ' ' ? kSpaces : ",";
  size_t count = 0;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    const std::string_view id = Trim(text.substr(begin, end - begin));
    if (separator == ' ' && id.empty()) {
      begin = end + 1;
      continue;
    }
    const std::optional<int32_t> value = tarn::tools::ParseInteger<int32_t>(id, 0, INT32_MAX);
    if (!value) throw Failure(what + Format(": id %zu ", count + 1) + tarn::tools::NotInteger(id, 0, INT32_MAX));
    if (!take(*value)) return;
    ++count;
    begin = end + 1;
  }
}

Tokens ParseIds(std::string_view text, char separator, const std::string& what) {
  Tokens ids;
  VisitIds(text, separator, what, [&](int32_t id) {
    ids.push_back(id);
    return true;
  });
  return ids;
}

// One line after the other, as they come, without the newlines.
void VisitStdinLines(const std::function<bool(std::string_view)>& visit) {
  std::string line;  // what has come of the next one
  char buffer[1 << 16];
  while (const size_t size = ReadStdin(buffer, sizeof(buffer))) {
    std::string_view part(buffer, size);
    for (size_t end; (end = part.find('\n')) != std::string_view::npos; part.remove_prefix(end + 1)) {
      line.append(part.substr(0, end));
      if (!visit(line)) return;
      line.clear();
    }
    line.append(part);
  }
  if (!line.empty()) visit(line);
}

// Where ids come without an option that says it.
char SeparatorOf(std::string_view ids) { return ids.find(',') == std::string_view::npos ? ' ' : ','; }

}  // namespace

Tokens IdsOption(const std::string& text, const std::string& command, const std::string& option) {
  try {
    Tokens ids = ParseIds(text, ',', command + ": " + option);
    if (ids.empty()) throw Failure(command + ": " + option + ": there is no id, expected at least one");
    return ids;
  } catch (const Failure& failure) {
    throw UsageError(failure.what());
  }
}

void RequireIds(const Tokens& tokens, const Model& model, uint32_t vocab_size, const std::string& command,
                const std::string& option) {
  for (const int32_t token : tokens) {
    if (token >= 0 && static_cast<uint32_t>(token) < vocab_size) continue;
    throw UsageError(command + ": " + option +
                     Format(": %d is no token of %s, expected 0 to %u", token, model.path().c_str(), vocab_size - 1));
  }
}

Tokens TextTokens(const Model& model, const std::string& text, const std::string& what, bool plain) {
  if (text.empty()) throw Failure(what + " is empty, expected at least one token");
  if (model.info().tokenizer != TARN_TOKENIZER_NONE) return model.Tokenize(text, plain);
  Tokens ids = ParseIds(text, what);
  if (ids.empty()) throw Failure(what + " is empty, expected at least one token");
  return ids;
}

Tokens ParseIds(std::string_view text, const std::string& what) { return ParseIds(text, SeparatorOf(text), what); }

void VisitIds(std::string_view text, const std::string& what, const std::function<bool(int32_t)>& take) {
  VisitIds(text, SeparatorOf(text), what, take);
}

Tokens SourceTokens(const Model& model, const std::string& text, const std::string& what, bool plain) {
  const tarn_model_info& info = model.info();
  Tokens source = TextTokens(model, text, what, plain);
  const uint64_t most = std::min<uint64_t>(info.max_source_tokens, kMostSourceTokens);
  if (source.size() > most) {
    throw Failure(what + Format(": %zu tokens, expected at most %llu, what %s holds of a source", source.size(),
                                static_cast<unsigned long long>(most), model.path().c_str()));
  }
  for (size_t i = 0; i < source.size(); ++i) {
    if (static_cast<uint32_t>(source[i]) < info.source_vocab_size) continue;
    throw Failure(what + Format(": token %zu is %d, 0 to %u expected", i + 1, source[i], info.source_vocab_size - 1));
  }
  return source;
}

void VisitLines(const std::string& path, const std::function<bool(Line)>& take) {
  size_t count = 0;
  const auto visit = [&](std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return take({FileName(path) + Format(": line %zu", ++count), std::string(line)});
  };
  if (path == "-") {
    VisitStdinLines(visit);
  } else {
    const InputText content = InputText::OfFile(path);
    const std::string_view text = content.text();
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      if (!visit(text.substr(begin, end - begin))) return;
      begin = end + 1;
    }
  }
  if (count == 0) throw Failure(FileName(path) + " is empty, expected at least one line");
}

std::vector<Line> ReadLines(const std::string& path) {
  std::vector<Line> lines;
  VisitLines(path, [&](Line line) {
    lines.push_back(std::move(line));
    return true;
  });
  return lines;
}

bool CutAtTab(Line* line, std::string* before) {
  const size_t tab = line->text.find('\t');
  if (tab == std::string::npos) return false;
  *before = line->text.substr(0, tab);
  line->text.erase(0, tab + 1);
  return true;
}

uint32_t LongestOf(const std::vector<Tokens>& sources) {
  size_t longest = 0;
  for (const Tokens& source : sources) longest = std::max(longest, source.size());
  return static_cast<uint32_t>(std::min<size_t>(longest, UINT32_MAX));
}

SourceBatch::SourceBatch(const std::vector<Tokens>& sources, size_t begin, uint32_t batch) {
  count_ = static_cast<uint32_t>(std::min<size_t>(batch, sources.size() - begin));
  for (uint32_t i = 0; i < count_; ++i) stride_ = std::max(stride_, sources[begin + i].size());
  tokens_.resize(batch * stride_);
  for (uint32_t row = 0; row < batch; ++row) {
    const Tokens& source = sources[begin + std::min(row, count_ - 1)];
    std::copy(source.begin(), source.end(), tokens_.begin() + static_cast<std::ptrdiff_t>(row * stride_));
    lengths_.push_back(source.size());
  }
}

}  // namespace tarn_cli
