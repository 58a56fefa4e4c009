// A panel of int4 weights times some rows of x. No guard: int4_panels.cc includes this once for every way to multiply bytes, inside
// the namespace and the target attributes of that way, after `struct Way`, which says
//   kVectors, kRows      vectors of outputs in a panel; most rows of x at a time, as many as there are registers for sums
//   X, LoadX(q)          32 elements of a row of x, from q on
//   Sums, Start(offset)  the integer sums of a vector's outputs over one block; the row's Int4Rows::offsets of it
//   Unpack(...)          a vector of bytes into low and high nibbles
//   Add<g>(...)          to the sums the products of group g
//   Finish(sums, offset) the sums in f32, kUnit times what they are

// f(0), ..., f(n - 1), with numbers that the compiler knows: elements of arrays become registers.
template <size_t... i, class F>
TARN_INT4_INLINE void ForEach(std::index_sequence<i...>, F f) {
  (f(std::integral_constant<size_t, i>()), ...);
}

template <size_t n>
TARN_INT4_INLINE void StoreOutputs(VF v, size_t outputs, float* y) {
  const DF d;
  const size_t lanes = hn::Lanes(d), first = n * lanes;
  if (first + lanes <= outputs) {
    hn::StoreU(v, d, y + first);
  } else if (first < outputs) {
    hn::StoreN(v, d, y + first, outputs - first);
  }
}

// Rows `row` to row + kRows of x; `outputs` of the panel's are there.
template <size_t kRows>
HWY_NOINLINE void MultiplyPanel(const Int4Rows& x, size_t row, const Int4PanelLayout& layout, const uint8_t* panel, size_t outputs,
                                float* y, size_t y_stride) {
  const DF d;
  const size_t lanes = hn::Lanes(d), blocks = x.inputs / kI4Block;
  constexpr auto vectors = std::make_index_sequence<Way::kVectors>();
  constexpr auto rows = std::make_index_sequence<kRows>();
  const uint8_t* weights = panel + layout.weights;
  const uint16_t* scales = reinterpret_cast<const uint16_t*>(panel + layout.scales);
  const int8_t* q[kRows];
  const int32_t* offsets[kRows];
  VF sums[kRows][Way::kVectors];
  ForEach(rows, [&](auto r) TARN_INT4_LAMBDA {
    q[r] = x.q + (row + r) * x.inputs;
    offsets[r] = x.offsets + (row + r) * blocks;
    ForEach(vectors, [&](auto v) TARN_INT4_LAMBDA { sums[r][v] = hn::Zero(d); });
  });
  // Blocks and their scales, and what memory takes to answer: panels are one stream, but CPUs look ahead within pages only.
  constexpr size_t kStepBytes = Way::kVectors * hn::MaxLanes(DF()) * (kI4Block / 2 + sizeof(uint16_t)), kAheadBytes = 8192;
  const uint8_t* ahead = panel + kAheadBytes;
  for (size_t block = 0; block < blocks; ++block, ahead += kStepBytes) {
    for (size_t line = 0; line < kStepBytes; line += 64) hwy::Prefetch(ahead + line);
    typename Way::X elements[kRows];
    typename Way::Sums products[kRows][Way::kVectors];
    ForEach(rows, [&](auto r) TARN_INT4_LAMBDA {
      elements[r] = Way::LoadX(q[r] + block * kI4Block);
      ForEach(vectors, [&](auto v) TARN_INT4_LAMBDA { products[r][v] = Way::Start(offsets[r][block]); });
    });
    ForEach(std::make_index_sequence<4>(), [&](auto g) TARN_INT4_LAMBDA {
      ForEach(vectors, [&](auto v) TARN_INT4_LAMBDA {
        typename Way::Nibbles low, high;
        Way::Unpack(weights + (g * Way::kVectors + v) * lanes * 4, low, high);
        ForEach(rows, [&](auto r) TARN_INT4_LAMBDA { Way::template Add<g>(elements[r], low, high, products[r][v]); });
      });
    });
    ForEach(vectors, [&](auto v) TARN_INT4_LAMBDA {
      const VF scale = LoadBf16(scales + v * lanes);
      ForEach(rows, [&](auto r) TARN_INT4_LAMBDA {
        sums[r][v] = hn::MulAdd(Way::Finish(products[r][v], offsets[r][block]), scale, sums[r][v]);
      });
    });
    weights += Way::kVectors * lanes * kI4Block / 2;
    scales += Way::kVectors * lanes;
  }
  const float* zero_sums = reinterpret_cast<const float*>(panel);
  const float* bias = reinterpret_cast<const float*>(panel + layout.bias);
  ForEach(rows, [&](auto r) TARN_INT4_LAMBDA {
    const Qdu8& params = x.params[row + r];
    const VF scale = hn::Set(d, params.scale / Way::kUnit), zero_point = hn::Set(d, static_cast<float>(params.zero_point - 128));
    ForEach(vectors, [&](auto v) TARN_INT4_LAMBDA {
      const VF whole = hn::NegMulAdd(zero_point, hn::LoadU(d, zero_sums + v * lanes), sums[r][v]);
      StoreOutputs<v>(hn::MulAdd(whole, scale, hn::LoadU(d, bias + v * lanes)), outputs, y + (row + r) * y_stride);
    });
  });
}

using MultiplyRows = void (*)(const Int4Rows&, size_t, const Int4PanelLayout&, const uint8_t*, size_t, float*, size_t);
template <size_t... i>
constexpr std::array<MultiplyRows, sizeof...(i)> MultiplyOneTo(std::index_sequence<i...>) {
  return {MultiplyPanel<i + 1>...};
}

// Panels outermost: their weights stay in the cache for all rows.
inline void Multiply(const Int4Rows& x, size_t outputs, const uint8_t* panels, float* y, size_t y_stride) {
  static constexpr auto kMultiply = MultiplyOneTo(std::make_index_sequence<Way::kRows>());
  const Int4PanelLayout layout(Way::kVectors * hn::Lanes(DF()), x.inputs);
  for (size_t o = 0; o < outputs; o += layout.outputs, panels += layout.bytes) {
    const size_t count = outputs - o < layout.outputs ? outputs - o : layout.outputs;
    for (size_t row = 0; row < x.rows;) {
      const size_t rows = x.rows - row < Way::kRows ? x.rows - row : Way::kRows;
      kMultiply[rows - 1](x, row, layout, panels, count, y + o, y_stride);
      row += rows;
    }
  }
}

constexpr Int4Panels kPanels = {Way::kName, hn::MaxLanes(DF()) * Way::kVectors, Way::kFlip, Way::kUnit, Multiply};
