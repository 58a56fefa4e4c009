// A text stream as checkpoints see it.
#ifndef TARN_RUNTIME_CAPI_TEXT_STREAM_STATE_H_
#define TARN_RUNTIME_CAPI_TEXT_STREAM_STATE_H_

#include "runtime/generation/text_state.h"
#include "tarn/text_stream.h"

namespace tarn {

TextState* StateOf(tarn_text_stream* stream);  // nullptr of nullptr

}  // namespace tarn

#endif  // TARN_RUNTIME_CAPI_TEXT_STREAM_STATE_H_
