/* The inside of a model, for tools: its tensors, states and ops, and the time that each op takes. Conventions as in tarn.h.
 * Initialise each struct with its macro before a call, or zero it and set its struct_size to sizeof(it). */
#ifndef TARN_INSPECT_H_
#define TARN_INSPECT_H_

#include "tarn/tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most dimensions of a tensor or a state. */
#define TARN_MAX_DIMS 4
/* The most tensors and states of an op that tarn_op_info names. */
#define TARN_MAX_OP_ARRAYS 32

/* ---- Tensors, states, ops --------------------------------------------------------------------------------------- */

/* A weight tensor of the file. */
typedef struct tarn_tensor_info {
  size_t struct_size;
  const char* name;              /* borrowed from the model */
  const char* dtype;             /* "f32", "f16", "i8", ...; borrowed from the model */
  uint32_t rank;                 /* the number of dimensions */
  uint32_t shape[TARN_MAX_DIMS]; /* the first `rank` of them count */
  uint64_t data_bytes;           /* in the file, quantization scales not counted */
} tarn_tensor_info;
#define TARN_TENSOR_INFO_INIT \
  { sizeof(tarn_tensor_info), NULL, NULL, 0, {0}, 0 }

/* A state that the model declares. The shape is for one sequence or one source. */
typedef struct tarn_state_info {
  size_t struct_size;
  const char* name;              /* borrowed from the model */
  const char* dtype;             /* borrowed from the model */
  uint32_t rank;                 /* the number of dimensions */
  uint32_t shape[TARN_MAX_DIMS]; /* the first `rank` of them count */
  /* Bytes of one sequence or source, before alignment; with a source_axis, bytes for each token of the longest source. */
  uint64_t data_bytes;
  const char* owner;   /* "sequence", or "source": written by "encode", read by all sequences of that source */
  int32_t source_axis; /* the dimension, 1 in `shape`, that is as long as the longest source; -1: none */
} tarn_state_info;
#define TARN_STATE_INFO_INIT \
  { sizeof(tarn_state_info), NULL, NULL, 0, {0}, 0, NULL, 0 }

/* An op of a program. Ops are in the order in which they run. */
typedef struct tarn_op_info {
  size_t struct_size;
  const char* name;     /* as "layers.0.attn"; borrowed from the model */
  const char* kind;     /* as "linear_state"; borrowed from the model */
  char detail[192];     /* the attributes in words, as "rfa: gaussian features 128, gate forget, ..." */
  uint64_t state_bytes; /* sum over its states of tarn_state_info.data_bytes */
  /* For an op with state: the number of tokens after which a softmax KV cache of the same heads, in the dtype of the state,
   * would be larger. 0: the op has no state, is such a cache, or is no attention. */
  uint64_t kv_break_even_tokens;
  char inputs[160];      /* values that it reads, with their columns, as "qkvg[0:256], qkvg[256:512]"; cut if too long */
  char outputs[96];      /* values that it writes, as "o"; cut if too long */
  const char* program;   /* "encode" or "decode"; ops of "encode" come first */
  uint32_t tensor_count; /* tensors that it reads, for tarn_model_tensor(); scales of tensors are not counted */
  uint32_t tensors[TARN_MAX_OP_ARRAYS]; /* the first of them */
  uint32_t state_count;                 /* states that it has, for tarn_model_state() */
  uint32_t states[TARN_MAX_OP_ARRAYS];  /* the first of them */
} tarn_op_info;
#define TARN_OP_INFO_INIT                                                         \
  {                                                                               \
    sizeof(tarn_op_info), NULL, NULL, {0}, 0, 0, {0}, {0}, NULL, 0, {0}, 0, { 0 } \
  }

/* Fills `info` with tensor `index`, from 0.
 * Errors: TARN_NOT_FOUND past the last index, TARN_INVALID_ARGUMENT.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_model_tensor(const tarn_model* model, size_t index, tarn_tensor_info* info, tarn_error* error);

/* Fills `info` with state `index`, from 0.
 * Errors: TARN_NOT_FOUND past the last index, TARN_INVALID_ARGUMENT.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_model_state(const tarn_model* model, size_t index, tarn_state_info* info, tarn_error* error);

/* Fills `info` with op `index`, from 0.
 * Errors: TARN_NOT_FOUND past the last index, TARN_INVALID_ARGUMENT.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_model_op(const tarn_model* model, size_t index, tarn_op_info* info, tarn_error* error);

/* ---- Reading snapshots ------------------------------------------------------------------------------------------ */

/* The information that a snapshot (tarn_session_save()) has without its model. Logits, samplers, grammars, beam searches and text
 * decoders are never part of one. */
