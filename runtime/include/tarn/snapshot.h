/* tarn/snapshot.h: the state of a session as bytes, and forks. tarn/tarn.h includes it, and its conventions hold here.
 *
 * A snapshot is everything that a session carries from call to call, as bytes to keep in memory or in a file: states, positions,
 * encoded sources. A session that restores it continues from there, bit for bit with the same kernels. Use snapshots to undo, to
 * fork, and to start after a prompt that was read before.
 *
 * A snapshot belongs to its model, identified by the fingerprint, and to the shape of its session: `batch` and `beams` (without
 * sources their product), and with softmax cross attention `max_source`; the other limits may differ. Logits, samplers, beam
 * searches and text decoders are not part of it. In place of the logits, store the next token, or feed the last token of a prompt
 * after the restore. Blocks of 64 zero bytes are left out, so that the size for a bounded cache grows with its use. The bytes mean
 * the same on every machine. The version of the format is 1, 2 if the sequences have read different numbers of tokens, 3 for a
 * delta snapshot, or 4 for a compact one; the library refuses a version that it does not know.
 *
 * A delta snapshot has only the blocks that differ from another snapshot, its base: of a cache, the rows of the tokens since then.
 * To restore it, the program needs both, so it keeps the base as it is. A base is a snapshot of the same model and shape, of this
 * session or of another one, and no delta itself.
 *
 * A compact snapshot has float32 matrices of states rounded to int8, 16 numbers with one scale: 20 bytes in place of 64. A
 * session that restores it continues with slightly different logits. Sums that divide outputs, maxima, f16 and int8 states are not
 * rounded. Errors add up if a session is saved and restored again and again. */
#ifndef TARN_SNAPSHOT_H_
#define TARN_SNAPSHOT_H_

#include <stdint.h>

#include "tarn/tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Snapshots -------------------------------------------------------------------------------------------------- */

/* Bytes of a snapshot of the session as it is now: at most tarn_memory.state_bytes * 513 / 512 + 64. Reads all of the
 * state. 0 for NULL.
 * Errors: none. */
TARN_API uint64_t tarn_session_snapshot_bytes(const tarn_session* session);

/* Writes a snapshot into the caller's memory, of any alignment. `size_bytes` must be at least tarn_session_snapshot_bytes(); bytes
 * after the snapshot are not written. Allocates nothing.
 * Errors: TARN_BUFFER_TOO_SMALL (names both sizes; nothing has been written), TARN_INVALID_ARGUMENT. */
TARN_API tarn_status tarn_session_save(const tarn_session* session, void* snapshot, uint64_t size_bytes, tarn_error* error);

/* As tarn_session_snapshot_bytes(), of a compact snapshot: of 64 bytes of float32 matrices it has 20. If nothing is rounded, it has
 * at most 257 / 256 * tarn_memory.state_bytes + 64 + 8 * batch * beams bytes. */
TARN_API uint64_t tarn_session_compact_bytes(const tarn_session* session);

/* As tarn_session_save(), as a compact snapshot. tarn_session_restore() restores it. It can be the base of a delta snapshot of a
 * session that was restored from it; else every rounded block differs.
 * Each number of a rounded block of 16 is off by at most 1/254 of the largest of them.
 * Errors: as tarn_session_save(). */
TARN_API tarn_status tarn_session_save_compact(const tarn_session* session, void* snapshot, uint64_t size_bytes, tarn_error* error);

/* Gives the session the state of the saved session. The snapshot is at the beginning of `size_bytes` bytes of any alignment. The
 * library does not keep them; they must not change during the call. It is untrusted, like a file: all of it is checked, against its
 * hash and the model's bounds, before anything changes. A forged snapshot can make the session give wrong logits, but nothing else.
 * Allocates nothing.
 * Errors: TARN_BAD_FORMAT (not a snapshot, truncated, or inconsistent), TARN_UNSUPPORTED (another version of the format),
 * TARN_CHECKSUM (damaged), TARN_INVALID_ARGUMENT (of another model or shape, or a delta snapshot). All name the field, the value
 * found and the value expected. */
TARN_API tarn_status tarn_session_restore(tarn_session* session, const void* snapshot, uint64_t size_bytes, tarn_error* error);

