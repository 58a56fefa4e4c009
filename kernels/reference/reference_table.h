// The table of the oracle as a constant, for tables that begin as a copy of it.
#ifndef TARN_KERNELS_REFERENCE_REFERENCE_TABLE_H_
#define TARN_KERNELS_REFERENCE_REFERENCE_TABLE_H_

#include "kernels/features/features.h"
#include "kernels/reference/reference.h"
#include "kernels/slot_controls/slot_controls.h"

namespace tarn {

constexpr Kernels kReferenceTable = {
    /*name=*/"reference",
    /*layer_norm=*/reference::LayerNorm,
    /*rms_norm=*/reference::RmsNorm,
    /*relu=*/reference::Relu,
    /*gelu=*/reference::Gelu,
    /*gelu_tanh=*/reference::GeluTanh,
    /*tanh=*/reference::Tanh,
    /*silu=*/reference::Silu,
    /*relu_squared=*/reference::ReluSquared,
    /*soft_cap=*/reference::SoftCap,
    /*silu_mul=*/reference::SiluMul,
    /*gelu_mul=*/reference::GeluMul,
    /*gelu_tanh_mul=*/reference::GeluTanhMul,
    /*sigmoid_mul=*/reference::SigmoidMul,
    /*mul=*/reference::Mul,
    /*add=*/reference::Add,
    /*causal_conv=*/reference::CausalConv,
    /*diagonal_recurrence=*/reference::DiagonalRecurrence,
    /*scale_f32=*/reference::ScaleF32,
    /*scale_f16=*/reference::ScaleF16,
    /*scale_i8=*/reference::ScaleI8,
    /*scale_i4=*/reference::ScaleI4,
    /*scale_planes=*/reference::ScalePlanes,
    /*sinusoid=*/reference::Sinusoid,
    /*rope=*/reference::Rope,
    /*l2_normalize=*/reference::L2Normalize,
    /*forget_gate=*/reference::ForgetGate,
    /*vector_gate=*/reference::VectorGate,
    /*softplus_gate=*/reference::SoftplusGate,
    /*scaled_sigmoid=*/reference::ScaledSigmoid,
    /*sum_normalize=*/reference::SumNormalize,
    /*half_squared_norm=*/reference::HalfSquaredNorm,
    /*running_max=*/reference::RunningMax,
    /*block_max=*/reference::BlockMax,
    /*damp_features=*/reference::DampFeatures,
    /*f32_to_f16=*/reference::F32ToF16,
    /*quantize_i8=*/reference::QuantizeI8,
    /*features=*/
    {
#define TARN_REFERENCE(id, ...) reference::id##Features,
        TARN_FEATURE_MAPS(TARN_REFERENCE)
#undef TARN_REFERENCE
    },
    /*linear_steps=*/reference::LinearSteps,
    /*linear_chunk=*/reference::LinearChunk,
    /*linear_write=*/reference::LinearWrite,
    /*linear_read=*/reference::LinearRead,
    /*delta_step=*/reference::DeltaStep,
    /*delta_chunk=*/reference::DeltaChunk,
    /*slot_control_step=*/
    {
#define TARN_REFERENCE(id, ...) reference::id##Step,
#define TARN_IGNORE(...)
        TARN_SLOT_CONTROLS(TARN_REFERENCE, TARN_IGNORE)
#undef TARN_REFERENCE
    },
    /*slot_control_chunk=*/
    {
#define TARN_REFERENCE(id, ...) reference::id##Chunk,
        TARN_SLOT_CONTROLS(TARN_REFERENCE, TARN_IGNORE)
#undef TARN_REFERENCE
#undef TARN_IGNORE
    },
    /*slot_step=*/reference::SlotStep,
    /*slot_chunk=*/reference::SlotChunk,
    /*abc_block=*/reference::AbcBlock,
    /*nearest_slot=*/reference::NearestSlot,
    /*slot_write=*/reference::SlotWrite,
    /*slot_read=*/reference::SlotRead,
    /*cache_attend=*/reference::CacheAttend,
    /*score_rows=*/reference::ScoreRows,
    /*score_peak=*/reference::ScorePeak,
    /*softmax_rows=*/reference::SoftmaxRows,
    /*weigh_rows=*/reference::WeighRows,
    /*nearest_code=*/reference::NearestCode,
    /*dense_f32=*/reference::DenseF32,
    /*dense_f16=*/reference::DenseF16,
    /*quantize_qdu8=*/reference::QuantizeQdu8,
    /*quantize_qd8=*/reference::QuantizeQd8,
    /*dense_qdu8_qc8w=*/reference::DenseQdu8Qc8w,
    /*dense_qdu8_qb4w=*/reference::DenseQdu8Qb4w,
    /*dense_qdu8_planes=*/reference::DenseQdu8Planes,
    /*pack_panels=*/nullptr,
    /*dense_qdu8_panel=*/nullptr,
    /*step_gate=*/reference::StepGate,
    /*tied_gate=*/reference::TiedGate,
    /*sigmoid_gate=*/reference::SigmoidGate,
    /*replace_step=*/reference::ReplaceStep,
    /*skip=*/reference::Skip,
    /*blend=*/reference::Blend,
};

}  // namespace tarn

#endif  // TARN_KERNELS_REFERENCE_REFERENCE_TABLE_H_
