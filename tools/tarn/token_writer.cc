#include "tools/tarn/token_writer.h"

#include <cstdio>

#include "tools/common/printable.h"
#include "tools/tarn/color.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"

namespace tarn_cli {

TokenWriter::TokenWriter(const Model& model, OutputFormat format, const std::vector<std::string>& stop_strings)
    : format_(format), use_color_(format == OutputFormat::kText && UseColor(stdout)) {
  if (model.info().tokenizer != TARN_TOKENIZER_NONE) {
    std::vector<tarn_stop_string> strings;
    for (const std::string& string : stop_strings) strings.push_back({string.data(), string.size()});
    tarn_text_stream_config config = TARN_TEXT_STREAM_CONFIG_INIT;
    config.stop_strings = strings.data();
    config.stop_string_count = strings.size();
    tarn_text_stream* created = nullptr;
    tarn_error error;
    const tarn_status status = tarn_text_stream_create(model.get(), &config, &created, &error);
    if (status == TARN_INVALID_ARGUMENT) throw UsageError(std::string("run: --stop: ") + error.message);
    Check(status, error);
    stream_.reset(created);
    text_.resize(tarn_text_stream_max_bytes(created));
  } else if (!stop_strings.empty()) {
    throw UsageError("run: --stop needs a model with a tokenizer, " + model.path() + " has none");
  }
  constexpr size_t kOthers = 100, kMostEscaped = 6;  // the other fields; \u00e4 for a byte
  line_.reserve(kOthers + kMostEscaped * text_.size());
}

void TokenWriter::WritePrompt(const Tokens& prompt, bool echo) {
  if (format_ == OutputFormat::kEvents) {
    char event[64];
    std::snprintf(event, sizeof(event), "{\"event\":\"prompt\",\"tokens\":%zu}\n", prompt.size());
    line_ = event;
    PutLine();
  }
  const bool shows = echo && format_ == OutputFormat::kText;
  if (shows && use_color_) closed_ = !WriteStdout(kPromptColor);
  for (size_t i = 0; i < prompt.size() && !closed_; ++i) {
    size_t size = 0;
    tarn_error error;
    if (stream_ != nullptr) {  // also where it is not shown: the text goes on from it
      Check(tarn_text_stream_prompt(stream_.get(), prompt[i], text_.data(), text_.size(), &size, &error), error);
      if (shows) Put(size);
    } else if (shows) {
      PutId(prompt[i]);
    }
  }
  if (shows && use_color_ && !closed_) closed_ = !WriteStdout(kNoColor);
}

void TokenWriter::Write(int32_t token) {
  size_t size = 0;
  tarn_error error;
  if (stream_ != nullptr) Check(tarn_text_stream_feed(stream_.get(), token, text_.data(), text_.size(), &size, &error), error);
  if (closed_ || format_ == OutputFormat::kNothing) return;
  if (format_ == OutputFormat::kEvents) {
    PutEvent("token", &token, size);
  } else if (stream_ != nullptr) {
    Put(size);
  } else {
    PutId(token);
  }
}

void TokenWriter::Finish() {
  size_t size = 0;
  tarn_error error;
  if (stream_ != nullptr) {
    Check(tarn_text_stream_finish(stream_.get(), text_.data(), text_.size(), &size, &error), error);
    tarn_text_stream_reset(stream_.get());
  }
  first_ = true;
  if (closed_ || format_ == OutputFormat::kNothing) return;
  if (format_ == OutputFormat::kEvents) {
    if (size > 0) PutEvent("text", nullptr, size);
    return;
  }
  Put(size);
  if (!closed_) closed_ = !WriteStdout("\n", 1);
}

void TokenWriter::Put(size_t size) {
  if (size > 0) closed_ = !WriteStdout(text_.data(), size);
}

void TokenWriter::PutId(int32_t token) {
  char id[16];
  const int size = std::snprintf(id, sizeof(id), first_ ? "%d" : " %d", token);
  closed_ = !WriteStdout(id, static_cast<size_t>(size));
  first_ = false;
}

void TokenWriter::PutEvent(const char* event, const int32_t* token, size_t text_size) {
  char begin[64];
  std::snprintf(begin, sizeof(begin), "{\"event\":\"%s\"", event);
  line_ = begin;
  if (token != nullptr) {
    std::snprintf(begin, sizeof(begin), ",\"token\":%d", *token);
    line_ += begin;
  }
  if (stream_ != nullptr) {
    line_ += ",\"text\":";
    tarn::tools::AppendJsonString({text_.data(), text_size}, &line_);
  }
  line_ += "}\n";
  PutLine();
}

void TokenWriter::PutLine() {
  if (!closed_) closed_ = !WriteStdout(line_.data(), line_.size());
}

}  // namespace tarn_cli
