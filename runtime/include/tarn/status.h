/* The table of status codes: the C enum, the C++ enum and their strings are all made from it.
 * Codes are stable: a released number keeps its meaning, new ones are added at the end. */
#ifndef TARN_STATUS_H_
#define TARN_STATUS_H_

/* X(NAME, number, "what it means in two or three words") */
#define TARN_STATUS_TABLE(X)                             \
  X(OK, 0, "ok")                                         \
  X(INVALID_ARGUMENT, 1, "invalid argument")             \
  X(NOT_FOUND, 2, "not found")                           \
  X(IO, 3, "input/output error")                         \
  X(BAD_FORMAT, 4, "damaged or foreign file")            \
  X(UNSUPPORTED, 5, "not supported by this version")     \
  X(OUT_OF_MEMORY, 6, "out of memory")                   \
  X(CONTEXT_FULL, 7, "bounded context is full")          \
  X(BUFFER_TOO_SMALL, 8, "caller's buffer is too small") \
  X(CHECKSUM, 9, "checksum does not match")              \
  X(INTERNAL, 10, "internal error")                      \
  X(CANCELLED, 11, "cancelled")

#define TARN_STATUS_ENUMERATOR(name, number, text) TARN_##name = number,
typedef enum tarn_status { TARN_STATUS_TABLE(TARN_STATUS_ENUMERATOR) } tarn_status;
#undef TARN_STATUS_ENUMERATOR

#endif /* TARN_STATUS_H_ */
