// Names that people mistype: which known one is near, and the list of all.
#ifndef TARN_TOOLS_COMMON_SUGGESTION_H_
#define TARN_TOOLS_COMMON_SUGGESTION_H_

#include <string>
#include <string_view>
#include <vector>

namespace tarn::tools {

// The known name that `name` most likely stands for: a few letters wrong, missing, added or exchanged, in any case, or one is the
// beginning of the other. "" if none is near.
std::string Nearest(std::string_view name, const std::vector<std::string>& known);

// " (did you mean --temp?)", or "" if no known name is near.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& known);

// "md, csv or json"
std::string Alternatives(const std::vector<std::string>& known);

// What to say of a name that is not known: "is 'jsn', expected md, csv or json (did you mean json?)".
std::string UnknownName(std::string_view name, const std::vector<std::string>& known);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_SUGGESTION_H_
