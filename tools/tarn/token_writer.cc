#include "tools/tarn/token_writer.h"

#include <cstdio>

#include "tools/tarn/error.h"
#include "tools/tarn/files.h"

namespace tarn_cli {

TokenWriter::TokenWriter(const Model& model, bool wanted)
    : model_(model.get()),
      has_text_(model.info().tokenizer != TARN_TOKENIZER_NONE),
      wanted_(wanted),
      piece_(tarn_max_piece_bytes(model.get())) {}

void TokenWriter::Write(int32_t token) {
  if (closed_ || !wanted_) return;
  if (has_text_) {
    if (tarn_token_is_special(model_, token) != 0) return;
    tarn_error error;
    size_t size = 0;
    Check(tarn_text_decode(model_, &decoder_, token, piece_.data(), piece_.size(), &size, &error), error);
    if (size > 0) closed_ = !WriteStdout(piece_.data(), size);
    return;
  }
  char id[16];
  const int size = std::snprintf(id, sizeof(id), first_ ? "%d" : " %d", token);
  closed_ = !WriteStdout(id, static_cast<size_t>(size));
  first_ = false;
}

void TokenWriter::Finish() {
  if (closed_ || !wanted_) return;
  const size_t size = tarn_text_finish(&decoder_, piece_.data());
  first_ = true;
  closed_ = !WriteStdout(piece_.data(), size) || !WriteStdout("\n", 1);
}

}  // namespace tarn_cli
