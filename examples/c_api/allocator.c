/* An allocator of the program's own: it counts what a model and a session take, and what stays.
 *
 *   ./allocator MODEL.tarn */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include <example.h>

typedef struct {
  uint64_t bytes; /* held now */
  uint64_t most;  /* held at one time */
} counter;

static void* allocate(void* context, size_t size_bytes, size_t alignment) {
  counter* count = context;
  void* pointer = NULL;
  if (alignment < sizeof(void*)) alignment = sizeof(void*); /* what posix_memalign wants */
  if (posix_memalign(&pointer, alignment, size_bytes) != 0) return NULL;
  count->bytes += size_bytes;
  if (count->bytes > count->most) count->most = count->bytes;
  return pointer;
}

static void release(void* context, void* pointer, size_t size_bytes) {
  counter* count = context;
  count->bytes -= size_bytes;
  free(pointer);
}

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./allocator MODEL.tarn");
  counter count = {0, 0};
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  config.allocator.allocate = allocate;
  config.allocator.release = release;
  config.allocator.context = &count;
  tarn_source source = TARN_SOURCE_INIT;
  source.path = argv[1];
  tarn_memory memory = TARN_MEMORY_INIT;
  check(tarn_requirements(&source, &config, NULL, &memory, &error));

  tarn_model* model = NULL;
  count.most = count.bytes;
  check(tarn_model_open(&source, &config, &model, &error));
  printf("opening:  %8llu at most, the contract says %8llu\n", (unsigned long long)count.most,
         (unsigned long long)memory.opening_bytes);
  printf("model:    %8llu,         the contract says %8llu\n", (unsigned long long)count.bytes,
         (unsigned long long)(memory.model_bytes + memory.packed_anonymous_bytes));
  const uint64_t before = count.bytes;
  tarn_session* session = NULL;
  check(tarn_session_create(model, NULL, &session, &error));
  printf("session:  %8llu,         the contract says %8llu\n", (unsigned long long)(count.bytes - before),
         (unsigned long long)memory.session_bytes);
  tarn_session_destroy(session);
  tarn_model_close(model);
  printf("closed:   %8llu\n", (unsigned long long)count.bytes);
  return 0;
}
