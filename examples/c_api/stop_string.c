/* Text up to a stop string, which may span several tokens.
 *
 *   ./stop_string MODEL.tarn STOP */
#include <example.h>
#include <tarn/text_stream.h>

#define PROMPT "ROMEO:\n"

static void print(void* context, const char* text, size_t text_bytes) { fwrite(text, 1, text_bytes, (FILE*)context); }

int main(int argc, char** argv) {
  expect_arguments(argc, 2, "./stop_string MODEL.tarn STOP");
  tarn_model* model = open_model(argv[1]);
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  check(tarn_model_get_info(model, &info, &error));
  tarn_session* session = NULL;
  check(tarn_session_create(model, NULL, &session, &error));

  const tarn_stop_string stop = {argv[2], strlen(argv[2])};
  tarn_text_stream_config config = TARN_TEXT_STREAM_CONFIG_INIT;
  config.stop_strings = &stop;
  config.stop_string_count = 1;
  config.write = print; /* or a buffer of tarn_text_stream_max_bytes() in each call */
  config.write_context = stdout;
  tarn_text_stream* stream = NULL;
  check(tarn_text_stream_create(model, &config, &stream, &error)); /* takes its memory here, and none later */

  int32_t prompt[sizeof(PROMPT)];
  size_t count = 0;
  const float* logits = NULL;
  check(tarn_tokenize(model, PROMPT, strlen(PROMPT), prompt, sizeof(PROMPT), &count, &error));
  check(tarn_session_prefill(session, prompt, count, &logits, &error));
  for (size_t i = 0; i < count; ++i) check(tarn_text_stream_prompt(stream, prompt[i], NULL, 0, NULL, &error));
  for (int i = 0; i < 500 && tarn_text_stream_stop(stream) < 0; ++i) {
    const int32_t token = largest(logits, info.vocab_size);
    check(tarn_text_stream_feed(stream, token, NULL, 0, NULL, &error));
    check(tarn_session_step(session, &token, &logits, &error));
  }
  check(tarn_text_stream_finish(stream, NULL, 0, NULL, &error));
  printf("\n%s\n", tarn_text_stream_stop(stream) == 0 ? "stopped" : "500 tokens");

  tarn_text_stream_destroy(stream);
  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
