# How tarn is compiled. Variables and properties are those of its own folders: an app that has it as a subdirectory keeps its own.

set(CMAKE_C_STANDARD 99)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_UNITY_BUILD OFF)  # kernels include themselves once per instruction set
if(NOT no_system)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
else()
  set(CMAKE_COMPILE_WARNING_AS_ERROR OFF)
  set_property(DIRECTORY PROPERTY EXCLUDE_FROM_ALL ON)  # the app builds what it links
endif()

# Everything of ours. Whoever links the sanitized library needs the sanitizers, too.
add_library(tarn_flags INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(tarn_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wundef -Wconversion -Wno-sign-conversion
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Wextra-semi>)
endif()
# On 32-bit systems inode numbers, offsets in folders and sizes of files need not fit 32 bits.
if(CMAKE_SIZEOF_VOID_P EQUAL 4 AND NOT no_system)
  target_compile_definitions(tarn_flags INTERFACE _FILE_OFFSET_BITS=64)
endif()
if(TARN_SANITIZE)
  # vptr needs RTTI.
  target_compile_options(tarn_flags INTERFACE -fsanitize=${TARN_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
                                              -fno-omit-frame-pointer)
  target_link_options(tarn_flags INTERFACE -fsanitize=${TARN_SANITIZE})
endif()
if(TARN_FUZZ)
  target_compile_options(tarn_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The library.
add_library(tarn_library_flags INTERFACE)
target_compile_options(tarn_library_flags INTERFACE -fno-exceptions -fno-rtti -fvisibility=hidden -fvisibility-inlines-hidden
                                                    -ffunction-sections -fdata-sections)

# Tools, tests and examples. Their sizes are those of what is in memory already, which 32 bits hold; the library proves it case by
# case. A target of its own, so that the option comes after -Wconversion.
add_library(tarn_program_flags INTERFACE)
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  target_compile_options(tarn_program_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-shorten-64-to-32>)
endif()
target_link_options(tarn_program_flags INTERFACE -Wl,--gc-sections)
add_library(tarn_program INTERFACE)
target_link_libraries(tarn_program INTERFACE tarn_flags tarn_program_flags)
