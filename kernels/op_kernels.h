// Which kernels of the table an op calls. For builds that link a few ops only, and for the table of attention variants.
#ifndef TARN_KERNELS_OP_KERNELS_H_
#define TARN_KERNELS_OP_KERNELS_H_

// X(kernel, ops...): `kernel`, a field of Kernels, is called by these ops and no others (ops as in schema/tarn.fbs).
// tests/bare/kernels_of_ops_test.py holds the list against the sources of the ops. What is not here serves all ops.
#define TARN_OP_KERNELS(X)                                                                \
  X(layer_norm, "Norm")                                                                   \
  X(rms_norm, "Norm")                                                                     \
  X(relu, "Activation")                                                                   \
  X(gelu, "Activation")                                                                   \
  X(gelu_tanh, "Activation")                                                              \
  X(tanh, "Activation")                                                                   \
  X(silu, "Activation")                                                                   \
  X(relu_squared, "Activation")                                                           \
  X(soft_cap, "Activation")                                                               \
  X(silu_mul, "SiluMul")                                                                  \
  X(gelu_mul, "SiluMul")                                                                  \
  X(gelu_tanh_mul, "SiluMul")                                                             \
  X(sigmoid_mul, "SiluMul", "LinearState")                                                \
  X(mul, "SiluMul", "LinearState")                                                        \
  X(causal_conv, "CausalConv")                                                            \
  X(diagonal_recurrence, "DiagonalRecurrence")                                            \
  X(skip, "Skip")                                                                         \
  X(blend, "Blend")                                                                       \
  X(sinusoid, "AddSinusoid", "RopeAngles")                                                \
  X(rope, "Rope")                                                                         \
  X(forget_gate, "LinearState")                                                           \
  X(vector_gate, "LinearState")                                                           \
  X(softplus_gate, "LinearState")                                                         \
  X(step_gate, "LinearState")                                                             \
  X(tied_gate, "LinearState")                                                             \
  X(sigmoid_gate, "LinearState")                                                          \
  X(scaled_sigmoid, "LinearState", "Activation")                                          \
  X(l2_normalize, "LinearState", "NoncausalLinear")                                       \
  X(features, "LinearState", "NoncausalLinear")                                           \
  X(sum_normalize, "LinearState", "NoncausalLinear")                                      \
  X(half_squared_norm, "LinearState", "NoncausalLinear")                                  \
  X(running_max, "LinearState")                                                           \
  X(block_max, "NoncausalLinear")                                                         \
  X(damp_features, "NoncausalLinear")                                                     \
  X(linear_steps, "LinearState")                                                          \
  X(linear_chunk, "LinearState")                                                          \
  X(linear_write, "NoncausalLinear")                                                      \
  X(linear_read, "NoncausalLinear")                                                       \
  X(delta_step, "LinearState")                                                            \
  X(delta_chunk, "LinearState")                                                           \
  X(replace_step, "LinearState")                                                          \
  X(slot_control_step, "SlotMemory")                                                      \
  X(slot_control_chunk, "SlotMemory")                                                     \
  X(slot_step, "SlotMemory")                                                              \
  X(slot_chunk, "SlotMemory")                                                             \
  X(abc_block, "NoncausalSlots")                                                          \
  X(nearest_slot, "NoncausalSlots")                                                       \
  X(slot_write, "NoncausalSlots")                                                         \
  X(slot_read, "NoncausalSlots")                                                          \
  X(cache_attend, "CacheAttention", "NoncausalCache", "ClusteredAttention", "ProbSparse") \
  X(score_rows, "ClusteredAttention")                                                     \
  X(score_peak, "ProbSparse")                                                             \
  X(softmax_rows, "ClusteredAttention")                                                   \
  X(weigh_rows, "ClusteredAttention")                                                     \
  X(nearest_code, "ClusteredAttention")

#endif  // TARN_KERNELS_OP_KERNELS_H_
