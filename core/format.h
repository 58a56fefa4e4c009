// Numbers and names into a buffer, as printf writes them.
#ifndef TARN_CORE_FORMAT_H_
#define TARN_CORE_FORMAT_H_

#include <cstdarg>
#include <cstddef>

namespace tarn {

// Writes the text and a NUL into `text`, which has room for text_bytes >= 1 bytes; what does not fit is cut. Returns the bytes
// written, without the NUL.
//
// Conversions: %s, %g (six digits), %%, and %d, %u, %x, with l, ll, z or t for their types and a width, filled with zeros (%02x) or
// spaces. Where there is no C library (format_v_bare.cc) a text ends before any other; tests/bare/conversions_test.py keeps them
// out.
size_t Format(char* text, size_t text_bytes, const char* format, ...) __attribute__((format(printf, 3, 4)));
size_t FormatV(char* text, size_t text_bytes, const char* format, va_list arguments);

}  // namespace tarn

#endif  // TARN_CORE_FORMAT_H_
