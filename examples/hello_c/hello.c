/* The smallest complete program: opens a model, asks what it needs, gives a session exactly that memory, and streams text.
 *
 *   ./hello MODEL.tarn "a prompt"
 */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tarn/tarn.h>
#include <tarn/text_stream.h>

#define TOKENS 200

/* Whatever fails, the library has put it into one line of words. */
static tarn_error error;
static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "hello: %s\n", error.message);
  exit(1);
}

static void* need(void* memory) {
  if (memory != NULL) return memory;
  fprintf(stderr, "hello: out of memory\n");
  exit(1);
}

/* Gets text as soon as its characters are whole. */
static void print(void* context, const char* text, size_t text_bytes) {
  fwrite(text, 1, text_bytes, (FILE*)context);
  fflush((FILE*)context);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: hello MODEL.tarn PROMPT\n");
    return 2;
  }

  /* How much will it take? The answer comes from the head of the file; no weight is read for it. */
  tarn_source source = TARN_SOURCE_INIT;
  source.path = argv[1];
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  tarn_memory memory = TARN_MEMORY_INIT;
  check(tarn_requirements(&source, NULL, &config, &memory, &error));
  fprintf(stderr, "the model: %llu bytes, a session: %llu bytes\n", (unsigned long long)memory.mapped_bytes,
          (unsigned long long)memory.session_bytes);

  tarn_model* model = NULL;
  check(tarn_model_open(&source, NULL, &model, &error));
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  check(tarn_model_get_info(model, &info, &error));

  /* A session lives in one block, here our own. One byte less and its creation would fail and say so. */
  void* block = NULL;
  if (posix_memalign(&block, 64, (size_t)memory.session_bytes) != 0) block = NULL;
  config.block = need(block);
  config.block_bytes = (size_t)memory.session_bytes;
  tarn_session* session = NULL;
  check(tarn_session_create(model, &config, &session, &error));

  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT; /* temperature 0.8, top-k 40, ... */
  chain.seed = 42;                                      /* the same seed gives the same text */
  tarn_sampler* sampler = NULL;
  check(tarn_sampler_create(info.vocab_size, &chain, &sampler, &error));

  tarn_text_stream_config output = TARN_TEXT_STREAM_CONFIG_INIT;
  output.write = print;
  output.write_context = stdout;
  tarn_text_stream* stream = NULL;
  check(tarn_text_stream_create(model, &output, &stream, &error));

  /* Prompt to token ids: without room for any, the call counts them. */
  const size_t prompt_bytes = strlen(argv[2]);
  size_t count = 0;
  tarn_tokenize(model, argv[2], prompt_bytes, NULL, 0, &count, NULL);
  int32_t* tokens = need(malloc((count + 1) * sizeof(*tokens)));
  check(tarn_tokenize(model, argv[2], prompt_bytes, tokens, count, &count, &error));

  const float* logits = NULL; /* [vocab_size], the session's, until its next call */
  check(tarn_session_prefill(session, tokens, count, &logits, &error));

  /* The text goes on from the prompt, so the stream gets both. */
  for (size_t i = 0; i < count; ++i) check(tarn_text_stream_prompt(stream, tokens[i], NULL, 0, NULL, &error));
  for (int i = 0; i < TOKENS && !ferror(stdout); ++i) { /* after an error nobody reads */
    int32_t token = 0;
    check(tarn_sampler_sample(sampler, logits, &token, &error));
    if (token == info.eos_token) break;
    check(tarn_text_stream_feed(stream, token, NULL, 0, NULL, &error));
    check(tarn_session_step(session, &token, &logits, &error));
  }
  check(tarn_text_stream_finish(stream, NULL, 0, NULL, &error));
  printf("\n");

  free(tokens);
  tarn_text_stream_destroy(stream);
  tarn_sampler_destroy(sampler);
  tarn_session_destroy(session);
  free(block);
  tarn_model_close(model);
  return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
