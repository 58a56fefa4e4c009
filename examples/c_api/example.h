/* What the examples share: a check of statuses, and a model opened from a path. */
#ifndef EXAMPLE_H_
#define EXAMPLE_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tarn/tarn.h>

static tarn_error error;

/* Prints what failed, and ends the program. */
static inline void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "%s: %s\n", tarn_status_string(status), error.message);
  exit(1);
}

/* Ends the program with a usage line if it has not `count` arguments. */
static inline void expect_arguments(int argc, int count, const char* usage) {
  if (argc == count + 1) return;
  fprintf(stderr, "usage: %s\n", usage);
  exit(2);
}

static inline void* need(void* memory) {
  if (memory != NULL) return memory;
  fprintf(stderr, "out of memory\n");
  exit(1);
}

static inline tarn_model* open_model(const char* path) {
  tarn_model* model = NULL;
  tarn_source source = TARN_SOURCE_INIT;
  source.path = path;
  check(tarn_model_open(&source, NULL, &model, &error));
  return model;
}

/* For the programs that take a byte for a token: opens a model whose tokens are bytes. */
static inline tarn_model* open_byte_model(const char* path, tarn_model_info* info) {
  tarn_model* model = open_model(path);
  check(tarn_model_get_info(model, info, &error));
  if (info->tokenizer == TARN_TOKENIZER_BYTES) return model;
  fprintf(stderr, "%s: the tokenizer is of kind %d, expected %d (a token is a byte): use a model of examples/models\n", path,
          (int)info->tokenizer, (int)TARN_TOKENIZER_BYTES);
  exit(1);
}

/* The id of the largest of `count` logits. */
static inline int32_t largest(const float* logits, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return (int32_t)best;
}

#endif /* EXAMPLE_H_ */
