// What the automaton has to know about the rules of a grammar before it is built.
#ifndef TARN_RUNTIME_GRAMMAR_RULES_H_
#define TARN_RUNTIME_GRAMMAR_RULES_H_

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/grammar/syntax.h"

namespace tarn {

struct RuleFacts {
  uint8_t used;      // a text that begins with `root` can need it
  uint8_t ends;      // it derives a text
  uint8_t nullable;  // it derives the empty text
  uint8_t nonempty;  // it derives another text
  uint8_t has_loop;  // a repetition without a limit
  uint32_t size;     // about how many states it has with the rules that it uses; kRecursiveSize: it uses itself
};

constexpr uint32_t kRecursiveSize = UINT32_MAX;

// Small rules become part of those that use them: that keeps stacks flat, and texts of a token inside one rule. Rules with loops
// stay rules, so that the states of such a loop, whose masks are large, are there once.
inline bool IsInlined(const RuleFacts& rule) { return rule.size <= (rule.has_loop != 0 ? 8u : 64u); }

// `*work` grows by the parts of the grammar that were looked at. Errors: TARN_BAD_FORMAT (a rule that derives no text: names line
// and column), TARN_OUT_OF_MEMORY.
Status FindFacts(const Syntax& syntax, const Allocator& allocator, Array<RuleFacts>* facts, uint64_t* work);

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_RULES_H_
