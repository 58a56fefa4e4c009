// Streams token ids to standard output: as text where the model has a tokenizer, else as ids separated by spaces.
#ifndef TARN_TOOLS_TARN_TOKEN_WRITER_H_
#define TARN_TOOLS_TARN_TOKEN_WRITER_H_

#include <tarn/tokenizer.h>

#include <cstdint>
#include <vector>

#include "tools/tarn/model.h"

namespace tarn_cli {

class TokenWriter {
 public:
  // Where it is not wanted nothing is written.
  explicit TokenWriter(const Model& model, bool wanted = true);

  // What `token` completes, at once; of a special token nothing. Allocates nothing. Throws Failure if that cannot be written.
  void Write(int32_t token);
  // A character that will not be completed any more, and the end of the line; another may follow.
  void Finish();
  // Nobody reads: the other end of the pipe is closed.
  bool closed() const { return closed_; }

 private:
  const tarn_model* model_;
  bool has_text_;
  bool wanted_;
  bool first_ = true;
  bool closed_ = false;
  tarn_text_decoder decoder_ = {};
  std::vector<char> piece_;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_TOKEN_WRITER_H_
