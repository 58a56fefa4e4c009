# 32-bit ARM boards, hard float: ARMv7-A with NEON and VFPv4 (Cortex-A5, A7, A12, A15, A17, and every ARMv8 core in 32-bit mode; not
# Cortex-A8 and A9). Highway has NEON on 32-bit ARM only with fused multiply-add, so VFPv4 is the floor.
set(TARN_DEBIAN_ARCHITECTURE armhf)
set(CMAKE_SYSTEM_PROCESSOR armv7)
set(CMAKE_CXX_COMPILER_TARGET arm-linux-gnueabihf)
set(CMAKE_C_FLAGS_INIT "-march=armv7-a -mfpu=neon-vfpv4 -mfloat-abi=hard")
include(${CMAKE_CURRENT_LIST_DIR}/linux-cross.cmake)
