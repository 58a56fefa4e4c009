/* The sampler and log probabilities from C: every field, what zero means, callers of other versions. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "tarn/sampler.h"

enum { kVocab = 8, kDraws = 200 };

static const float kLogits[kVocab] = {0, 1, 2, 3, 2.5f, 1.5f, 0.5f, -1};
static tarn_error error;

static tarn_sampler* Create(const tarn_sampler_config* config) {
  tarn_sampler* sampler = NULL;
  EXPECT_OK(tarn_sampler_create(kVocab, config, &sampler, &error));
  return sampler;
}

static int32_t Sample(tarn_sampler* sampler) {
  int32_t token = -1;
  EXPECT_OK(tarn_sampler_sample(sampler, kLogits, &token, &error));
  return token;
}

/* How often each token is drawn. */
static void Count(const tarn_sampler_config* config, int counts[kVocab]) {
  tarn_sampler* sampler = Create(config);
  memset(counts, 0, kVocab * sizeof(*counts));
  for (int i = 0; i < kDraws; ++i) ++counts[Sample(sampler)];
  tarn_sampler_destroy(sampler);
}

static int DrawTheSame(const tarn_sampler_config* a, const tarn_sampler_config* b) {
  int of_a[kVocab], of_b[kVocab];
  Count(a, of_a);
  Count(b, of_b);
  return memcmp(of_a, of_b, sizeof(of_a)) == 0;
}

static void ExpectRefused(const tarn_sampler_config* config, const char* words) {
  tarn_sampler* sampler = NULL;
  EXPECT(tarn_sampler_create(kVocab, config, &sampler, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, words) != NULL);
  EXPECT(sampler == NULL);
}

/* A caller who knows the fields up to the allocator gets what he got, whatever lies behind. */
static void TestOldCaller(void) {
  tarn_sampler_config now = TARN_SAMPLER_CONFIG_INIT, old = TARN_SAMPLER_CONFIG_INIT;
  now.repeat_penalty = old.repeat_penalty = 1.3f;
  memset((char*)&old + offsetof(tarn_sampler_config, reserved), 0xAB, sizeof(old) - offsetof(tarn_sampler_config, reserved));
  old.struct_size = offsetof(tarn_sampler_config, reserved);
  EXPECT(DrawTheSame(&now, &old));
  old = now; /* padding of the old struct, where it had any */
  old.reserved = 0xABABABAB;
  EXPECT(DrawTheSame(&now, &old));
}

static void TestZeroIsTheDefault(void) {
  tarn_sampler_config zero = TARN_SAMPLER_CONFIG_INIT, same = TARN_SAMPLER_CONFIG_INIT;
  zero.top_k = same.top_k = 0;
  zero.top_p = same.top_p = 1;
  zero.min_p = same.min_p = 0;
  zero.dry_multiplier = same.dry_multiplier = 1;
  same.dry_base = 1.75f;
  same.dry_allowed_length = 2;
  same.dry_last_n = 1024;
  zero.xtc_probability = same.xtc_probability = 0.5f;
  same.xtc_threshold = 0.1f;
  zero.dynatemp_range = same.dynatemp_range = 0.5f;
  same.dynatemp_exponent = 1;
  same.typical_p = 1;
  EXPECT(DrawTheSame(&zero, &same));
  same.xtc_threshold = 0.2f;
  EXPECT(!DrawTheSame(&zero, &same));
  zero.mirostat = 2;
  same = zero;
  same.mirostat_tau = 5;
  same.mirostat_eta = 0.1f;
  EXPECT(DrawTheSame(&zero, &same));
  same.mirostat_tau = 1;
  EXPECT(!DrawTheSame(&zero, &same));
}

