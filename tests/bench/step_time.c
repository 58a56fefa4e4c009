/* tarn_step_time MODEL DEPTH DEPTH: the time of a decode step after so many tokens, in two sessions that take turns, so that both
 * meet the same machine. Prints, for each, the median of the rounds and their quartiles, then the ratio of the medians. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/bench/depth.h"

enum { kRounds = 101, kSteps = 256, kSessions = 2 };

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Of one step, in the mean of kSteps. */
static tarn_status time_steps(tarn_session* session, double* us, tarn_error* error) {
  tarn_status status = TARN_OK;
  const double begin = now_us();
  for (int32_t i = 0; i < kSteps && status == TARN_OK; ++i) status = tarn_session_step(session, &i, NULL, error);
  *us = (now_us() - begin) / (double)kSteps;
  return status;
}

int main(int argc, char** argv) {
  static double us[kSessions][kRounds];
  tarn_error error;
  tarn_model* model;
  tarn_session* sessions[kSessions];
  tarn_status status;
  if (argc != 2 + kSessions) {
    fprintf(stderr, "usage: tarn_step_time MODEL DEPTH DEPTH\n");
    return 2;
  }
  status = open_model(argv[1], &model, &error);
  for (int i = 0; i < kSessions && status == TARN_OK; ++i) {
    status = open_at_depth(model, strtol(argv[2 + i], NULL, 10), &sessions[i], &error);
  }
  for (int round = -1; round < kRounds && status == TARN_OK; ++round) { /* the first one warms up */
    for (int i = 0; i < kSessions && status == TARN_OK; ++i) {
      status = time_steps(sessions[i], &us[i][round < 0 ? 0 : round], &error);
    }
  }
  if (status != TARN_OK) {
    fprintf(stderr, "tarn_step_time: %s: %s\n", argv[1], error.message);
    return 1;
  }
  for (int i = 0; i < kSessions; ++i) {
    qsort(us[i], kRounds, sizeof(us[i][0]), compare);
    printf("  depth %9s  %.2f us per token, quartiles %.2f and %.2f\n", argv[2 + i], us[i][kRounds / 2], us[i][kRounds / 4],
           us[i][kRounds - 1 - kRounds / 4]);
    tarn_session_destroy(sessions[i]);
  }
  printf("  medians: %+.2f %%\n", 100 * (us[1][kRounds / 2] / us[0][kRounds / 2] - 1));
  tarn_model_close(model);
  return 0;
}
