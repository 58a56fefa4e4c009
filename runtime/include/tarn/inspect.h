/* Looking inside a model: its tensors, states and ops, and the time that each op takes, for tools. Conventions as in tarn.h. */
#ifndef TARN_INSPECT_H_
#define TARN_INSPECT_H_

#include "tarn/tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_MAX_DIMS 4

/* Zero each struct and set its struct_size to sizeof(it) before a call. */

typedef struct tarn_tensor_info {
  size_t struct_size;
  const char* name;  /* all strings here are borrowed from the model */
  const char* dtype; /* "f32", "f16", "i8", ... */
  uint32_t rank;
  uint32_t shape[TARN_MAX_DIMS];
  uint64_t data_bytes;
} tarn_tensor_info;

/* A declared state; its shape is that of one sequence or one source. */
typedef struct tarn_state_info {
  size_t struct_size;
  const char* name;
  const char* dtype;
  uint32_t rank;
  uint32_t shape[TARN_MAX_DIMS];
  uint64_t data_bytes; /* of one sequence or source, before alignment; with source_axis for each token of the longest source */
  const char* owner;   /* "sequence", or "source": written by "encode", read by all sequences of that source */
  int32_t source_axis; /* the dimension, 1 in `shape`, that is as long as the longest source; -1: none */
} tarn_state_info;

/* An op of the program, in the order in which they run. */
typedef struct tarn_op_info {
  size_t struct_size;
  const char* name;     /* "layers.0.attn" */
  const char* kind;     /* "linear_state" */
  char detail[192];     /* the attributes in words: "rfa: Gaussian features D 64, gate Forget, ..." */
  uint64_t state_bytes; /* sum over its states of tarn_state_info.data_bytes */
  /* For an op that remembers: the number of tokens after which a softmax KV cache of the same heads and of the dtype of its state
   * would be larger. 0: the op has no state or is such a cache. */
  uint64_t kv_break_even_tokens;
  /* Values that it reads and writes, with the columns that it reads: "qkvg[0:256], qkvg[256:512]" and "o". Cut where too long. */
  char inputs[160];
  char outputs[96];
  const char* program; /* "encode" or "decode"; ops of "encode" come first */
} tarn_op_info;

/* Each returns TARN_NOT_FOUND past the last index. Thread safety: any thread. */
TARN_API tarn_status tarn_model_tensor(const tarn_model* model, size_t index, tarn_tensor_info* info, tarn_error* error);
TARN_API tarn_status tarn_model_state(const tarn_model* model, size_t index, tarn_state_info* info, tarn_error* error);
TARN_API tarn_status tarn_model_op(const tarn_model* model, size_t index, tarn_op_info* info, tarn_error* error);

/* What an op of a session took while it was profiled. */
typedef struct tarn_op_time {
  size_t struct_size;
  const char* name; /* "layers.0.attn"; both strings are borrowed from the model */
  const char* kind; /* "linear_state" */
  uint64_t runs;    /* one per step, one per chunk of a prefill; an op that only serves logits runs once per prefill */
  uint64_t ns;      /* of all runs, by a steady clock, on the calling thread */
} tarn_op_time;

/* Profiling, off in a new session: on (not 0) zeroes all counts and starts, off (0) stops and keeps them. It costs two readings of
 * the clock per op, and a branch while it is off; the counts are part of the session's block.
 * Errors: TARN_INVALID_ARGUMENT.   Thread safety: as all calls on a session. */
TARN_API tarn_status tarn_session_profile(tarn_session* session, int on, tarn_error* error);

/* The counts of op `index`, in the order of tarn_model_op(). Zero `time` and set its struct_size first.
 * Errors: TARN_NOT_FOUND past the last index, TARN_INVALID_ARGUMENT.   Thread safety: as all calls on a session. */
TARN_API tarn_status tarn_session_op_time(const tarn_session* session, size_t index, tarn_op_time* time, tarn_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_INSPECT_H_ */
