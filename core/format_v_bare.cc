// The same without a C library: its printf brings buffers, locales, a heap and arithmetic of many digits with it, ten times the
// code of this file, and newlib's small one leaves %llu out.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/format.h"

namespace tarn {
namespace {

// The end of a text that is being written; what does not fit is dropped.
class Writer {
 public:
  Writer(char* text, size_t text_bytes) : begin_(text), next_(text), last_(text + text_bytes - 1) {}

  void Put(char byte) {
    if (next_ < last_) *next_++ = byte;
  }
  void Put(const char* text, size_t count) {
    for (size_t i = 0; i < count; ++i) Put(text[i]);
  }
  size_t Finish() {
    *next_ = '\0';
    return static_cast<size_t>(next_ - begin_);
  }

 private:
  char* const begin_;
  char* next_;
  char* const last_;
};

struct Width {
  size_t least;
  char fill;
};

void PutInteger(uint64_t value, bool negative, unsigned base, Width width, Writer& out) {
  char digits[20];  // of 2^64
  size_t count = 0;
  do {
    digits[count++] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  if (negative && width.fill == '0') out.Put('-');
  for (size_t i = count + negative; i < width.least; ++i) out.Put(width.fill);
  if (negative && width.fill != '0') out.Put('-');
  while (count > 0) out.Put(digits[--count]);
}

constexpr int kDigits = 6;

// value > 0 is digits / 10^(kDigits - 1) * 10^exponent, with digits of kDigits places. Steps of ten in f64, whose errors show in no
// digit but where value lies next to the middle between two numbers of kDigits places.
uint32_t Decompose(double value, int* exponent) {
  int e = 0;
  for (; value >= 10.0; value /= 10.0) ++e;
  for (; value < 1.0; value *= 10.0) --e;
  constexpr uint32_t kTop = 1000000;  // 10^kDigits
  const uint32_t digits = static_cast<uint32_t>(value * (kTop / 10) + 0.5);
  *exponent = digits < kTop ? e : e + 1;
  return digits < kTop ? digits : digits / 10;
}

void PutGeneral(double value, Writer& out) {
  if (std::signbit(value)) out.Put('-');
  value = std::fabs(value);
  if (std::isnan(value)) return out.Put("nan", 3);
  if (std::isinf(value)) return out.Put("inf", 3);
  if (value == 0.0) return out.Put('0');
  int exponent = 0;
  uint32_t digits = Decompose(value, &exponent);
  char places[kDigits];
  for (int i = kDigits - 1; i >= 0; --i, digits /= 10) places[i] = static_cast<char>('0' + digits % 10);
  int count = kDigits;
  while (count > 1 && places[count - 1] == '0') --count;
  const bool scientific = exponent < -4 || exponent >= kDigits;
  const int before = scientific ? 1 : exponent + 1;  // digits before the point
  if (before <= 0) out.Put("0.0000", static_cast<size_t>(2 - before));
  for (int i = 0; i < count || i < before; ++i) {
    if (i == before && i > 0) out.Put('.');
    out.Put(i < count ? places[i] : '0');
  }
  if (!scientific) return;
  out.Put('e');
  out.Put(exponent < 0 ? '-' : '+');
  PutInteger(static_cast<uint64_t>(exponent < 0 ? -exponent : exponent), false, 10, {2, '0'}, out);
}

int64_t NextSigned(int longs, bool size, va_list& arguments) {
  if (longs >= 2) return va_arg(arguments, long long);
  if (size) return va_arg(arguments, ptrdiff_t);
  return longs == 1 ? va_arg(arguments, long) : va_arg(arguments, int);
}

uint64_t NextUnsigned(int longs, bool size, va_list& arguments) {
  if (longs >= 2) return va_arg(arguments, unsigned long long);
  if (size) return va_arg(arguments, size_t);
  return longs == 1 ? va_arg(arguments, unsigned long) : va_arg(arguments, unsigned);
}

// What stands between '%' and the letter that says what is written; `format` moves to that letter.
struct Conversion {
  explicit Conversion(const char*& format) {
    if (*format == '0') width.fill = *format++;
    for (; *format >= '0' && *format <= '9'; ++format) width.least = 10 * width.least + static_cast<size_t>(*format - '0');
    for (; *format == 'l'; ++format) ++longs;
    if (*format == 'z' || *format == 't') {
      size = true;
      ++format;
    }
  }

  Width width = {0, ' '};
  int longs = 0;
  bool size = false;
};

}  // namespace

size_t FormatV(char* text, size_t text_bytes, const char* format, va_list arguments_in) {
  va_list arguments;
  va_copy(arguments, arguments_in);  // a parameter of an array type cannot be handed on by reference
  Writer out(text, text_bytes);
  for (; *format != '\0'; ++format) {
    if (*format != '%') {
      out.Put(*format);
      continue;
    }
    const Conversion c(++format);
    if (*format == 's') {
      const char* string = va_arg(arguments, const char*);
      out.Put(string, std::strlen(string));
    } else if (*format == 'u' || *format == 'x') {
      PutInteger(NextUnsigned(c.longs, c.size, arguments), false, *format == 'x' ? 16 : 10, c.width, out);
    } else if (*format == 'd') {
      const int64_t value = NextSigned(c.longs, c.size, arguments);
      PutInteger(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value), value < 0, 10, c.width, out);
    } else if (*format == 'g') {
      PutGeneral(va_arg(arguments, double), out);
    } else if (*format == '%') {
      out.Put('%');
    } else {
      break;  // whatever follows cannot be read
    }
  }
  va_end(arguments);
  return out.Finish();
}

}  // namespace tarn
