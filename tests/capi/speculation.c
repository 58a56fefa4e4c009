/* Speculation from C99, `speculation [PROMPTS]`: arguments that are missing, structs of other sizes, memory of the caller's, and
 * the text of single steps with a grammar. */
#include "tarn/speculation.h"

#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "tarn/grammar.h"

enum { kDrafts = 7, kText = 300 };

static tarn_error error;
static tarn_model* model;
static tarn_session* session;
static tarn_sampler* sampler;

static void OpenSession(uint32_t rows) {
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.max_logits_rows = rows;
  EXPECT_OK(tarn_session_create(model, &config, &session, &error));
}

static void TestMemory(void) {
  tarn_speculation_config config = TARN_SPECULATION_CONFIG_INIT;
  tarn_speculation* speculation = NULL;
  uint64_t size = 0;
  unsigned char *memory, *block;
  EXPECT_OK(tarn_speculation_requirements(session, sampler, &config, &size, &error));
  EXPECT(size > 36 * 8192);
  memory = malloc((size_t)size + 64);
  block = memory + (64 - (size_t)memory % 64);
  config.block = block;
  config.block_bytes = (size_t)size - 1;
  EXPECT(tarn_speculation_create(session, sampler, &config, &speculation, &error) == TARN_BUFFER_TOO_SMALL);
  EXPECT(speculation == NULL);
  config.block_bytes = (size_t)size;
  config.block = block + 8;
  EXPECT(tarn_speculation_create(session, sampler, &config, &speculation, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "block lies 8 bytes past a multiple of 64, a multiple expected") == 0);
  config.block = NULL;
  EXPECT(tarn_speculation_create(session, sampler, &config, &speculation, &error) == TARN_INVALID_ARGUMENT);
  config.block = block;
  EXPECT_OK(tarn_speculation_create(session, sampler, &config, &speculation, &error));
  tarn_speculation_destroy(speculation);
  memset(block, 1, (size_t)size); /* it is ours again */
  free(memory);
}

