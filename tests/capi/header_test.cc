// The public headers are C++ too, and make sense on their own.
#include <gtest/gtest.h>

#include "tarn/chat.h"
#include "tarn/checkpoints.h"
#include "tarn/grammar.h"
#include "tarn/inspect.h"
#include "tarn/speculation.h"
#include "tarn/tarn.h"
#include "tarn/text_stream.h"
#include "tarn/tokenizer.h"

TEST(Header, InitialisersSetTheSize) {
  const tarn_source source = TARN_SOURCE_INIT;
  const tarn_model_config model = TARN_MODEL_CONFIG_INIT;
  const tarn_session_config session = TARN_SESSION_CONFIG_INIT;
  const tarn_memory memory = TARN_MEMORY_INIT;
  const tarn_model_info info = TARN_MODEL_INFO_INIT;
  const tarn_sampler_config sampler = TARN_SAMPLER_CONFIG_INIT;
  const tarn_beam_config beam = TARN_BEAM_CONFIG_INIT;
  const tarn_tokenizer_config tokenizer = TARN_TOKENIZER_CONFIG_INIT;
  const tarn_text_stream_config text_stream = TARN_TEXT_STREAM_CONFIG_INIT;
  const tarn_grammar_config grammar = TARN_GRAMMAR_CONFIG_INIT;
  const tarn_generation generation = TARN_GENERATION_INIT;
  const tarn_checkpoints_config checkpoints = TARN_CHECKPOINTS_CONFIG_INIT;
  const tarn_checkpoints_memory checkpoints_memory = TARN_CHECKPOINTS_MEMORY_INIT;
  const tarn_speculation_config speculation = TARN_SPECULATION_CONFIG_INIT;
  const tarn_speculation_stats speculation_stats = TARN_SPECULATION_STATS_INIT;
  EXPECT_EQ(speculation.struct_size, sizeof(speculation));
  EXPECT_EQ(speculation_stats.struct_size, sizeof(speculation_stats));
  EXPECT_EQ(generation.struct_size, sizeof(generation));
  EXPECT_EQ(checkpoints.struct_size, sizeof(checkpoints));
  EXPECT_EQ(checkpoints_memory.struct_size, sizeof(checkpoints_memory));
  EXPECT_EQ(source.struct_size, sizeof(source));
  EXPECT_EQ(grammar.struct_size, sizeof(grammar));
  EXPECT_EQ(model.struct_size, sizeof(model));
  EXPECT_EQ(session.struct_size, sizeof(session));
  EXPECT_EQ(memory.struct_size, sizeof(memory));
  EXPECT_EQ(info.struct_size, sizeof(info));
  EXPECT_EQ(sampler.struct_size, sizeof(sampler));
  EXPECT_EQ(beam.struct_size, sizeof(beam));
  EXPECT_EQ(tokenizer.struct_size, sizeof(tokenizer));
  EXPECT_EQ(text_stream.struct_size, sizeof(text_stream));
}