typedef struct tarn_snapshot_info {
  size_t struct_size;
  uint32_t version;        /* of the format: 1, 2 if sequences have read different numbers of tokens, 3: delta, 4: compact */
  uint32_t sequences;      /* of the session: batch * beams */
  uint64_t snapshot_bytes; /* the size of the snapshot; bytes after it are not read */
  uint8_t fingerprint[32]; /* of its model, as in tarn_model_info */
  uint64_t tokens;         /* that each sequence has read since its reset; from version 2 on: the largest number of a sequence */
  uint32_t sources;        /* batch, of a model that decodes from sources; else 0 */
  uint32_t max_source;     /* of the session, where the size of a state depends on it; else 0 */
  uint64_t state_bytes;    /* of all states; tarn_snapshot_read() returns them */
  uint64_t stored_bytes;   /* what the snapshot holds of them: blocks of 64 bytes that are not all zero, or not as in the base;
                            * 20 bytes of a block that is rounded */
  uint8_t hash[16];        /* XXH3-128 of the snapshot, its last bytes */
  uint8_t base_hash[16];   /* of the snapshot that is the base of a delta snapshot; else zeros */
} tarn_snapshot_info;
#define TARN_SNAPSHOT_INFO_INIT                                         \
  {                                                                     \
    sizeof(tarn_snapshot_info), 0, 0, 0, {0}, 0, 0, 0, 0, 0, {0}, { 0 } \
  }

/* Fills `info` from the snapshot at the beginning of `size_bytes` bytes of any alignment. The bytes are untrusted: the call checks
 * their hash, and all fields that can be checked without the model. Allocates nothing.
 * Errors: TARN_BAD_FORMAT (not a snapshot, truncated, or inconsistent), TARN_UNSUPPORTED (another version of the format),
 * TARN_CHECKSUM (damaged), TARN_INVALID_ARGUMENT. All name the field, the value found and the value expected.
 * Thread safety: any thread. */
TARN_API tarn_status tarn_snapshot_get_info(const void* snapshot, uint64_t size_bytes, tarn_snapshot_info* info, tarn_error* error);

/* Writes the length of source `source`, from 0, to `*tokens`; 0: not encoded. Checks neither the hash nor the map of blocks.
 * Errors: TARN_NOT_FOUND past the last source; else as tarn_snapshot_get_info().
 * Thread safety: any thread. */
TARN_API tarn_status tarn_snapshot_source_tokens(const void* snapshot, uint64_t size_bytes, uint32_t source, uint32_t* tokens,
                                                 tarn_error* error);

/* Writes the number of tokens that sequence `sequence`, from 0, has read to `*tokens`. Checks neither the hash nor the map of
 * blocks.
 * Errors: TARN_NOT_FOUND past the last sequence; else as tarn_snapshot_get_info().
 * Thread safety: any thread. */
TARN_API tarn_status tarn_snapshot_sequence_tokens(const void* snapshot, uint64_t size_bytes, uint32_t sequence, uint64_t* tokens,
                                                   tarn_error* error);

/* Copies `count_bytes` bytes of the states, from `offset_bytes` on, to `states`. States are in the order of tarn_model_state().
 * Each begins at a multiple of 64, with zeros between them. A state is row-major and little-endian. Its shape is [sequences,
 * shape]. With owner "source" it is [sources, shape], and its source_axis is as long as max_source. Numbers that a compact
 * snapshot has rounded come back as float32. Checks everything but the hash, and reads the snapshot's map of blocks each time: one
 * bit for 64 bytes of states.
 * Errors: TARN_INVALID_ARGUMENT (more than state_bytes: names them; a delta snapshot; nothing has been
 * copied); as tarn_snapshot_get_info().
 * Thread safety: any thread. */
TARN_API tarn_status tarn_snapshot_read(const void* snapshot, uint64_t size_bytes, uint64_t offset_bytes, void* states,
                                        uint64_t count_bytes, tarn_error* error);

/* ---- Profiling -------------------------------------------------------------------------------------------------- */

/* The time that an op of a session took while it was profiled. */
typedef struct tarn_op_time {
  size_t struct_size;
  const char* name; /* as in tarn_op_info */
  const char* kind; /* as in tarn_op_info */
  uint64_t runs;    /* one per step, one per chunk of a prefill; an op that only serves logits runs once per prefill; an op with
                     * states several times in a step with drafts */
  uint64_t ns;      /* of all runs, by a steady clock, on the calling thread */
} tarn_op_time;
#define TARN_OP_TIME_INIT \
  { sizeof(tarn_op_time), NULL, NULL, 0, 0 }

/* Starts profiling and zeroes all counts (`on` not 0), or stops it and keeps them (0). Profiling is off in a new session. It costs
 * two readings of the clock per op, and one branch per op while it is off. The counts are part of the session's block.
 * Errors: TARN_INVALID_ARGUMENT.
 * Thread safety: as all calls on a session. */
TARN_API tarn_status tarn_session_profile(tarn_session* session, int on, tarn_error* error);

/* Fills `time` with the counts of op `index`, in the order of tarn_model_op().
 * Errors: TARN_NOT_FOUND past the last index, TARN_INVALID_ARGUMENT.
 * Thread safety: as all calls on a session. */
TARN_API tarn_status tarn_session_op_time(const tarn_session* session, size_t index, tarn_op_time* time, tarn_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_INSPECT_H_ */
