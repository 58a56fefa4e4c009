/* tarn_speculation_time MODEL TEXT [PROMPT TOKENS DRAFTS THREADS]: tokens per second with speculation and without, on a text that
 * is forced. TEXT is a file, "random" for tokens that cannot be guessed, or "again:FILE" for the begin of a file that comes a
 * second time. Two sessions take turns on the same text, so that both meet the same machine. A model without a tokenizer gets
 * words, spaces and signs as hashed ids. Prints a line of JSON. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tarn/speculation.h"
#include "tests/bench/depth.h"

enum { kMostTokens = 1 << 16, kTurn = 64, kMostDrafts = 63 };

static tarn_error error;
static int32_t text[kMostTokens];
static size_t text_count, position; /* of the session that speculates */

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Of the clock, and of this process on a processor. */
typedef struct Seconds {
  double wall, cpu;
} Seconds;
static Seconds begin;

static void start(void) {
  begin.wall = now(CLOCK_MONOTONIC);
  begin.cpu = now(CLOCK_PROCESS_CPUTIME_ID);
}

static void stop(Seconds* sum) {
  sum->wall += now(CLOCK_MONOTONIC) - begin.wall;
  sum->cpu += now(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu;
}

static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "tarn_speculation_time: %s\n", error.message);
  exit(1);
}

static int class_of(int c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return 1;
  return c == ' ' ? 2 : 0;
}

/* Runs of letters and of spaces, and single signs. */
static void hash_words(const char* bytes, size_t size, uint32_t vocab_size) {
  for (size_t i = 0; i < size && text_count < kMostTokens;) {
    const int class = class_of(bytes[i]);
    uint32_t hash = 2166136261u;
    do {
      hash = (hash ^ (uint8_t)bytes[i++]) * 16777619u;
    } while (i < size && class != 0 && class_of(bytes[i]) == class);
    text[text_count++] = (int32_t)(hash % vocab_size);
  }
}

static void read_text(const tarn_model* model, const tarn_model_info* info, const char* path) {
  static char bytes[1 << 20];
  FILE* file = fopen(path, "rb");
  if (file == NULL) {
    fprintf(stderr, "tarn_speculation_time: %s cannot be read\n", path);
    exit(1);
  }
  const size_t size = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  if (info->tokenizer == TARN_TOKENIZER_NONE) {
    hash_words(bytes, size, info->vocab_size);
  } else if (tarn_tokenize(model, bytes, size, text, kMostTokens, &text_count, &error) != TARN_OK) {
    text_count = kMostTokens; /* the rest does not fit */
  }
}

static void make_text(const tarn_model* model, const tarn_model_info* info, const char* name, size_t prompt, size_t tokens) {
  if (strcmp(name, "random") == 0) {
    uint64_t state = 1;
    for (; text_count < prompt + tokens + kMostDrafts + 1; ++text_count) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text[text_count] = (int32_t)((state >> 33) % info->vocab_size);
    }
  } else if (strncmp(name, "again:", 6) == 0) {
    read_text(model, info, name + 6);
    for (size_t i = prompt; i < kMostTokens; ++i) text[i] = text[i - prompt];
    text_count = kMostTokens;
  } else {
    read_text(model, info, name);
  }
  if (text_count < prompt + tokens + kMostDrafts + 1) {
    fprintf(stderr, "tarn_speculation_time: %s has %zu tokens, %zu expected\n", name, text_count,
            prompt + tokens + kMostDrafts + 1);
    exit(1);
  }
}

static int32_t pick(void* context, const float* logits, size_t vocab_size) {
  (void)context;
  (void)logits;
  (void)vocab_size;
  return text[++position];
}

static size_t number(int argc, char** argv, int index, size_t otherwise) {
  return index < argc ? (size_t)strtoul(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char** argv) {
  const size_t prompt = number(argc, argv, 3, 512), tokens = number(argc, argv, 4, 512), drafts = number(argc, argv, 5, 15);
  tarn_model* model;
  tarn_session* sessions[2];
  tarn_speculation* speculation;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  tarn_speculation_config how = TARN_SPECULATION_CONFIG_INIT;
  tarn_speculation_stats stats = TARN_SPECULATION_STATS_INIT;
  Seconds plain = {0, 0}, speculated = {0, 0};
  if (argc < 3 || prompt < 1 || drafts < 1 || drafts > kMostDrafts || prompt + tokens > kMostTokens / 2) {
    fprintf(stderr, "usage: tarn_speculation_time MODEL TEXT [PROMPT TOKENS DRAFTS THREADS]\n");
    return 2;
  }
  check(open_model(argv[1], &model, &error));
  check(tarn_model_get_info(model, &info, &error));
  make_text(model, &info, argv[2], prompt, tokens);
  config.max_logits_rows = (uint32_t)drafts + 1;
  config.threads = (uint32_t)number(argc, argv, 6, 1);
  for (int i = 0; i < 2; ++i) {
    check(tarn_session_create(model, &config, &sessions[i], &error));
    check(tarn_session_prefill(sessions[i], text, prompt, NULL, &error));
  }
  how.pick = pick;
  check(tarn_speculation_create(sessions[1], NULL, &how, &speculation, &error));
  check(tarn_speculation_read(speculation, text, prompt, &error));
  position = prompt;
  for (size_t done = 0; done < tokens; done += kTurn) {
    start();
    for (size_t i = 0; i < kTurn; ++i) check(tarn_session_step(sessions[0], &text[prompt + done + i], NULL, &error));
    stop(&plain);
    start();
    while (position < prompt + done + kTurn) {
      int32_t next[kMostDrafts + 1];
      size_t count, left = prompt + done + kTurn - position;
      check(tarn_speculation_step(speculation, text[position], next, left < drafts + 1 ? left : drafts + 1, &count, &error));
    }
    stop(&speculated);
  }
  check(tarn_speculation_get_stats(speculation, &stats, &error));
  const double count = (double)((tokens + kTurn - 1) / kTurn * kTurn);
  printf(
      "{\"text\": \"%s\", \"tokens\": %.0f, \"plain_t_s\": %.2f, \"speculation_t_s\": %.2f, \"ratio\": %.3f, "
      "\"cpu_ratio\": %.3f, \"runs\": %llu, \"drafted\": %llu, \"accepted\": %llu}\n",
      argv[2], count, count / plain.wall, count / speculated.wall, plain.wall / speculated.wall, plain.cpu / speculated.cpu,
      (unsigned long long)stats.runs, (unsigned long long)stats.drafted, (unsigned long long)stats.accepted);
  tarn_speculation_destroy(speculation);
  for (int i = 0; i < 2; ++i) tarn_session_destroy(sessions[i]);
  tarn_model_close(model);
  return 0;
}
