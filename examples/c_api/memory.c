/* Prints the memory contract of a model, and gives a session a block of the program's own.
 *
 *   ./memory MODEL.tarn */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include <example.h>

static void print(const char* name, uint64_t bytes) { printf("%-23s %10llu\n", name, (unsigned long long)bytes); }

static void print_contract(const tarn_memory* memory) {
  print("mapped_bytes", memory->mapped_bytes);
  print("in_place_bytes", memory->in_place_bytes);
  print("packed_file_bytes", memory->packed_file_bytes);
  print("packed_anonymous_bytes", memory->packed_anonymous_bytes);
  print("model_bytes", memory->model_bytes);
  print("opening_bytes", memory->opening_bytes);
  print("state_bytes", memory->state_bytes);
  print("arena_bytes", memory->arena_bytes);
  print("scratch_bytes", memory->scratch_bytes);
  print("program_bytes", memory->program_bytes);
  print("session_bytes", memory->session_bytes);
}

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./memory MODEL.tarn");
  tarn_source source = TARN_SOURCE_INIT;
  source.path = argv[1];
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.max_chunk = 16;
  tarn_memory memory = TARN_MEMORY_INIT;
  check(tarn_requirements(&source, NULL, &config, &memory, &error)); /* opens nothing, reads no weights */
  print_contract(&memory);

  tarn_model* model = NULL;
  check(tarn_model_open(&source, NULL, &model, &error));
  config.block_bytes = (size_t)memory.session_bytes;
  if (posix_memalign(&config.block, 64, config.block_bytes) != 0) config.block = NULL;
  need(config.block);

  tarn_session* session = NULL;
  config.block_bytes -= 1; /* one byte less than the contract: an error, not a crash */
  if (tarn_session_create(model, &config, &session, &error) != TARN_OK) printf("expected: %s\n", error.message);
  config.block_bytes += 1;
  check(tarn_session_create(model, &config, &session, &error));

  tarn_session_destroy(session);
  free(config.block); /* after the session, never before */
  tarn_model_close(model);
  return 0;
}
