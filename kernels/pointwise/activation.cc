// Elementwise functions. Equations: kernels/kernels.h, sources: kernels/reference/pointwise.cc.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/activation.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// exp(-a^2/2) to f32's precision. a^2 rounded to f32 would cost up to a^2/4 ulp of the result, so a is cut into a head whose square
// is exact and the rest (as W. J. Cody does for erfc, Math. Comp. 23, 1969): a^2 = head^2 + (a - head)(a + head). For a <= 15 the
// rest is below 0.11, and six terms of the series of exp leave 3e-9.
HWY_INLINE VF ExpOfHalfSquare(DF d, VF a) {
  const hn::RebindToUnsigned<DF> du;
  const VF head = hn::BitCast(d, hn::And(hn::BitCast(du, a), hn::Set(du, 0xFFFFF000u)));
  const VF minus_half = hn::Set(d, -0.5f);
  const VF rest = hn::Mul(minus_half, hn::Mul(hn::Sub(a, head), hn::Add(a, head)));
  VF series = hn::MulAdd(rest, hn::Set(d, 1.0f / 120), hn::Set(d, 1.0f / 24));
  series = hn::MulAdd(series, rest, hn::Set(d, 1.0f / 6));
  series = hn::MulAdd(series, rest, hn::Set(d, 0.5f));
  series = hn::MulAdd(series, rest, hn::Set(d, 1.0f));
  series = hn::MulAdd(series, rest, hn::Set(d, 1.0f));
  return hn::Mul(hn::Exp(d, hn::Mul(minus_half, hn::Mul(head, head))), series);
}

// Phi(-a) for a >= 0. Phi(-a) exp(a^2/2) (1 + a) is a smooth function of t = (a - 4)/(a + 4), after Shepherd and Laframboise,
// "Chebyshev approximation of (1 + 2x) exp(x^2) erfc(x)", Math. Comp. 36 (1981). The coefficients are a least-maximum fit of degree
// 10 on 0 <= a <= 15 to f64 values, relative error 1.4e-8 after rounding them to f32; beyond 15 the result is below f32's range.
HWY_INLINE VF NormalTail(DF d, VF a) {
  a = hn::Min(a, hn::Set(d, 15.0f));
  const VF t = hn::Div(hn::Sub(a, hn::Set(d, 4.0f)), hn::Add(a, hn::Set(d, 4.0f)));
  VF p = hn::Set(d, -9.520968888e-05f);
  p = hn::MulAdd(p, t, hn::Set(d, -1.180577819e-04f));
  p = hn::MulAdd(p, t, hn::Set(d, 6.696394994e-04f));
  p = hn::MulAdd(p, t, hn::Set(d, -2.670562826e-04f));
  p = hn::MulAdd(p, t, hn::Set(d, -4.979097750e-03f));
  p = hn::MulAdd(p, t, hn::Set(d, 1.793296076e-02f));
  p = hn::MulAdd(p, t, hn::Set(d, -3.220381215e-02f));
  p = hn::MulAdd(p, t, hn::Set(d, 2.860046923e-02f));
  p = hn::MulAdd(p, t, hn::Set(d, 1.400012523e-02f));
  p = hn::MulAdd(p, t, hn::Set(d, -9.670347720e-02f));
  p = hn::MulAdd(p, t, hn::Set(d, 4.720532000e-01f));
  return hn::Mul(hn::Div(p, hn::Add(a, hn::Set(d, 1.0f))), ExpOfHalfSquare(d, a));
}

// x Phi(x), with Phi(x) = 1 - Phi(-x) on the positive side. Where that is x, so that infinity is no NaN: x.
HWY_INLINE VF GeluOf(DF d, VF x) {
  const VF tail = hn::Mul(x, NormalTail(d, hn::Abs(x)));
  const VF y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(x, tail));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, 15.0f)), x, y);
}

