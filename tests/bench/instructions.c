/* tarn_instructions MODEL DEPTH: the number of machine instructions of one decode step after DEPTH tokens.
 *
 * A child process takes the tokens at full speed and then a step that the parent counts by ptrace, one instruction at a time:
 * exact, with the kernels of this CPU, and without hardware counters. Linux on x86-64 or AArch64. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <tarn/tarn.h>
#include <unistd.h>

enum { kTokens = 4096 }; /* of one prefill call */

static int fail(const char* what, const char* message) {
  fprintf(stderr, "tarn_instructions: %s: %s\n", what, message);
  return 1;
}

/* Feeds `depth` tokens, the same sequence every time, in chunks; then two steps, of which the second is counted: the first sets
 * the dense layers up for one row. */
static int run_child(const char* path, long depth) {
  tarn_error error;
  tarn_source source = TARN_SOURCE_INIT;
  tarn_model_config model_config = TARN_MODEL_CONFIG_INIT;
  tarn_session_config session_config = TARN_SESSION_CONFIG_INIT;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model;
  tarn_session* session;
  const float* logits;
  static int32_t tokens[kTokens];
  uint32_t random = 1;
  source.path = path;
  model_config.isa = getenv("TARN_ISA");
  if (tarn_model_open(&source, &model_config, &model, &error) != TARN_OK ||
      tarn_session_create(model, &session_config, &session, &error) != TARN_OK ||
      tarn_model_get_info(model, &info, &error) != TARN_OK) {
    return fail(path, error.message);
  }
  while (depth > 0) {
    const size_t count = depth < kTokens ? (size_t)depth : (size_t)kTokens;
    for (size_t i = 0; i < count; ++i) {
      random = random * 1664525u + 1013904223u;
      tokens[i] = (int32_t)((random >> 8) % info.vocab_size);
    }
    if (tarn_session_prefill(session, tokens, count, NULL, &error) != TARN_OK) return fail("prefill", error.message);
    depth -= (long)count;
  }
  tokens[0] = 1;
  if (tarn_session_step(session, tokens, &logits, &error) != TARN_OK) return fail("step", error.message);
  raise(SIGUSR1);
  if (tarn_session_step(session, tokens, &logits, &error) != TARN_OK) return fail("step", error.message);
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
