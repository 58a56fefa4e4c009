// Streams token ids to standard output: as text where the model has a tokenizer, else as ids separated by spaces; or as events.
#ifndef TARN_TOOLS_TARN_TOKEN_WRITER_H_
#define TARN_TOOLS_TARN_TOKEN_WRITER_H_

#include <tarn/text_stream.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/tarn/model.h"
#include "tools/tarn/sources.h"

namespace tarn_cli {

// What standard output gets: the text, a line of JSON for each event (--jsonl), or nothing of it.
enum class OutputFormat { kText, kEvents, kNothing };

class TokenWriter {
 public:
  // `stop_strings` end the text, also where nothing of it is written. Throws UsageError if they cannot.
  explicit TokenWriter(const Model& model, OutputFormat format = OutputFormat::kText,
                       const std::vector<std::string>& stop_strings = {});

  // These three allocate nothing, and throw Failure if they cannot write.
  //
  // What comes before the tokens of the model; it is shown if `echo`, on a terminal in another colour.
  void WritePrompt(const Tokens& prompt, bool echo);
  // What `token` completes, at once; of a special token nothing.
  void Write(int32_t token);
  // What was held back, and the end of the line; another text may follow.
  void Finish();

  // Nobody reads: as WriteStdout() says it.
  bool closed() const { return closed_; }
  // A stop string ended the text.
  bool stopped() const { return tarn_text_stream_stop(stream_.get()) >= 0; }
  OutputFormat format() const { return format_; }

 private:
  // Writes that many bytes of text_.
  void Put(size_t size);
  void PutId(int32_t token);
  // {"event": NAME, with `token` where it is one, and the text.
  void PutEvent(const char* event, const int32_t* token, size_t text_size);
  void PutLine();

  OutputFormat format_;
  bool use_color_;
  bool first_ = true;
  bool closed_ = false;
  std::unique_ptr<tarn_text_stream, void (*)(tarn_text_stream*)> stream_{nullptr, tarn_text_stream_destroy};  // none: no tokenizer
  std::vector<char> text_;
  std::string line_;  // of an event
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_TOKEN_WRITER_H_
