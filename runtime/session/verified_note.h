// A file in the cache folder which says that a model was verified since the machine started: this file of a model, and this file of
// its packed weights, as they were then. README.md says what it keeps and what it cannot see.
//
// All that the note says is known beforehand, so it is compared as a whole: one that is cut, old or of something else is none.
#ifndef TARN_RUNTIME_SESSION_VERIFIED_NOTE_H_
#define TARN_RUNTIME_SESSION_VERIFIED_NOTE_H_

#include <cstddef>
#include <cstdint>

#include "runtime/platform/file_identity.h"

namespace tarn {

class VerifiedNote {
 public:
  // `packed`: not known where nothing is packed. Where the model's file is not known (a buffer), or the boot is not, there is never
  // a note.
  VerifiedNote(const FileIdentity& model, const FileIdentity& packed);

  bool IsIn(const char* folder, const char* name) const;
  // May fail, and be missing then. Waits for a few ms if the files were made just now (WaitForNextTick).
  void Write(const char* folder, const char* name) const;

 private:
  static constexpr size_t kTextBytes = 512;

  FileIdentity model_;
  FileIdentity packed_;
  char text_[kTextBytes];
  size_t length_ = 0;  // 0: there cannot be a note
};

}  // namespace tarn

#endif  // TARN_RUNTIME_SESSION_VERIFIED_NOTE_H_
