// Diagonal recurrences: the reference against their equations, every table against the reference, chunks against single tokens, and
// what a NaN reaches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/kernel_testing.h"

namespace tarn::testing {
namespace {

constexpr size_t kTokens = 11;

struct Case {
  Case(RecurrenceDecay decay_kind, RecurrenceInput input_kind, size_t n, bool with_constant)
      : decay(decay_kind), input(input_kind), width(n), has_constant(with_constant), random(static_cast<uint32_t>(n) + 7) {
    x = random.Uniform(kTokens * width, -2.0f, 2.0f);
    gate = random.Uniform(kTokens * width, -9.0f, 9.0f);
    begin = random.Uniform(width, -2.0f, 2.0f);
    // Rates of decays between 1 - 1e-4 and e^-20.
    constant = decay == RecurrenceDecay::kSigmoid ? random.Uniform(width, 0.0f, 1.0f) : random.Uniform(width, 0.0f, 20.0f);
  }

  // h of all tokens, read in chunks of `chunk`. Rows lie `gap` elements apart. `first`: from a reset.
  Floats Run(const Kernels& table, size_t chunk, size_t gap, Place place, bool first, Floats* state) const {
    const size_t in_stride = width + gap, out_stride = width + 2 * gap;
    Buffer<float> in(Strided(x, width, in_stride), place), g(Strided(gate, width, in_stride), place), c(constant, place);
    Buffer<float> h(*state, place), out(StridedSize(kTokens, width, out_stride), place);
    for (size_t t = 0; t < kTokens; t += chunk) {
      RecurrenceArgs args{};
      args.decay = decay;
      args.input = input;
      args.tokens = std::min(chunk, kTokens - t);
      args.width = width;
      args.x = in.data() + t * in_stride;
      args.x_stride = in_stride;
      args.gate = g.data() + t * in_stride;
      args.gate_stride = in_stride;
      args.constant = has_constant ? c.data() : nullptr;
      args.first = first && t == 0;
      args.state = h.data();
      args.y = out.data() + t * out_stride;
      args.y_stride = out_stride;
      table.diagonal_recurrence(args);
    }
    *state = h.values();
    return Unstrided(out.values(), width, out_stride);
  }

  struct Exact {
    double h, bound;
  };
  // h of every token from its equation, and a bound on what rounding may do: every token's decay, input and sum are off by at most
  // 12 roundings (sigmoid 5; exponential: of its logarithm 5, whose effect on a is below 2, and its own 2; root 3; product and sum
  // 2), and h keeps a part a of what it was off.
  std::vector<Exact> Expected(bool first) const {
    std::vector<Exact> all(kTokens * width);
    for (size_t i = 0; i < width; ++i) {
      double h = begin[i], size = std::fabs(h), off = 0;
      for (size_t t = 0; t < kTokens; ++t) {
        const double open = 1 / (1 + std::exp(-static_cast<double>(gate[t * width + i]))), c = has_constant ? constant[i] : 0.0;
        const double a = decay == RecurrenceDecay::kSigmoid ? c + (1 - c) * open : std::exp(-c * open);
        double scale = 1;
        if (input == RecurrenceInput::kComplement) scale = 1 - a;
        if (input == RecurrenceInput::kRoot && !(first && t == 0)) scale = std::sqrt(1 - a * a);
        const double added = scale * x[t * width + i];
        off = a * off + 12 * kU * (size + std::fabs(added));
        h = a * h + added;
        size = a * size + std::fabs(added);
        all[t * width + i] = {h, off + kTiny};
      }
    }
    return all;
  }

