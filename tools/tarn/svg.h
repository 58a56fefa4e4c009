// Pieces of SVG, with names that come from files.
#ifndef TARN_TOOLS_TARN_SVG_H_
#define TARN_TOOLS_TARN_SVG_H_

#include <string>

namespace tarn_cli {

// The begin of a picture of so many pixels; "</svg>" ends it.
std::string SvgHead(double width, double height);

// A text that may stand in XML: control characters as "\x1b", bytes that are no UTF-8 as U+FFFD.
std::string SvgEscape(const std::string& text);

// `style` is the name of a class. `anchor`: "start", "middle" or "end".
std::string SvgText(double x, double y, const char* anchor, const std::string& text, const char* style = "");
std::string SvgLine(double x1, double y1, double x2, double y2, const char* style);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_SVG_H_
