// Any bytes as a chat template: it is refused with words, or it gives a form that the runtime formats. It ends in bounded time.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/convert/chat/chat_fit.h"
#include "tools/convert/json/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tarn::convert::ConvertError;
  const std::string source(reinterpret_cast<const char*>(data), size);
  try {
    const tarn::convert::JinjaTemplate jinja(source);
    const tarn::convert::ChatFit fit = tarn::convert::FitChat(jinja, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    tarn::convert::FormatChat(fit.chat, {{"user", " a "}, {"assistant", "b"}, {"user", ""}});
  } catch (const ConvertError&) {
    // The only way to say no.
  }
  return 0;
}
