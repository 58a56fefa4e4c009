/* glibc 2.27 and 2.29 gave these functions new versions that differ in how they report errors alone. A library that takes the
 * former ones (TARN_GLIBC_FLOOR names their version) runs on every glibc since: linked with --wrap=exp and so on. */
#define TARN_FORMER(type, name, parameters, arguments)             \
  type former_##name parameters;                                   \
  type __wrap_##name parameters;                                   \
  __asm__(".symver former_" #name "," #name "@" TARN_GLIBC_FLOOR); \
  type __wrap_##name parameters { return former_##name arguments; }

TARN_FORMER(double, exp, (double x), (x))
TARN_FORMER(double, exp2, (double x), (x))
TARN_FORMER(double, log, (double x), (x))
TARN_FORMER(double, log2, (double x), (x))
TARN_FORMER(double, pow, (double x, double y), (x, y))
TARN_FORMER(float, expf, (float x), (x))
TARN_FORMER(float, exp2f, (float x), (x))
TARN_FORMER(float, logf, (float x), (x))
TARN_FORMER(float, log2f, (float x), (x))
TARN_FORMER(float, powf, (float x, float y), (x, y))
