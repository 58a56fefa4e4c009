/* Text from a language model on a microcontroller: no operating system, no heap, no files. The model lies in flash, everything that
 * changes in two static blocks, and the program says what they need.
 */
#include <board.h>
#include <stdint.h>
#include <string.h>
#include <tarn/tarn.h>

#define PROMPT "ROMEO:\n"
#define TOKENS 200

/* The .tarn file as an array (model.S): read where it is, never copied. */
extern const unsigned char model_begin[], model_end[];

/* What this model and this configuration need: the library says how much where it is too little. */
#define KIB 1024
static _Alignas(64) unsigned char session_block[sizeof(void*) == 4 ? 52 * KIB : 64 * KIB];
static _Alignas(64) unsigned char model_block[sizeof(void*) == 4 ? 19 * KIB : 32 * KIB];

/* An allocator for what is made before the session runs. Memory that is given back last comes first, so that the drafts which the
 * library measures with need no memory of their own. */
static size_t model_used, model_most;

static void* take(void* context, size_t size_bytes, size_t alignment) {
  const size_t begin = (model_used + alignment - 1) / alignment * alignment;
  (void)context;
  if (begin > sizeof(model_block) || size_bytes > sizeof(model_block) - begin) return NULL;
  model_used = begin + size_bytes;
  if (model_used > model_most) model_most = model_used;
  return model_block + begin;
}

static void give_back(void* context, void* pointer, size_t size_bytes) {
  const size_t begin = (size_t)((unsigned char*)pointer - model_block);
  (void)context;
  if (begin + size_bytes == model_used) model_used = begin;
}

static void print_number(uint64_t number) {
  char text[24];
  char* digit = text + sizeof(text) - 1;
  *digit = '\0';
  do {
    *--digit = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  board_print(digit);
}

static void print_bytes(const char* what, uint64_t bytes) {
  board_print(what);
  print_number(bytes);
  board_print("\n");
}

/* Whatever fails, the library has put it into one line of words. */
static tarn_error error;
static void check(tarn_status status) {
  if (status == TARN_OK) return;
  board_print("bare_metal: ");
  board_print(error.message);
  board_print("\n");
  board_exit(1);
}

/* Prints the characters that `token` completes. */
static void print_token(const tarn_model* model, tarn_text_decoder* decoder, int32_t token) {
  static char piece[16];
  size_t piece_bytes = 0;
  check(tarn_text_decode(model, decoder, token, piece, sizeof(piece) - 1, &piece_bytes, &error));
  piece[piece_bytes] = '\0';
  board_print(piece);
}

int main(void) {
  static int32_t tokens[sizeof(PROMPT)];
  tarn_source source = TARN_SOURCE_INIT;
  tarn_model_config model_config = TARN_MODEL_CONFIG_INIT;
  tarn_session_config session_config = TARN_SESSION_CONFIG_INIT;
  tarn_sampler_config greedy = TARN_SAMPLER_CONFIG_INIT;
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_text_decoder decoder = {{0}, 0, 0};
  tarn_model* model = NULL;
  tarn_session* session = NULL;
  tarn_sampler* sampler = NULL;
  const float* logits = NULL; /* [vocab_size], the session's, until its next call */
  const tarn_allocator allocator = {take, give_back, NULL};
  size_t count = 0;

  source.buffer = model_begin;
  source.length_bytes = (uint64_t)(model_end - model_begin);
  model_config.allocator = allocator; /* weights are verified: flash wears. no_verify = 1 starts sooner */
  session_config.max_chunk = 4;       /* tokens that a prompt is read in: more are faster and need more memory */
  session_config.block = session_block;
  session_config.block_bytes = sizeof(session_block);

  check(tarn_requirements(&source, &model_config, &session_config, &memory, &error));
  print_bytes("model in flash: ", memory.mapped_bytes);
  print_bytes("session: ", memory.session_bytes);
  print_bytes("  state: ", memory.state_bytes);
  print_bytes("  arena: ", memory.arena_bytes);
  print_bytes("  scratch: ", memory.scratch_bytes);
  print_bytes("  program: ", memory.program_bytes);

  check(tarn_model_open(&source, &model_config, &model, &error));
  check(tarn_model_get_info(model, &info, &error));
  board_print("kernels: ");
  board_print(info.isa);
  board_print("\n");
  check(tarn_session_create(model, &session_config, &session, &error));
  greedy.temperature = 0;
  greedy.top_k = 0; /* nothing is drawn */
  greedy.top_p = 1;
  greedy.min_p = 0;
  greedy.repeat_penalty = 1.2f; /* of the last 64 bytes: a model this small repeats itself without */
  greedy.allocator = allocator;
  check(tarn_sampler_create(info.vocab_size, &greedy, &sampler, &error));
  print_bytes("model, sampler and copies: ", model_most);

  check(tarn_tokenize(model, PROMPT, strlen(PROMPT), tokens, sizeof(tokens) / sizeof(*tokens), &count, &error));
  check(tarn_session_prefill(session, tokens, count, &logits, &error));
  board_print("text: ");
  for (size_t i = 0; i < count; ++i) { /* penalties and the text go on from the prompt */
    tarn_sampler_accept(sampler, tokens[i]);
    print_token(model, &decoder, tokens[i]);
  }
  for (int i = 0; i < TOKENS; ++i) {
    int32_t token = 0;
    check(tarn_sampler_sample(sampler, logits, &token, &error));
    print_token(model, &decoder, token);
    check(tarn_session_step(session, &token, &logits, &error));
  }
  print_bytes("\nstack: ", board_stack_used());

  tarn_sampler_destroy(sampler);
  tarn_session_destroy(session);
  tarn_model_close(model);
  board_exit(0);
}
