/* tarn_instructions MODEL DEPTH: the number of machine instructions of one decode step after DEPTH tokens.
 *
 * A child process takes the tokens at full speed and then a step that the parent counts by ptrace, one instruction at a time:
 * exact, with the kernels of this CPU, and without hardware counters. Linux on x86-64 or AArch64. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/depth.h"

static int fail(const char* what, const char* message) {
  fprintf(stderr, "tarn_instructions: %s: %s\n", what, message);
  return 1;
}

/* Two steps after `depth` tokens, of which the second is counted: the first sets the dense layers up for one row. */
static int run_child(const char* path, long depth) {
  const int32_t token = 1;
  const float* logits;
  tarn_error error;
  tarn_model* model;
  tarn_session* session;
  if (open_model(path, &model, &error) != TARN_OK || open_at_depth(model, depth, &session, &error) != TARN_OK ||
      tarn_session_step(session, &token, &logits, &error) != TARN_OK) {
    return fail(path, error.message);
  }
  raise(SIGUSR1);
  if (tarn_session_step(session, &token, &logits, &error) != TARN_OK) return fail("step", error.message);
  raise(SIGUSR1);
  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}

/* Counts between the child's two signals, which it does not get to see. Returns a negative number where the child fails. */
static long count_instructions(pid_t child) {
  long count = 0;
  int counting = 0;
  for (;;) {
    int status;
    if (waitpid(child, &status, 0) != child) return -1;
    if (WIFSIGNALED(status)) return -1;
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? count : -1;
    const int stopped_by = WSTOPSIG(status);
    if (stopped_by == SIGUSR1) {
      counting = !counting;
    } else if (stopped_by == SIGTRAP) {
      count += counting;
    } else { /* the child's own: pass it on */
      ptrace(PTRACE_CONT, child, NULL, (void*)(size_t)stopped_by);
      continue;
    }
    if (ptrace(counting ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, NULL) != 0) {
      kill(child, SIGKILL);
      return -1;
    }
  }
}

int main(int argc, char** argv) {
  char* end = NULL;
  const long depth = argc == 3 ? strtol(argv[2], &end, 10) : -1;
  if (depth < 0 || *end != '\0') {
    fprintf(stderr, "usage: tarn_instructions MODEL DEPTH\n");
    return 2;
  }
  const pid_t child = fork();
  if (child < 0) return fail("fork", "refused");
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(fail("ptrace", "refused: this process may not be traced"));
    _exit(run_child(argv[1], depth));
  }
  const long count = count_instructions(child);
  if (count <= 0) return fail(argv[1], "the counted step did not come to its end");
  printf("%ld\n", count);
  return 0;
}
