# Included by XNNPACK's project() when deps.sh builds it: of its kernels and operators, those of fully connected layers. The rest, five
# files of six, is in no program of ours.

function(tarn_keep target pattern)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "${pattern}")
  set_property(TARGET ${target} PROPERTY SOURCES ${sources})
endfunction()

function(tarn_keep_dense)
  tarn_keep(microkernels-prod gemm)
  tarn_keep(operators "fully-connected|operator-delete")
  get_target_property(parts XNNPACK LINK_LIBRARIES)
  list(REMOVE_ITEM parts subgraph)
  set_property(TARGET XNNPACK PROPERTY LINK_LIBRARIES ${parts})
endfunction()

cmake_language(DEFER CALL tarn_keep_dense)
