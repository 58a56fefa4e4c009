// The table of the oracle.
#include "kernels/reference/reference.h"

namespace tarn {

const Kernels& Reference() {
  static constexpr Kernels kTable = {
      /*name=*/"reference",
      /*layer_norm=*/reference::LayerNorm,
      /*rms_norm=*/reference::RmsNorm,
      /*relu=*/reference::Relu,
      /*gelu=*/reference::Gelu,
      /*gelu_tanh=*/reference::GeluTanh,
      /*silu_mul=*/reference::SiluMul,
      /*add=*/reference::Add,
      /*scale_f32=*/reference::ScaleF32,
      /*scale_f16=*/reference::ScaleF16,
      /*scale_i8=*/reference::ScaleI8,
      /*sinusoid=*/reference::Sinusoid,
      /*rope=*/reference::Rope,
      /*l2_normalize=*/reference::L2Normalize,
      /*forget_gate=*/reference::ForgetGate,
      /*features=*/{reference::GaussianFeatures, reference::ArccosFeatures},
      /*linear_step=*/reference::LinearStep,
      /*linear_chunk=*/reference::LinearChunk,
      /*abc_control_step=*/reference::AbcStep,
      /*abc_control_chunk=*/reference::AbcChunk,
      /*slot_step=*/reference::SlotStep,
      /*slot_chunk=*/reference::SlotChunk,
      /*cache_attend=*/reference::CacheAttend,
      /*dense_f32=*/reference::DenseF32,
      /*quantize_qd8=*/reference::QuantizeQd8,
      /*dense_qd8_qc8w=*/reference::DenseQd8Qc8w,
  };
  return kTable;
}

}  // namespace tarn
