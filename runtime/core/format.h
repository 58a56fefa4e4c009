// Numbers and names into a buffer, as printf writes them.
#ifndef TARN_RUNTIME_CORE_FORMAT_H_
#define TARN_RUNTIME_CORE_FORMAT_H_

#include <cstdarg>
#include <cstddef>

namespace tarn {

// Writes the text and a NUL into `text`, which has room for text_bytes >= 1 bytes; what does not fit is cut. Returns the bytes
// written, without the NUL.
//
// Conversions: %s, %d and %u (int), %zu, %ld, %lu, %lld, %llu, %x (also with l, ll, z), each with an optional width that is filled
// with zeros (%02x) or spaces; %g of six digits; %%. Others are for a newer format_bare.cc.
size_t Format(char* text, size_t text_bytes, const char* format, ...) __attribute__((format(printf, 3, 4)));
size_t FormatV(char* text, size_t text_bytes, const char* format, va_list arguments);

}  // namespace tarn

#endif  // TARN_RUNTIME_CORE_FORMAT_H_