/* Writes the size of a delta snapshot of the session as it is now to `*delta_bytes`: at most tarn_memory.state_bytes * 513 / 512 +
 * 80 + 8 * batch * beams. The base is at the beginning of the `base_bytes` bytes at `base`, of any alignment. It is untrusted and
 * is checked like a snapshot to restore; it must not change during the call. Reads all of the state. Allocates nothing.
 * Errors: those of tarn_session_restore() for the base; TARN_INVALID_ARGUMENT (the base is a delta). */
TARN_API tarn_status tarn_session_delta_bytes(const tarn_session* session, const void* base, uint64_t base_bytes,
                                              uint64_t* delta_bytes, tarn_error* error);

/* As tarn_session_save(), as a delta snapshot. `delta` must not overlap `base`.
 * Errors: as tarn_session_delta_bytes(); TARN_BUFFER_TOO_SMALL (names both sizes); TARN_INVALID_ARGUMENT (they overlap; the session
 * was stopped in the middle of a chunk). Nothing has been written. TARN_BAD_FORMAT (the base changed during the call): what is in
 * `delta` is no snapshot. */
TARN_API tarn_status tarn_session_save_delta(const tarn_session* session, const void* base, uint64_t base_bytes, void* delta,
                                             uint64_t size_bytes, tarn_error* error);

/* As tarn_session_restore(), of a delta snapshot and the base that it was saved with. Base and delta are both untrusted.
 * Errors: as tarn_session_restore(), of both; TARN_INVALID_ARGUMENT (another base: names the hashes; `delta` is no delta snapshot).
 */
TARN_API tarn_status tarn_session_restore_delta(tarn_session* session, const void* base, uint64_t base_bytes, const void* delta,
                                                uint64_t size_bytes, tarn_error* error);

/* Bytes of a snapshot of one sequence as it is now, with the source that it decodes from. Such a snapshot is like that of a session
 * with one sequence: a session with `batch` 1 can restore it, and any sequence of a batch can restore a snapshot of such a session.
 * Reads the states of the sequence. 0 for NULL, and if there is no such sequence.
 * Errors: none. */
TARN_API uint64_t tarn_session_sequence_snapshot_bytes(const tarn_session* session, uint32_t sequence);

/* As tarn_session_save(), of one sequence.
 * Errors: as tarn_session_save(); TARN_INVALID_ARGUMENT (no such sequence). */
TARN_API tarn_status tarn_session_save_sequence(const tarn_session* session, uint32_t sequence, void* snapshot, uint64_t size_bytes,
                                                tarn_error* error);

/* As tarn_session_restore(), of one sequence; the others do not change, not by a bit. A snapshot of several sequences is refused.
 * Errors: as tarn_session_restore(); TARN_INVALID_ARGUMENT (no such sequence; the model decodes from sources and `beams` is above
 * 1). */
TARN_API tarn_status tarn_session_restore_sequence(tarn_session* session, uint32_t sequence, const void* snapshot,
                                                   uint64_t size_bytes, tarn_error* error);

/* ---- Forks ------------------------------------------------------------------------------------------------------ */

/* Gives `session` the state of `from`, another session of the same tarn_model and shape (as for snapshots), without a snapshot: a
 * fork. The cost is one copy of the state. tarn/checkpoints.h goes back within one session.
 * Errors: TARN_INVALID_ARGUMENT (another model or shape: names both values; `from` was stopped in the middle of a chunk); nothing
 * has been copied.
 * Thread safety: one thread for both sessions. */
TARN_API tarn_status tarn_session_copy(tarn_session* session, const tarn_session* from, tarn_error* error);

/* Gives sequence `sequence` of `session` the state of sequence `from_sequence` of `from`, which may be the same session. With it, a
 * sequence leaves a batch or joins a batch, whatever the other sequences have read. Its source is copied, too. A session with
 * `beams` above 1 whose model has sources is refused.
 * Errors: as tarn_session_copy(). */
TARN_API tarn_status tarn_session_copy_sequence(tarn_session* session, uint32_t sequence, const tarn_session* from,
                                                uint32_t from_sequence, tarn_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TARN_SNAPSHOT_H_ */
