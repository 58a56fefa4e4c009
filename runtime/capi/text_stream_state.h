// What a text stream carries from token to token, as bytes: for checkpoints. (text_stream.cc)
#ifndef TARN_RUNTIME_CAPI_TEXT_STREAM_STATE_H_
#define TARN_RUNTIME_CAPI_TEXT_STREAM_STATE_H_

#include <cstddef>
#include <cstdint>

#include "tarn/text_stream.h"

namespace tarn {

size_t TextStreamStateBytes(const tarn_text_stream& stream);
// `state` has that many bytes, at any alignment; it is restored into a stream of the same config.
void SaveTextStream(const tarn_text_stream& stream, uint8_t* state);
void RestoreTextStream(tarn_text_stream* stream, const uint8_t* state);

}  // namespace tarn

#endif  // TARN_RUNTIME_CAPI_TEXT_STREAM_STATE_H_