  RecurrenceDecay decay;
  RecurrenceInput input;
  size_t width;
  bool has_constant;
  mutable Random random;
  Floats x, gate, begin, constant;
};

void ForEachCase(const std::function<void(const Case&)>& f) {
  for (const size_t width : Sizes()) {
    if (width > 100) continue;
    for (const RecurrenceInput input : {RecurrenceInput::kWhole, RecurrenceInput::kComplement, RecurrenceInput::kRoot}) {
      f(Case(RecurrenceDecay::kSigmoid, input, width, width % 2 == 0));
      f(Case(RecurrenceDecay::kExponential, input, width, true));
    }
  }
}

TEST(DiagonalRecurrence, TheReferenceIsItsEquation) {
  ForEachCase([](const Case& c) {
    for (const bool first : {false, true}) {
      Floats state = c.begin;
      const Floats h = c.Run(Reference(), kTokens, 0, Place::kEnd, first, &state);
      const std::vector<Case::Exact> expected = c.Expected(first);
      for (size_t i = 0; i < h.size(); ++i) EXPECT_NEAR(h[i], expected[i].h, expected[i].bound);
      EXPECT_TRUE(std::equal(state.begin(), state.end(), h.end() - static_cast<ptrdiff_t>(c.width)));
    }
  });
}

TEST(DiagonalRecurrence, TablesAgreeWithTheReference) {
  ForEachTable([](const Kernels& kernels) {
    ForEachCase([&](const Case& c) {
      for (const size_t gap : {0, 3}) {
        for (const Place place : {Place::kEnd, Place::kShifted}) {
          const bool first = gap == 0;
          Floats expected_state = c.begin, state = c.begin;
          const Floats expected = c.Run(Reference(), 4, gap, place, first, &expected_state);
          const std::vector<Case::Exact> exact = c.Expected(first);
          ExpectNear("h", expected, c.Run(kernels, 4, gap, place, first, &state), [&](size_t i) { return 2 * exact[i].bound; });
          const size_t last = (kTokens - 1) * c.width;
          ExpectNear("state", expected_state, state, [&](size_t i) { return 2 * exact[last + i].bound; });
        }
      }
    });
  });
}

TEST(DiagonalRecurrence, ChunksGiveTheBitsOfTokens) {
  ForEachTable([](const Kernels& kernels) {
    ForEachCase([&](const Case& c) {
      Floats one_state(c.width, 0.0f);
      const Floats one = c.Run(kernels, 1, 0, Place::kEnd, true, &one_state);
      for (const size_t chunk : {2, 5, 11}) {
        Floats state(c.width, 0.0f);
        ExpectEqual("h", one, c.Run(kernels, chunk, 0, Place::kEnd, true, &state));
        ExpectEqual("state", one_state, state);
      }
    });
  });
}

// A decay of 1 - 1e-7 has 1 - a to all digits.
TEST(DiagonalRecurrence, KeepsTheDigitsOfSmallInputs) {
  ForEachTable([](const Kernels& kernels) {
    Case c(RecurrenceDecay::kExponential, RecurrenceInput::kComplement, 5, true);
    std::fill(c.constant.begin(), c.constant.end(), 1e-7f);
    std::fill(c.gate.begin(), c.gate.end(), 50.0f);
    std::fill(c.begin.begin(), c.begin.end(), 0.0f);
    Floats state = c.begin;
    const Floats h = c.Run(kernels, kTokens, 0, Place::kEnd, true, &state);
    for (size_t i = 0; i < c.width; ++i) EXPECT_NEAR(h[i], 1e-7 * c.x[i], 12 * kU * 1e-7 * std::fabs(c.x[i]));
  });
}

// What a NaN reaches: its own column, from its own token on.
TEST(DiagonalRecurrence, ANanStaysInItsColumn) {
  ForEachTable([](const Kernels& kernels) {
    for (const RecurrenceDecay decay : {RecurrenceDecay::kSigmoid, RecurrenceDecay::kExponential}) {
      for (const bool in_gate : {false, true}) {
        Case c(decay, RecurrenceInput::kRoot, 5, true);
        (in_gate ? c.gate : c.x)[2 * c.width + 1] = std::nanf("");
        Floats state = c.begin;
        const Floats h = c.Run(kernels, kTokens, 0, Place::kEnd, false, &state);
        for (size_t i = 0; i < h.size(); ++i) EXPECT_EQ(std::isnan(h[i]), i % c.width == 1 && i / c.width >= 2) << i;
      }
    }
  });
}

}  // namespace
}  // namespace tarn::testing
