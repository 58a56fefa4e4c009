/* Conversations: turns the messages of a system, a user and an assistant into the text that the model was trained on. Conventions
 * as in tarn.h.
 *
 * tarn_chat_format() writes only the text of the new turns: a session that has read the earlier turns needs nothing else. Tokenize
 * this text with tarn/tokenizer.h. Set `no_template` to 1, because the text already has its begin token, and set `plain_ranges` to
 * `contents`, so that "<|im_end|>" in a user's text ends no turn. */
#ifndef TARN_CHAT_H_
#define TARN_CHAT_H_

#include "tarn/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who speaks. */
typedef enum tarn_chat_role {
  TARN_CHAT_SYSTEM = 0,   /* instructions to the model before the conversation */
  TARN_CHAT_USER = 1,     /* a question */
  TARN_CHAT_ASSISTANT = 2 /* an answer */
} tarn_chat_role;

/* A turn of a conversation. */
typedef struct tarn_chat_message {
  uint32_t role;     /* who speaks: a tarn_chat_role */
  const char* text;  /* the content of the turn; UTF-8, not terminated */
  size_t text_bytes; /* the size of `text` */
} tarn_chat_message;

/* The stage of a conversation. Zero it to begin a conversation. A copy continues independently. */
typedef struct tarn_chat {
  uint32_t stage; /* what may follow: 0: everything; 1: after a system text; 2: after an answer or before one */
} tarn_chat;

/* The chat template of a model. Pointers are valid as long as the model. */
typedef struct tarn_chat_info {
  size_t struct_size;
  const char* name; /* such as "chatml"; "model": the template of the checkpoint */
  int takes_system; /* 0: a message of TARN_CHAT_SYSTEM is an error */
  /* Tokens that end an answer. They are not part of the answer, and a session need not read them: the text of the next turn begins
   * with the text that ends an answer. */
  const int32_t* end_tokens;
  size_t end_token_count; /* how many there are */
} tarn_chat_info;
#define TARN_CHAT_INFO_INIT \
  { sizeof(tarn_chat_info), NULL, 0, NULL, 0 }

/* Fills `*info` with the model's chat template. Set its struct_size first.
 * Errors: TARN_INVALID_ARGUMENT, TARN_NOT_FOUND (the model has none).
 * Thread safety: any thread. */
TARN_API tarn_status tarn_chat_get_info(const tarn_model* model, tarn_chat_info* info, tarn_error* error);

/* Writes the text of `count` new messages to `text` and its size to `*text_bytes`, without a terminating zero. After a message of
 * the user it also writes the text that begins the answer. The texts of several calls, one after the other, are the text of one
 * call with all messages. Between the calls, the model writes its answers; a program that continues a stored conversation passes
 * them as messages.
 *
 * A conversation begins with an optional system text, if the model takes one. Messages of user and assistant follow in turn. After
 * a call that ends with a message of the user, the model writes the answer.
 *
 * `contents` has room for `count` ranges, and gets the place of each content in the text; after an error they mean nothing.
 * NULL: they are not written.
 * Errors: TARN_NOT_FOUND (the model has no chat template), TARN_INVALID_ARGUMENT (also: a message that is not allowed at this
 * stage), TARN_BUFFER_TOO_SMALL (`*text_bytes` is set; a `capacity` of 0 only asks for the size). After an error `*chat` is
 * unchanged.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_chat_format(const tarn_model* model, tarn_chat* chat, const tarn_chat_message* messages, size_t count,
                                      char* text, size_t capacity, size_t* text_bytes, tarn_text_range* contents,
                                      tarn_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_CHAT_H_ */
