# What the Linux targets have in common: Clang and lld, an old Debian's libraries (tools/dev/sysroot.sh), QEMU user mode.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET ${CMAKE_CXX_COMPILER_TARGET})
set(CMAKE_ASM_COMPILER_TARGET ${CMAKE_CXX_COMPILER_TARGET})
set(CMAKE_AR llvm-ar-19 CACHE FILEPATH "")
set(CMAKE_RANLIB llvm-ranlib-19 CACHE FILEPATH "")
set(CMAKE_STRIP llvm-strip-19 CACHE FILEPATH "")
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../../dev/sysroot.sh ${TARN_DEBIAN_ARCHITECTURE} --prefix
                OUTPUT_VARIABLE CMAKE_SYSROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
foreach(kind IN ITEMS EXE SHARED MODULE)
  # XNNPACK's 32-bit assembly does not say that it needs no executable stack.
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=lld-19 -Wl,-z,noexecstack")
endforeach()

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
