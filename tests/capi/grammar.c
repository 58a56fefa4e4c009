/* Grammars from C: a text of bytes that follows rules, errors, NULLs. */
#include "tarn/grammar.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static tarn_error error;

static tarn_model* Open(void) {
  char path[1024];
  const char* folder = getenv("TARN_SOURCE");
  tarn_source source = TARN_SOURCE_INIT;
  tarn_model* model = NULL;
  snprintf(path, sizeof(path), "%s/examples/models/shakespeare-rfa-gate-int8.tarn", folder == NULL ? "." : folder);
  source.path = path;
  EXPECT_OK(tarn_model_open(&source, NULL, &model, &error));
  return model;
}

static tarn_status Create(const tarn_model* model, const char* rules, const tarn_grammar_config* config, tarn_grammar** grammar) {
  return tarn_grammar_create(model, rules, strlen(rules), config, grammar, &error);
}

static void SampleAText(const tarn_model* model) {
  tarn_grammar* grammar = NULL;
  tarn_sampler* sampler = NULL;
  tarn_sampler_config config = TARN_SAMPLER_CONFIG_INIT;
  float logits[256] = {0};
  int32_t token = -1;
  EXPECT_OK(Create(model, "root ::= \"yes\" | \"no\"", NULL, &grammar));
  EXPECT(tarn_grammar_size_bytes(grammar) > 0);
  config.grammar = grammar;
  config.temperature = 0;
  EXPECT(tarn_sampler_create(300, &config, &sampler, &error) == TARN_INVALID_ARGUMENT);
  EXPECT_OK(tarn_sampler_create(256, &config, &sampler, &error));
  logits['n'] = 1;
  logits['x'] = 9;
  EXPECT(tarn_grammar_progress_of(grammar) == TARN_GRAMMAR_OPEN);
  EXPECT_OK(tarn_sampler_sample(sampler, logits, &token, &error));
  EXPECT(token == 'n');
  EXPECT_OK(tarn_sampler_sample(sampler, logits, &token, &error));
  EXPECT(token == 'o');
  EXPECT(tarn_grammar_progress_of(grammar) == TARN_GRAMMAR_COMPLETE);
  EXPECT(tarn_sampler_sample(sampler, logits, &token, &error) == TARN_INVALID_ARGUMENT); /* no end token */
  tarn_grammar_reset(grammar);
  EXPECT_OK(tarn_grammar_mask(grammar, logits, &error));
  EXPECT(logits['n'] == 1 && logits['y'] == 0 && isinf(logits['x']) && isinf(logits['o']));
  EXPECT_OK(tarn_grammar_accept(grammar, 'y', &error));
  EXPECT(tarn_grammar_accept(grammar, 'n', &error) == TARN_INVALID_ARGUMENT);
  tarn_sampler_destroy(sampler);
  tarn_grammar_destroy(grammar);
}

static void RefuseWithWords(const tarn_model* model) {
  tarn_grammar* grammar = NULL;
  tarn_grammar_config config = TARN_GRAMMAR_CONFIG_INIT;
  EXPECT(Create(model, "root ::= x", NULL, &grammar) == TARN_BAD_FORMAT);
  EXPECT(strcmp(error.message, "line 1, column 10: rule 'x' is not defined") == 0);
  config.max_depth = 1;
  EXPECT_OK(Create(model, "root ::= \"(\" root \")\" | \"x\"", &config, &grammar));
  EXPECT_OK(tarn_grammar_accept(grammar, '(', &error));
  EXPECT(tarn_grammar_accept(grammar, '(', &error) == TARN_CONTEXT_FULL);
  EXPECT(strstr(error.message, "max_depth 1") != NULL);
  tarn_grammar_destroy(grammar);
  config.max_depth = 1u << 20;
  EXPECT(Create(model, "root ::= \"x\"", &config, &grammar) == TARN_INVALID_ARGUMENT);
  config = (tarn_grammar_config)TARN_GRAMMAR_CONFIG_INIT;
  config.max_work = 100;
  EXPECT(Create(model, "root ::= [ab]{1,100}", &config, &grammar) == TARN_UNSUPPORTED);
  EXPECT(strstr(error.message, "more than max_work 100 steps") != NULL);
  config.struct_size = offsetof(tarn_grammar_config, max_work); /* a program of before */
  EXPECT_OK(Create(model, "root ::= [ab]{1,100}", &config, &grammar));
  tarn_grammar_destroy(grammar);
  config.struct_size = 3;
  EXPECT(Create(model, "root ::= \"x\"", &config, &grammar) == TARN_INVALID_ARGUMENT);
}

static void TakeNull(const tarn_model* model) {
  tarn_grammar* grammar = NULL;
  float logits[256] = {0};
  EXPECT(tarn_grammar_create(NULL, "", 0, NULL, &grammar, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_grammar_create(model, NULL, 1, NULL, &grammar, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_grammar_create(model, "", 0, NULL, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_grammar_mask(NULL, logits, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_grammar_accept(NULL, 0, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_grammar_progress_of(NULL) == TARN_GRAMMAR_COMPLETE);
  EXPECT(tarn_grammar_size_bytes(NULL) == 0);
  tarn_grammar_reset(NULL);
  tarn_grammar_destroy(NULL);
}

int main(void) {
  tarn_model* model = Open();
  if (model == NULL) return 1;
  SampleAText(model);
  RefuseWithWords(model);
  TakeNull(model);
  tarn_model_close(model);
  return failures != 0;
}
