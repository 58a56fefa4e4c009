// A session's state as bytes: all that it carries from call to call, so that another one goes on from there bit for bit.
// What the bytes are: snapshot_format.h.
//
// All-zero bytes are the reset state of everything, so blocks of state that are zero are left out: a bounded cache is as long as
// it is full, whatever its rows look like. A delta snapshot leaves out those that another snapshot, its base, has alike: the rows
// of a cache that were there already. A compact snapshot has the f32 matrices of the states rounded to int8, 16 numbers with a
// scale: three tenths of the bytes. What is divided by or exponentiated, sums and maxima, stays as it is (MATH 4.3).
#ifndef TARN_RUNTIME_SESSION_SNAPSHOT_H_
#define TARN_RUNTIME_SESSION_SNAPSHOT_H_

#include <cstdint>

#include "runtime/session/loaded_model.h"

namespace tarn {

// What of an instance a snapshot is of: all of it, or one sequence with its source, as an instance of one sequence would have it.
struct SnapshotScope {
  static SnapshotScope All(const Instance& instance);
  static SnapshotScope One(const Instance& instance, uint32_t sequence);

  const Instance& instance;
  uint32_t first_sequence, sequences;
  uint32_t first_source, sources;  // no sources: nothing to decode from
};

// What kind of snapshot is written: whole, or a delta of a base, or compact.
struct SnapshotKind {
  Span<const uint8_t> base;  // nullptr: none
  bool is_compact = false;
};

// Of a snapshot of it as it is now: reads all of its state. Errors: of the base, as RestoreSnapshot(); none without one.
Result<uint64_t> SnapshotBytes(const LoadedModel& model, const SnapshotScope& scope, const SnapshotKind& kind);

// Writes it to the front of `memory`. Errors: TARN_BUFFER_TOO_SMALL, TARN_INVALID_ARGUMENT (`memory` overlaps the base), of the
// base as RestoreSnapshot(); nothing has been written. TARN_BAD_FORMAT (somebody wrote to the base just now): bytes of no meaning
// have.
Status SaveSnapshot(const LoadedModel& model, const SnapshotScope& scope, const SnapshotKind& kind, Span<uint8_t> memory);

// Makes it, of `instance`, what the saved one was, but for what was rounded; a `base` of nullptr is none. `memory` begins with a
// snapshot and is of any alignment. Whatever it holds, the instance is safe to run afterwards. Errors: TARN_BAD_FORMAT,
// TARN_UNSUPPORTED, TARN_CHECKSUM, TARN_INVALID_ARGUMENT (it is one of another model or shape, or of another base); the instance
// has not changed.
Status RestoreSnapshot(const LoadedModel& model, Span<const uint8_t> base, Span<const uint8_t> memory, const SnapshotScope& scope,
                       Instance* instance);

}  // namespace tarn

#endif  // TARN_RUNTIME_SESSION_SNAPSHOT_H_
