# Cortex-M without an operating system. TARN_CORTEX: m4, m7, m33 or m55.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # a program would need startup code
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TARN_CORTEX)

set(cpu_m4 -mfpu=fpv4-sp-d16)
set(cpu_m7 -mfpu=fpv5-sp-d16)  # single precision, which every M7 has
set(cpu_m33 -mfpu=fpv5-sp-d16)
# With Helium, GNU as 2.40 takes a conditional vcvt, `vcvtne.s32.f32`, for an unknown form of vcvtn: no conditional instructions.
set(cpu_m55 "-mfpu=auto -fno-if-conversion2")
if(NOT DEFINED cpu_${TARN_CORTEX})
  message(FATAL_ERROR "TARN_CORTEX is '${TARN_CORTEX}'; m4, m7, m33 or m55 expected")
endif()
# CMake reads the flags below once: a build directory that goes on with another core would keep them.
if(DEFINED CACHE{TARN_CONFIGURED_CORTEX} AND NOT TARN_CORTEX STREQUAL "$CACHE{TARN_CONFIGURED_CORTEX}")
  message(FATAL_ERROR "TARN_CORTEX is ${TARN_CORTEX}, but this build directory is for $CACHE{TARN_CONFIGURED_CORTEX}: "
                      "take another one, or cmake --fresh")
endif()
set(TARN_CONFIGURED_CORTEX ${TARN_CORTEX} CACHE INTERNAL "the core that the flags are for")
set(flags "-mcpu=cortex-${TARN_CORTEX} -mthumb -mfloat-abi=hard ${cpu_${TARN_CORTEX}}")
set(CMAKE_C_FLAGS_INIT "${flags}")
set(CMAKE_CXX_FLAGS_INIT "${flags} -fno-threadsafe-statics -fno-use-cxa-atexit")
set(CMAKE_ASM_FLAGS_INIT "${flags}")