// (1 + tanh u)/2 = sigmoid(2u), which keeps its digits where tanh u is near -1.
HWY_INLINE VF GeluTanhOf(DF d, VF x) {
  const VF cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 1.5957691216f * 0.044715f), hn::Set(d, 1.5957691216f));  // 2 sqrt(2/pi)
  return hn::Mul(x, Sigmoid(d, hn::Mul(x, cubic)));
}

void Relu(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map(n, x + r * x_stride, y + r * y_stride, [](DF d, VF v) HWY_ATTR { return PositivePart(d, v); });
  }
}

void Gelu(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map(n, x + r * x_stride, y + r * y_stride, [](DF d, VF v) HWY_ATTR { return GeluOf(d, v); });
  }
}

void GeluTanh(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map(n, x + r * x_stride, y + r * y_stride, [](DF d, VF v) HWY_ATTR { return GeluTanhOf(d, v); });
  }
}

void Tanh(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map(n, x + r * x_stride, y + r * y_stride, [](DF d, VF v) HWY_ATTR { return hn::Tanh(d, v); });
  }
}

void Silu(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map(n, x + r * x_stride, y + r * y_stride, [](DF d, VF v) HWY_ATTR { return hn::Mul(v, Sigmoid(d, v)); });
  }
}

void ReluSquared(size_t rows, size_t n, const float* x, size_t x_stride, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map(n, x + r * x_stride, y + r * y_stride, [](DF d, VF v) HWY_ATTR {
      const VF positive = PositivePart(d, v);
      return hn::Mul(positive, positive);
    });
  }
}

void SoftCap(size_t rows, size_t n, const float* x, size_t x_stride, float cap, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map(n, x + r * x_stride, y + r * y_stride, [cap](DF d, VF v) HWY_ATTR { return Capped(d, v, cap); });
  }
}

void SiluMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
             size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map2(n, gate + r * gate_stride, up + r * up_stride, y + r * y_stride,
         [](DF d, VF g, VF u) HWY_ATTR { return hn::Mul(hn::Mul(g, Sigmoid(d, g)), u); });
  }
}

void GeluMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
             size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map2(n, gate + r * gate_stride, up + r * up_stride, y + r * y_stride,
         [](DF d, VF g, VF u) HWY_ATTR { return hn::Mul(GeluOf(d, g), u); });
  }
}

void SigmoidMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map2(n, gate + r * gate_stride, up + r * up_stride, y + r * y_stride,
         [](DF d, VF g, VF u) HWY_ATTR { return hn::Mul(Sigmoid(d, g), u); });
  }
}

void GeluTanhMul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
                 size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map2(n, gate + r * gate_stride, up + r * up_stride, y + r * y_stride,
         [](DF d, VF g, VF u) HWY_ATTR { return hn::Mul(GeluTanhOf(d, g), u); });
  }
}

void Mul(size_t rows, size_t n, const float* gate, size_t gate_stride, const float* up, size_t up_stride, float* y,
         size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map2(n, gate + r * gate_stride, up + r * up_stride, y + r * y_stride, [](DF, VF g, VF u) HWY_ATTR { return hn::Mul(g, u); });
  }
}

void Add(size_t rows, size_t n, const float* a, size_t a_stride, const float* b, size_t b_stride, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    Map2(n, a + r * a_stride, b + r * b_stride, y + r * y_stride, [](DF, VF v, VF w) HWY_ATTR { return hn::Add(v, w); });
  }
}

void FillActivations(Kernels& table) {
  table.relu = Relu;
  table.gelu = Gelu;
  table.gelu_tanh = GeluTanh;
  table.tanh = Tanh;
  table.silu = Silu;
  table.relu_squared = ReluSquared;
  table.soft_cap = SoftCap;
  table.silu_mul = SiluMul;
  table.gelu_mul = GeluMul;
  table.gelu_tanh_mul = GeluTanhMul;
  table.sigmoid_mul = SigmoidMul;
  table.mul = Mul;
  table.add = Add;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillActivations);
void FillActivations(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillActivations)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