static void TestNothing(void) {
  tarn_speculation_stats stats = TARN_SPECULATION_STATS_INIT;
  tarn_speculation* speculation = NULL;
  int32_t tokens[4];
  size_t count;
  uint64_t size;
  EXPECT(tarn_speculation_requirements(NULL, sampler, NULL, &size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_requirements(session, NULL, NULL, &size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_requirements(session, sampler, NULL, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_create(NULL, sampler, NULL, &speculation, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_create(session, sampler, NULL, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_read(NULL, tokens, 1, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_step(NULL, 1, tokens, 4, &count, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_get_stats(NULL, &stats, &error) == TARN_INVALID_ARGUMENT);
  tarn_speculation_reset(NULL);
  tarn_speculation_destroy(NULL);
  EXPECT_OK(tarn_speculation_create(session, sampler, NULL, &speculation, &error));
  EXPECT(tarn_speculation_read(speculation, NULL, 1, &error) == TARN_INVALID_ARGUMENT);
  EXPECT_OK(tarn_speculation_read(speculation, NULL, 0, &error));
  EXPECT(tarn_speculation_step(speculation, 1, NULL, 4, &count, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_step(speculation, 1, tokens, 4, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_step(speculation, 1, tokens, 0, &count, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_speculation_step(speculation, 256, tokens, 4, &count, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_session_tokens(session) == 0);
  EXPECT(tarn_speculation_get_stats(speculation, NULL, &error) == TARN_INVALID_ARGUMENT);
  stats.struct_size = 1;
  EXPECT(tarn_speculation_get_stats(speculation, &stats, &error) == TARN_INVALID_ARGUMENT);
  tarn_speculation_destroy(speculation);
}

/* What is no token is refused, and never a draft: later calls are as if it had not been. */
static void TestWrongTokens(void) {
  tarn_speculation_config config = TARN_SPECULATION_CONFIG_INIT;
  tarn_speculation* speculation = NULL;
  const int32_t text[] = {'x', 'y', 'z', 'w'}, wrong[] = {'x', 300}, below[] = {'w', -1};
  int32_t tokens[4];
  size_t count;
  config.row_cost = 0.01f;
  EXPECT_OK(tarn_speculation_create(session, sampler, &config, &speculation, &error));
  EXPECT_OK(tarn_speculation_read(speculation, text, 4, &error));
  EXPECT(tarn_speculation_step(speculation, 300, tokens, 4, &count, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "token 0 is 300, 0 to 255 expected") == 0);
  EXPECT(tarn_speculation_read(speculation, wrong, 2, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "token 1 is 300, 0 to 255 expected") == 0);
  EXPECT(tarn_speculation_read(speculation, below, 2, &error) == TARN_INVALID_ARGUMENT);
  EXPECT_OK(tarn_speculation_read(speculation, text, 4, &error));
  EXPECT_OK(tarn_speculation_step(speculation, 'x', tokens, 4, &count, &error));
  EXPECT_OK(tarn_speculation_step(speculation, tokens[count - 1], tokens, 4, &count, &error));
  tarn_speculation_destroy(speculation);
  tarn_session_reset(session);
}

static const char kRules[] = "root ::= (\"the \" (\"cat\" | \"dog\") \" sat, \")* \"end\"";

/* A text under the grammar; `drafts` 0: in single steps. */
static size_t Write(uint32_t drafts, int32_t* text, uint64_t* accepted) {
  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT;
  tarn_speculation_config config = TARN_SPECULATION_CONFIG_INIT;
  tarn_speculation_stats stats = TARN_SPECULATION_STATS_INIT;
  tarn_speculation* speculation = NULL;
  tarn_grammar* grammar = NULL;
  const int32_t prompt[] = {'H', 'o', ':', ' '};
  const float* logits;
  size_t length = 1, count;
  EXPECT_OK(tarn_grammar_create(model, kRules, strlen(kRules), NULL, &grammar, &error));
  chain.grammar = grammar;
  chain.seed = 3;
  EXPECT_OK(tarn_sampler_create(256, &chain, &sampler, &error));
  OpenSession(kDrafts + 1);
  EXPECT_OK(tarn_session_prefill(session, prompt, 4, &logits, &error));
  EXPECT_OK(tarn_sampler_sample(sampler, logits, text, &error));
  config.row_cost = 0.05f;
  EXPECT_OK(tarn_speculation_create(session, sampler, &config, &speculation, &error));
  while (length < kText && tarn_grammar_progress_of(grammar) != TARN_GRAMMAR_COMPLETE) {
    if (drafts > 0) {
      EXPECT_OK(tarn_speculation_step(speculation, text[length - 1], &text[length], 1, &count, &error));
      length += count;
      if (length + kDrafts + 1 > kText || tarn_grammar_progress_of(grammar) == TARN_GRAMMAR_COMPLETE) continue;
      EXPECT_OK(tarn_speculation_step(speculation, text[length - 1], &text[length], kDrafts + 1, &count, &error));
      length += count;
    } else {
      EXPECT_OK(tarn_session_step(session, &text[length - 1], &logits, &error));
      EXPECT_OK(tarn_sampler_sample(sampler, logits, &text[length++], &error));
    }
  }
  EXPECT_OK(tarn_speculation_get_stats(speculation, &stats, &error));
  *accepted = stats.accepted;
  tarn_speculation_destroy(speculation);
  tarn_session_destroy(session);
  tarn_sampler_destroy(sampler);
  tarn_grammar_destroy(grammar);
  return length;
}

static void TestGrammar(void) {
  static int32_t plain[kText + kDrafts], text[kText + kDrafts];
  uint64_t accepted = 0;
  const size_t wanted = Write(0, plain, &accepted);
  const size_t found = Write(kDrafts, text, &accepted);
  const size_t same = found < wanted ? found : wanted;
  EXPECT(found == wanted);
  EXPECT(memcmp(text, plain, same * sizeof(text[0])) == 0);
  EXPECT(accepted > 0 || wanted < 40);
}

/* A greedy text behind a piece of README.md. */
static void Continue(const int32_t* prompt, size_t count, int speculate, int32_t* text, uint64_t* accepted) {
  enum { kTokens = 60 };
  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT;
  tarn_speculation_config config = TARN_SPECULATION_CONFIG_INIT;
  tarn_speculation_stats stats = TARN_SPECULATION_STATS_INIT;
  tarn_speculation* speculation = NULL;
  const float* logits;
  size_t length = 1, given;
  chain.temperature = 0;
  config.row_cost = 0.05f;
  EXPECT_OK(tarn_sampler_create(256, &chain, &sampler, &error));
  OpenSession(kDrafts + 1);
  EXPECT_OK(tarn_speculation_create(session, sampler, &config, &speculation, &error));
  EXPECT_OK(tarn_session_prefill(session, prompt, count, &logits, &error));
  EXPECT_OK(tarn_speculation_read(speculation, prompt, count, &error));
  EXPECT_OK(tarn_sampler_sample(sampler, logits, text, &error));
  while (length < kTokens) {
    if (speculate) {
      const size_t left = kTokens - length;
      EXPECT_OK(tarn_speculation_step(speculation, text[length - 1], &text[length], left < kDrafts + 1 ? left : kDrafts + 1, &given,
                                      &error));
      length += given;
    } else {
      EXPECT_OK(tarn_session_step(session, &text[length - 1], &logits, &error));
      EXPECT_OK(tarn_sampler_sample(sampler, logits, &text[length++], &error));
    }
  }
  EXPECT_OK(tarn_speculation_get_stats(speculation, &stats, &error));
  *accepted += stats.accepted;
  tarn_speculation_destroy(speculation);
  tarn_session_destroy(session);
  tarn_sampler_destroy(sampler);
}

/* Few by default, since emulated cores take minutes for many; speculation_full.py has many. */
static void TestPrompts(size_t prompts) {
  enum { kMostPrompts = 50, kPrompt = 70 };
  static char page[kMostPrompts * kPrompt];
  uint64_t accepted = 0;
  FILE* file = fopen("README.md", "rb");
  EXPECT(file != NULL && fread(page, 1, sizeof(page), file) == sizeof(page));
  if (file != NULL) fclose(file);
  for (size_t i = 0; i < prompts && i < kMostPrompts; ++i) {
    int32_t prompt[kPrompt], plain[64] = {0}, text[64] = {0};
    for (size_t j = 0; j < kPrompt; ++j) prompt[j] = (unsigned char)page[i * kPrompt + j];
    Continue(prompt, kPrompt, 0, plain, &accepted);
    Continue(prompt, kPrompt, 1, text, &accepted);
    EXPECT(memcmp(text, plain, sizeof(text)) == 0);
  }
  EXPECT(accepted > 2 * prompts);
}

static void OpenModel(const char* path) {
  tarn_source source = TARN_SOURCE_INIT;
  source.path = path;
  EXPECT_OK(tarn_model_open(&source, NULL, &model, &error));
}

int main(int argc, char** argv) {
  const size_t prompts = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 2;
  OpenModel("examples/models/shakespeare-abc-mlp-int8.tarn");
  TestPrompts(prompts);
  tarn_model_close(model);
  OpenModel("examples/models/shakespeare-rfa-gate-int8.tarn");
  TestPrompts(prompts);
  EXPECT_OK(tarn_sampler_create(256, NULL, &sampler, &error));
  OpenSession(kDrafts + 1);
  TestMemory();
  TestNothing();
  TestWrongTokens();
  tarn_session_destroy(session);
  tarn_sampler_destroy(sampler);
  TestGrammar();
  tarn_model_close(model);
  return failures != 0;
}
