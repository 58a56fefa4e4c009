# Included by XNNPACK's project() when deps.sh builds it: of its kernels and operators, those of fully connected layers, and those of
# elementwise functions, by which a test judges how rows are quantized. The rest, two files of five, is in no program of ours.

function(tarn_keep target pattern)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "${pattern}")
  set_property(TARGET ${target} PROPERTY SOURCES ${sources})
endfunction()

function(tarn_keep_dense)
  set(functions "abs|clamp|cvt|elu|exp|gelu|hswish|log|lrelu|neg|rnd[a-z]*|rsqrt|sigmoid|sqr|sqrt|tanh|unary")
  tarn_keep(microkernels-prod "gemm|src/tables/|x8-packq/|xx-copy/|-lut/|-r(minmax|sum|dsum)/|-v(${functions})/")
  tarn_keep(operators "fully-connected|unary-elementwise|operator-delete")
  get_target_property(parts XNNPACK LINK_LIBRARIES)
  list(REMOVE_ITEM parts subgraph)
  set_property(TARGET XNNPACK PROPERTY LINK_LIBRARIES ${parts})
endfunction()

cmake_language(DEFER CALL tarn_keep_dense)
