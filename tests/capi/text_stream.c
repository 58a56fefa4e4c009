/* Streams of text from C: stop strings over tokens, characters over tokens, buffers and callbacks, memory, misuse. The tokens of
 * this model are bytes. */
#include "tarn/text_stream.h"

#include <stdlib.h>
#include <string.h>

#include "expect.h"

static const char* const kModel = "examples/models/shakespeare-rfa-gate-int8.tarn";

static tarn_error error;

static tarn_model* Open(const char* path) {
  tarn_model* model = NULL;
  tarn_source source = TARN_SOURCE_INIT;
  source.path = path;
  EXPECT_OK(tarn_model_open(&source, NULL, &model, &error));
  return model;
}

enum { kRoom = 1000 };

/* What a stream gave out. */
typedef struct Text {
  char bytes[kRoom];
  size_t size;
} Text;

static void Append(void* context, const char* text, size_t text_bytes) {
  Text* all = context;
  EXPECT(text_bytes > 0 && all->size + text_bytes < kRoom);
  memcpy(all->bytes + all->size, text, text_bytes);
  all->size += text_bytes;
  all->bytes[all->size] = 0;
}

typedef tarn_status (*Call)(tarn_text_stream*, int32_t, char*, size_t, size_t*, tarn_error*);

/* Gives every byte of `text` to `call`, with a buffer of just the room that is asked for. */
static void Give(tarn_text_stream* stream, Call call, const char* text, Text* all) {
  char* buffer = malloc(tarn_text_stream_max_bytes(stream));
  for (; *text != 0; ++text) {
    size_t size = kRoom;
    EXPECT_OK(call(stream, (unsigned char)*text, buffer, tarn_text_stream_max_bytes(stream), &size, &error));
    EXPECT(size <= tarn_text_stream_max_bytes(stream));
    if (size > 0) Append(all, buffer, size);
  }
  free(buffer);
}

static void Finish(tarn_text_stream* stream, Text* all) {
  char buffer[kRoom];
  size_t size = kRoom;
  EXPECT_OK(tarn_text_stream_finish(stream, buffer, sizeof(buffer), &size, &error));
  if (size > 0) Append(all, buffer, size);
}

static int Is(const Text* all, const char* text) { return strlen(text) == all->size && memcmp(all->bytes, text, all->size) == 0; }

static tarn_text_stream_config Config(const tarn_stop_string* strings, size_t count) {
  tarn_text_stream_config config = TARN_TEXT_STREAM_CONFIG_INIT;
  config.stop_strings = strings;
  config.stop_string_count = count;
  return config;
}

static tarn_text_stream* Create(const tarn_model* model, const tarn_text_stream_config* config) {
  tarn_text_stream* stream = NULL;
  EXPECT_OK(tarn_text_stream_create(model, config, &stream, &error));
  return stream;
}

static void TestStops(const tarn_model* model) {
  static const tarn_stop_string kStops[] = {{"\n\n", 2}, {"END", 3}};
  tarn_text_stream_config config = Config(kStops, 2);
  tarn_text_stream* stream;
  int keep;
  for (keep = 0; keep < 2; ++keep) {
    Text all = {"", 0};
    config.keep_stop_string = keep;
    stream = Create(model, &config);
    Give(stream, tarn_text_stream_prompt, "the END\n", &all); /* no text of the model */
    EXPECT(Is(&all, "the END\n"));
    Give(stream, tarn_text_stream_feed, "\nE", &all);
    EXPECT(Is(&all, "the END\n\n") && tarn_text_stream_stop(stream) == -1); /* one line break is none */
    Give(stream, tarn_text_stream_feed, "Nd EN", &all);
    EXPECT(Is(&all, "the END\n\nENd "));
    Give(stream, tarn_text_stream_feed, "D more", &all);
    EXPECT(Is(&all, keep ? "the END\n\nENd END" : "the END\n\nENd "));
    Give(stream, tarn_text_stream_prompt, "more", &all);
    Finish(stream, &all);
    EXPECT(Is(&all, keep ? "the END\n\nENd END" : "the END\n\nENd "));
    EXPECT(tarn_text_stream_stop(stream) == 1);
    tarn_text_stream_reset(stream);
    EXPECT(tarn_text_stream_stop(stream) == -1);
    all.size = 0;
    Give(stream, tarn_text_stream_feed, "E", &all);
    Give(stream, tarn_text_stream_prompt, "ND", &all); /* what waits comes out before it */
    EXPECT(Is(&all, "END"));
    Give(stream, tarn_text_stream_feed, "\nEN", &all);
    EXPECT(Is(&all, "END\n"));
    Finish(stream, &all);
    EXPECT(Is(&all, "END\nEN") && tarn_text_stream_stop(stream) == -1);
    Give(stream, tarn_text_stream_feed, "more", &all);
    EXPECT(Is(&all, "END\nEN"));
    tarn_text_stream_destroy(stream);
  }
}

