/* tarn_marked_step MODEL DEPTH: takes DEPTH tokens, then one step between two calls of getppid(), which nothing else here calls: an
 * emulator can see where the step begins and ends (count_plugin.c). */
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/depth.h"

int main(int argc, char** argv) {
  char* end = NULL;
  const long depth = argc == 3 ? strtol(argv[2], &end, 10) : -1;
  if (depth < 0 || *end != '\0') {
    fprintf(stderr, "usage: tarn_marked_step MODEL DEPTH\n");
    return 2;
  }
  const int32_t token = 1;
  const float* logits;
  tarn_error error;
  tarn_model* model;
  tarn_session* session;
  /* Two steps, of which the second is marked: the first sets the dense layers up for one row. */
  tarn_status status = open_model(argv[1], &model, &error);
  if (status == TARN_OK) status = open_at_depth(model, depth, &session, &error);
  if (status == TARN_OK) status = tarn_session_step(session, &token, &logits, &error);
  (void)getppid();
  if (status == TARN_OK) status = tarn_session_step(session, &token, &logits, &error);
  (void)getppid();
  if (status != TARN_OK) {
    fprintf(stderr, "tarn_marked_step: %s: %s\n", argv[1], error.message);
    return 1;
  }
  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