/* Each of these has to change what is drawn. */
static void TestEveryFieldCounts(void) {
  static const int32_t kTokens[] = {3, 4};
  static const tarn_logit_bias kBiases[] = {{7, 5}};
  tarn_sampler_config plain = TARN_SAMPLER_CONFIG_INIT, other;
  plain.temperature = 1;
  plain.top_k = 0;
  plain.top_p = 1;
  plain.min_p = 0;
#define EXPECT_CHANGE(change) \
  other = plain;              \
  other.change;               \
  EXPECT(!DrawTheSame(&plain, &other))
  EXPECT_CHANGE(frequency_penalty = 0.2f);
  EXPECT_CHANGE(presence_penalty = 1);
  EXPECT_CHANGE(dry_multiplier = 3);
  EXPECT_CHANGE(top_n_sigma = 0.5f);
  EXPECT_CHANGE(typical_p = 0.3f);
  EXPECT_CHANGE(xtc_probability = 1);
  EXPECT_CHANGE(dynatemp_range = 0.9f);
  plain.mirostat_tau = 1; /* 5 bits are more than a token of 8 has */
  EXPECT_CHANGE(mirostat = 2);
  plain.dry_multiplier = 3;
  EXPECT_CHANGE(dry_base = 3);
  EXPECT_CHANGE(dry_allowed_length = 1);
  EXPECT_CHANGE(dry_last_n = 3);
  other = plain;
  other.dry_breakers = kTokens;
  other.dry_breaker_count = 2;
  EXPECT(!DrawTheSame(&plain, &other));
  other = plain;
  other.logit_bias = kBiases;
  other.logit_bias_count = 1;
  EXPECT(!DrawTheSame(&plain, &other));
  other.banned_tokens = kTokens;
  other.banned_token_count = 2;
  {
    int counts[kVocab];
    Count(&other, counts);
    EXPECT(counts[3] == 0 && counts[4] == 0 && counts[7] > 0);
  }
}

static void OnlySix(void* context, float* logits, size_t vocab_size) {
  ++*(int*)context;
  for (size_t i = 0; i < vocab_size; ++i) {
    if (i != 6) logits[i] = -INFINITY;
  }
}

static void TestCallback(void) {
  tarn_sampler_config config = TARN_SAMPLER_CONFIG_INIT;
  int calls = 0;
  config.edit_logits = OnlySix;
  config.edit_context = &calls;
  tarn_sampler* sampler = Create(&config);
  for (int i = 0; i < 10; ++i) EXPECT(Sample(sampler) == 6);
  EXPECT(calls == 10);
  tarn_sampler_destroy(sampler);
}

static void TestRefusals(void) {
  static const int32_t kOutside[] = {kVocab};
  static const tarn_logit_bias kBias[] = {{0, INFINITY}};
  tarn_sampler_config config = TARN_SAMPLER_CONFIG_INIT;
  config.mirostat = 1;
  ExpectRefused(&config, "mirostat is 1, must be 0 (off) or 2");
  config.mirostat = 0;
  config.banned_token_count = 1;
  ExpectRefused(&config, "banned_tokens is NULL");
  config.banned_tokens = kOutside;
  ExpectRefused(&config, "banned_tokens[0] is token 8, expected 0 to 7");
  config.banned_token_count = 0;
  config.dry_breaker_count = 1;
  ExpectRefused(&config, "dry_breakers is NULL");
  config.dry_breaker_count = 0;
  config.logit_bias_count = SIZE_MAX;
  ExpectRefused(&config, "logit_bias is NULL");
  config.logit_bias = kBias;
  ExpectRefused(&config, "must have at most 8");
  config.logit_bias_count = 1;
  ExpectRefused(&config, "the bias of token 0 is inf");
}

static void TestLogProbabilities(void) {
  tarn_log_probability best[kVocab + 2];
  double log_probability = 0;
  size_t count = 0;
  EXPECT_OK(tarn_log_probabilities(kLogits, kVocab, 5, &log_probability, best, kVocab + 2, &count, &error));
  EXPECT(count == kVocab && best[0].token == 3 && best[1].token == 4 && best[7].token == 7);
  for (size_t i = 0; i < count; ++i) {
    if (best[i].token == 5) EXPECT(best[i].log_probability == log_probability);
  }
  EXPECT(log_probability > -2.409494 && log_probability < -2.409492); /* 1.5 - log(e^0 + e^1 + ... + e^-1) */
  EXPECT_OK(tarn_log_probabilities(kLogits, kVocab, 5, &log_probability, NULL, 0, NULL, &error));
  EXPECT_OK(tarn_log_probabilities(kLogits, kVocab, -1, NULL, best, 1, &count, &error));
  EXPECT(count == 1);
  EXPECT(tarn_log_probabilities(kLogits, kVocab, kVocab, &log_probability, NULL, 0, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, "token is 8, must be in [0, 7]") != NULL);
  EXPECT(tarn_log_probabilities(NULL, kVocab, 0, &log_probability, NULL, 0, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_log_probabilities(kLogits, 0, 0, NULL, NULL, 0, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_log_probabilities(kLogits, kVocab, 0, NULL, NULL, 1, &count, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_log_probabilities(kLogits, kVocab, 0, NULL, best, 1, NULL, &error) == TARN_INVALID_ARGUMENT);
}

int main(void) {
  TestOldCaller();
  TestZeroIsTheDefault();
  TestEveryFieldCounts();
  TestCallback();
  TestRefusals();
  TestLogProbabilities();
  if (failures == 0) printf("ok\n");
  return failures != 0;
}