/* What comes out is whole characters, and stop strings are found among them. */
static void TestCharacters(const tarn_model* model) {
  static const tarn_stop_string kStops[] = {{"\xF0\x9F\x98\x81", 4}, {"\xEF\xBF\xBD!", 4}};
  const tarn_text_stream_config config = Config(kStops, 2);
  tarn_text_stream* stream = Create(model, &config);
  Text all = {"", 0};
  Give(stream, tarn_text_stream_feed, "\xF0\x9F\x98", &all);
  EXPECT(Is(&all, ""));
  Give(stream, tarn_text_stream_feed, "\x80", &all); /* three bytes are those of the stop string */
  EXPECT(Is(&all, "\xF0\x9F\x98\x80"));
  Give(stream, tarn_text_stream_feed, "\xFF", &all); /* U+FFFD may become the other one */
  EXPECT(Is(&all, "\xF0\x9F\x98\x80"));
  Give(stream, tarn_text_stream_feed, "?\xC3", &all);
  EXPECT(Is(&all, "\xF0\x9F\x98\x80\xEF\xBF\xBD?"));
  Finish(stream, &all);
  EXPECT(Is(&all, "\xF0\x9F\x98\x80\xEF\xBF\xBD?\xEF\xBF\xBD"));
  tarn_text_stream_reset(stream); /* the decoder, too */
  all.size = 0;
  Give(stream, tarn_text_stream_feed, "\x80!", &all);
  EXPECT(Is(&all, "") && tarn_text_stream_stop(stream) == 1);
  tarn_text_stream_destroy(stream);
}

static void TestCallback(const tarn_model* model) {
  static const tarn_stop_string kStop = {"stop", 4};
  tarn_text_stream_config config = Config(&kStop, 1);
  Text all = {"", 0};
  const char* text = "no stop";
  tarn_text_stream* stream;
  config.write = Append;
  config.write_context = &all;
  stream = Create(model, &config);
  EXPECT_OK(tarn_text_stream_prompt(stream, '>', NULL, 0, NULL, &error));
  for (; *text != 0; ++text) EXPECT_OK(tarn_text_stream_feed(stream, *text, NULL, 0, NULL, &error));
  EXPECT_OK(tarn_text_stream_finish(stream, NULL, 0, NULL, &error));
  EXPECT(Is(&all, ">no ") && tarn_text_stream_stop(stream) == 0);
  tarn_text_stream_destroy(stream);
}

/* A block of just the size that is asked for, and of a byte less. */
static void TestBlock(const tarn_model* model) {
  static const tarn_stop_string kStops[] = {{"a long stop string", 18}, {"b", 1}};
  tarn_text_stream_config config = Config(kStops, 2);
  tarn_text_stream* stream = NULL;
  uint64_t size = 0;
  Text all = {"", 0};
  char* memory;
  EXPECT_OK(tarn_text_stream_requirements(model, &config, &size, &error));
  memory = malloc((size_t)size + 64);
  config.block = memory + (64 - (uintptr_t)memory % 64) % 64;
  config.block_bytes = (size_t)size - 1;
  EXPECT(tarn_text_stream_create(model, &config, &stream, &error) == TARN_BUFFER_TOO_SMALL && stream == NULL);
  config.block_bytes = (size_t)size;
  stream = Create(model, &config);
  Give(stream, tarn_text_stream_feed, "a long stop strinb", &all);
  EXPECT(Is(&all, "a long stop strin"));
  tarn_text_stream_destroy(stream);
  memset(config.block, 1, (size_t)size); /* it is ours again */
  config.block = (char*)config.block + 1;
  EXPECT(tarn_text_stream_create(model, &config, &stream, &error) == TARN_INVALID_ARGUMENT);
  config.block = NULL;
  EXPECT(tarn_text_stream_create(model, &config, &stream, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strstr(error.message, "block is NULL, block_bytes is ") != NULL);
  free(memory);
}

static void TestMisuse(const tarn_model* model) {
  static const tarn_stop_string kBad = {"\xFF", 1}, kGood = {"good", 4};
  tarn_text_stream_config config = Config(&kBad, 1);
  tarn_text_stream* stream = NULL;
  char text[kRoom];
  size_t size = 77;
  EXPECT(tarn_text_stream_create(model, &config, &stream, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(strcmp(error.message, "stop string 0 is not UTF-8, which the text always is") == 0);
  config.stop_strings = NULL;
  EXPECT(tarn_text_stream_create(model, &config, &stream, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_text_stream_create(NULL, NULL, &stream, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_text_stream_create(model, NULL, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(stream == NULL);

  config = Config(&kGood, 1);
  stream = Create(model, &config);
  EXPECT(tarn_text_stream_feed(NULL, 'a', text, kRoom, &size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_text_stream_feed(stream, 'a', NULL, kRoom, &size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_text_stream_feed(stream, 'a', text, kRoom, NULL, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(tarn_text_stream_feed(stream, 'a', text, tarn_text_stream_max_bytes(stream) - 1, &size, &error) == TARN_BUFFER_TOO_SMALL);
  EXPECT(tarn_text_stream_feed(stream, 256, text, kRoom, &size, &error) == TARN_INVALID_ARGUMENT);
  EXPECT(size == 77);
  EXPECT(tarn_text_stream_max_bytes(NULL) == 0 && tarn_text_stream_stop(NULL) == -1);
  tarn_text_stream_reset(NULL);
  tarn_text_stream_destroy(NULL);
  tarn_text_stream_destroy(stream);
}

int main(void) {
  tarn_model* model = Open(kModel);
  TestStops(model);
  TestCharacters(model);
  TestCallback(model);
  TestBlock(model);
  TestMisuse(model);
  tarn_model_close(model);
  return failures != 0;
}
