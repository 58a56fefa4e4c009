/* Text to token ids, part by part, in memory of fixed size; special tokens in the text stay text.
 *
 *   ./tokenize MODEL.tarn TEXT */
#include <example.h>
#include <tarn/tokenizer.h>

int main(int argc, char** argv) {
  expect_arguments(argc, 2, "./tokenize MODEL.tarn TEXT");
  tarn_model* model = open_model(argv[1]);
  tarn_tokenizer_config config = TARN_TOKENIZER_CONFIG_INIT;
  uint64_t size_bytes = 0;
  check(tarn_tokenizer_requirements(model, &config, &size_bytes, &error));
  tarn_tokenizer* tokenizer = NULL;
  check(tarn_tokenizer_create(model, &config, &tokenizer, &error)); /* takes its memory here, and none later */

  tarn_tokenizer_options options = TARN_TOKENIZER_OPTIONS_INIT;
  options.plain = 1; /* "<|endoftext|>" in the text of a user is text */
  check(tarn_tokenizer_begin(tokenizer, argv[2], strlen(argv[2]), &options, &error));
  int32_t tokens[16];
  tarn_text_range ranges[16];
  size_t count = 0;
  do {
    check(tarn_tokenizer_read(tokenizer, tokens, ranges, 16, &count, &error));
    for (size_t i = 0; i < count; ++i) {
      printf("%d: bytes %zu to %zu\n", (int)tokens[i], ranges[i].begin, ranges[i].end);
    }
  } while (count == 16); /* fewer are the last ones */

  printf("in %llu bytes of memory\n", (unsigned long long)size_bytes);
  tarn_tokenizer_destroy(tokenizer);
  tarn_model_close(model);
  return 0;
}
