// Checkpoints of published families, in the terms of tarn.
#ifndef TARN_TOOLS_CONVERT_PUBLISHED_H_
#define TARN_TOOLS_CONVERT_PUBLISHED_H_

#include <functional>
#include <string>
#include <vector>

#include "tools/convert/checkpoint/checkpoint.h"
#include "tools/convert/families/family.h"

namespace tarn::convert {

// A config.json of tarn.
struct OwnConfig {
  std::string text;
  std::string where;                                              // of its fields, for errors
  std::function<std::string(const std::string&)> name_in_folder;  // of a tensor; nullptr: its name
  std::vector<std::string> notes;                                 // what the user should know
  std::string shortlist = "";                                     // a file; "": none
};

// One that says what `text` says: `text` itself, if it is one. `folder`: where it lies; tokenizer files there are taken. The
// tensors of `checkpoint`, if there is one, get their names in tarn.
// Errors: as Translate(); options for a config of tarn, which says all that itself.
OwnConfig ReadOwnConfig(const std::string& text, const std::string& where, const std::string& folder, const FamilyOptions& options,
                        Checkpoint* checkpoint);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_PUBLISHED_H_
