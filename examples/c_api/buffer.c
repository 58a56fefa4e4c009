/* A model from memory: the caller's bytes, which stay where they are until the model is closed.
 *
 *   ./buffer MODEL.tarn */
#include <example.h>

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./buffer MODEL.tarn");
  FILE* file = fopen(argv[1], "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
    perror(argv[1]);
    return 1;
  }
  const size_t size_bytes = (size_t)ftell(file);
  rewind(file);
  void* bytes = need(malloc(size_bytes)); /* or an array in flash, or a decrypted file */
  if (fread(bytes, 1, size_bytes, file) != size_bytes) {
    fprintf(stderr, "%s: cannot be read as a whole\n", argv[1]);
    return 1;
  }
  fclose(file);

  tarn_source source = TARN_SOURCE_INIT;
  source.buffer = bytes;
  source.length_bytes = size_bytes;
  tarn_model* model = NULL;
  check(tarn_model_open(&source, NULL, &model, &error));
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  check(tarn_model_get_info(model, &info, &error));
  printf("%s: %llu parameters\n", info.name, (unsigned long long)info.parameters);

  tarn_model_close(model);
  free(bytes); /* after the model, never before */
  return 0;
}
