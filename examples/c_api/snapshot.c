/* Reads a prompt once, saves the session to a file, and goes on from the file in another session.
 *
 *   ./snapshot MODEL.tarn SNAPSHOT */
#include <example.h>

#define PROMPT "ROMEO:"
#define LENGTH 40

/* Writes LENGTH tokens, greedily; `token` is the last one of the text so far, which the session has not seen. */
static void generate(tarn_session* session, uint32_t vocab_size, int32_t token, char* text) {
  for (int i = 0; i < LENGTH; ++i) {
    const float* logits = NULL;
    check(tarn_session_step(session, &token, &logits, &error));
    token = largest(logits, vocab_size);
    text[i] = (char)token;
  }
}

static void fail(const char* path) {
  perror(path);
  exit(1);
}

static void save(const tarn_session* session, const char* path) {
  const uint64_t size_bytes = tarn_session_snapshot_bytes(session);
  void* snapshot = need(malloc((size_t)size_bytes));
  check(tarn_session_save(session, snapshot, size_bytes, &error));
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(snapshot, 1, (size_t)size_bytes, file) != size_bytes || fclose(file) != 0) fail(path);
  free(snapshot);
}

static void restore(tarn_session* session, const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(path);
  const long size_bytes = ftell(file);
  void* snapshot = need(malloc((size_t)size_bytes));
  rewind(file);
  if (fread(snapshot, 1, (size_t)size_bytes, file) != (size_t)size_bytes) fail(path);
  fclose(file);
  check(tarn_session_restore(session, snapshot, (uint64_t)size_bytes, &error)); /* checked like a file */
  free(snapshot);
}

int main(int argc, char** argv) {
  expect_arguments(argc, 2, "./snapshot MODEL.tarn SNAPSHOT");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);
  tarn_session* session = NULL;
  check(tarn_session_create(model, NULL, &session, &error));

  /* All tokens of the prompt but the last: a snapshot has no logits, so the last one is fed after each restore. */
  int32_t tokens[sizeof(PROMPT)];
  size_t count = 0;
  check(tarn_tokenize(model, PROMPT, strlen(PROMPT), tokens, sizeof(PROMPT), &count, &error));
  check(tarn_session_prefill(session, tokens, count - 1, NULL, &error));
  save(session, argv[2]);

  char first[LENGTH], second[LENGTH];
  generate(session, info.vocab_size, tokens[count - 1], first);
  tarn_session_destroy(session);

  check(tarn_session_create(model, NULL, &session, &error)); /* perhaps in another process, tomorrow */
  restore(session, argv[2]);
  generate(session, info.vocab_size, tokens[count - 1], second);
  printf("%s%.*s\n%s\n", PROMPT, LENGTH, first, memcmp(first, second, LENGTH) == 0 ? "equal" : "different");

  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
