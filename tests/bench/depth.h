/* Sessions that have taken many tokens, for programs that ask what the next one costs. C99. */
#ifndef TARN_TESTS_BENCH_DEPTH_H_
#define TARN_TESTS_BENCH_DEPTH_H_

#include <stdlib.h>
#include <tarn/tarn.h>

/* With the kernels that TARN_ISA names. */
static inline tarn_status open_model(const char* path, tarn_model** model, tarn_error* error) {
  tarn_source source = TARN_SOURCE_INIT;
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  source.path = path;
  config.isa = getenv("TARN_ISA");
  return tarn_model_open(&source, &config, model, error);
}

/* A session of one thread that has taken `depth` tokens, in chunks; the same tokens every time. */
static inline tarn_status open_at_depth(const tarn_model* model, long depth, tarn_session** session, tarn_error* error) {
  enum { kTokens = 4096 }; /* of a prefill call */
  int32_t tokens[kTokens];
  uint32_t random = 1;
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_status status = tarn_model_get_info(model, &info, error);
  if (status == TARN_OK) status = tarn_session_create(model, &config, session, error);
  while (status == TARN_OK && depth > 0) {
    const size_t count = depth < kTokens ? (size_t)depth : (size_t)kTokens;
    for (size_t i = 0; i < count; ++i) {
      random = random * 1664525u + 1013904223u;
      tokens[i] = (int32_t)((random >> 8) % info.vocab_size);
    }
    status = tarn_session_prefill(*session, tokens, count, NULL, error);
    depth -= (long)count;
  }
  return status;
}

#endif /* TARN_TESTS_BENCH_DEPTH_H_ */
