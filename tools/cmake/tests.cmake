# Tests by convention, so that adding one is adding a file under tests/<directory>/:
#
#   <x>_test.cc        GoogleTest; all of a directory's make one binary, test_<directory>
#   <x>_full_test.cc   the same for long runs: test_<directory>_full
#   other .cc          helpers of the directory, in both binaries
#   <x>_test.sh, .py   scripts; <x>_full.sh, .py for long runs
#   bare/              GoogleTest over the library without an operating system, with the ops of examples/bare_metal; logits.c has all
#   capi/<x>.c         C99 programs, linked with libtarn.a and with libtarn.so
#   fuzz/              fuzzers.cmake
#   golden/golden_test.cc   a tool as well as a test: build/bin/golden_test, run over golden/data
#
# Every test runs in the source folder and finds both folders in TARN_SOURCE and TARN_BUILD, and flatc in TARN_FLATC.
# Labels: `fast` for `make test`, `full` for `make test-full`; scripts are also labelled `script`.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
if(CMAKE_CROSSCOMPILING)
  # The distribution's package has the sources too.
  set(gtest_source /usr/src/googletest/googletest)
  add_library(gtest_main STATIC ${gtest_source}/src/gtest-all.cc ${gtest_source}/src/gtest_main.cc)
  target_include_directories(gtest_main SYSTEM PUBLIC ${gtest_source}/include PRIVATE ${gtest_source})
  target_compile_options(gtest_main PRIVATE -w)
  target_link_libraries(gtest_main PUBLIC Threads::Threads)
  add_library(GTest::gtest ALIAS gtest_main)
  add_library(GTest::gtest_main ALIAS gtest_main)
else()
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    message(FATAL_ERROR "GoogleTest is not installed, and tarn's tests need it. "
                        "Run: ${PROJECT_SOURCE_DIR}/tools/dev/packages.sh build; or do without: -DTARN_BUILD_TESTS=OFF")
  endif()
endif()

function(tarn_add_test name label)  # name label command...
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set(environment TARN_SOURCE=${PROJECT_SOURCE_DIR} TARN_BUILD=${PROJECT_BINARY_DIR} TARN_FLATC=${TARN_FLATC}
                  TARN_PACKED_CACHE=none)
  if(TARGET bare_logits)
    list(APPEND environment TARN_BARE_LOGITS=${PROJECT_BINARY_DIR}/tests/bare_logits)
  endif()
  if(TARN_SANITIZE)
    # Failing allocations are tested: they must return NULL as they do without the sanitizer.
    list(APPEND environment ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1
         UBSAN_OPTIONS=print_stacktrace=1)
  endif()
  set(timeout 300)
  if("${label}" STREQUAL "full")  # quoted: `full` is a variable's name below
    set(timeout 3600)
  elseif(TARN_SANITIZE)  # which everything takes several times as long with
    set(timeout 900)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout} ENVIRONMENT "${environment}")
endfunction()

# What a test may see: everything.
add_library(tarn_test_base INTERFACE)
target_include_directories(tarn_test_base INTERFACE ${PROJECT_SOURCE_DIR})
# Compiles in two thirds of the time; what is tested keeps its options, and a debugger its variables.
target_compile_options(tarn_test_base INTERFACE $<$<NOT:$<CONFIG:Debug>>:-O1>)
if(NOT CMAKE_CROSSCOMPILING)
  add_subdirectory(examples/bare_metal)  # on this machine, so that it cannot rot
  target_include_directories(tarn_bare INTERFACE ${PROJECT_SOURCE_DIR})
  tarn_add_bare_library(tarn_bare_all "")
  add_executable(bare_logits tests/bare/logits.c)  # for e2e/lm_test.py
  target_link_libraries(bare_logits PRIVATE tarn_bare_all tarn_program)
endif()
target_link_libraries(tarn_test_base INTERFACE tarn_convert tarn_deps::highway)
if(TARN_XNNPACK)
  target_link_libraries(tarn_test_base INTERFACE tarn_deps::xnnpack)
endif()

# Headers that are compiled once for the tests of all directories. An executable, as those are: libraries have other options.
file(CONFIGURE OUTPUT ${generated}/tests_headers.cc CONTENT "int main() {}\n")
add_executable(tests_headers EXCLUDE_FROM_ALL ${generated}/tests_headers.cc)
target_link_libraries(tests_headers PRIVATE tarn_test_base GTest::gtest GTest::gtest_main)
target_precompile_headers(tests_headers PRIVATE <gtest/gtest.h> <nlohmann/json.hpp> <algorithm> <functional> <random> <string>
                                                <vector>)

# --- GoogleTest, one binary per directory ---------------------------------------------------------------------------

function(tarn_add_directory_tests directory label binary sources)
  if(sources)
    add_executable(${binary} ${sources} ${ARGN})
    set(library tarn_test_base)
    if(directory STREQUAL "bare")
      set(library tarn_bare tarn_program)
    endif()
    target_link_libraries(${binary} PRIVATE ${library} GTest::gtest GTest::gtest_main)
    if(NOT directory STREQUAL "bare")  # which has other options
      target_precompile_headers(${binary} REUSE_FROM tests_headers)
    endif()
    if(directory STREQUAL "platform")
      target_link_options(${binary} PRIVATE -Wl,--wrap=pthread_create)  # so that it can fail
    endif()
    tarn_add_test(${directory} ${label} ${binary})
  endif()
endfunction()

file(GLOB directories CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE ${PROJECT_SOURCE_DIR}/tests tests/*)
if(CMAKE_CROSSCOMPILING)
  # Emulated cores test what runs on a device. A target of 32 bits stands for all as to the width of a pointer and the sign of `char`;
  # on others, what depends on the instruction set.
  list(REMOVE_ITEM directories bare)
  if(NOT CMAKE_SIZEOF_VOID_P EQUAL 4)
    set(directories kernels model platform session)
  endif()
endif()
set(TARN_TEST_DIRECTORIES "" CACHE STRING "Directories of tests/ whose GoogleTests are built; empty: all that the target has")
if(TARN_TEST_DIRECTORIES)
  foreach(directory IN LISTS TARN_TEST_DIRECTORIES)
    if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/${directory})
      message(FATAL_ERROR "TARN_TEST_DIRECTORIES: tests/${directory} is no directory")
    endif()
  endforeach()
  list(JOIN TARN_TEST_DIRECTORIES "|" chosen)
  list(FILTER directories INCLUDE REGEX "^(${chosen})$")
endif()
foreach(directory IN LISTS directories)
  file(GLOB helpers CONFIGURE_DEPENDS tests/${directory}/*.cc)
  list(FILTER helpers EXCLUDE REGEX "/(golden_test|replay_main|[a-z0-9_]+_fuzz)\\.cc$")  # programs of their own, below
  set(fast ${helpers})
  list(FILTER helpers EXCLUDE REGEX "_test\\.cc$")
  list(FILTER fast INCLUDE REGEX "_test\\.cc$")
  set(full ${fast})
  list(FILTER fast EXCLUDE REGEX "_full_test\\.cc$")
  list(FILTER full INCLUDE REGEX "_full_test\\.cc$")
  tarn_add_directory_tests(${directory} fast test_${directory} "${fast}" ${helpers})
  tarn_add_directory_tests(${directory}_full full test_${directory}_full "${full}" ${helpers})
endforeach()

# --- C programs ------------------------------------------------------------------------------------------------

file(GLOB c_programs CONFIGURE_DEPENDS tests/capi/*.c)
foreach(source IN LISTS c_programs)
  cmake_path(GET source STEM stem)
  foreach(library IN ITEMS tarn tarn_shared)
    set(name capi_${stem}_${library})
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${library} tarn_program)
    if(TARN_SANITIZE)  # the sanitizers' library for C lacks what ours needs
      set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
    endif()
    tarn_add_test(${name} fast ${name})
  endforeach()
endforeach()

# --- golden files ----------------------------------------------------------------------------------------------

file(GLOB helpers CONFIGURE_DEPENDS tests/golden/*.cc)
list(FILTER helpers EXCLUDE REGEX "_test\\.cc$")
add_executable(golden_test tests/golden/golden_test.cc ${helpers})
set_target_properties(golden_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
target_link_libraries(golden_test PRIVATE tarn_test_base)
tarn_add_test(golden_files fast golden_test --target all tests/golden/data)

if(NOT CMAKE_CROSSCOMPILING)
  include(tools/cmake/fuzzers.cmake)
endif()

# --- calls to the system that fail on demand (`make faults`) ---------------------------------------------------------------

# Sanitizers have an allocator of their own. Where a program cannot be started here, nothing would run it.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_CROSSCOMPILING AND NOT TARN_SANITIZE)
  add_library(tarn_faults SHARED tests/faults/faults.c)
  target_link_libraries(tarn_faults PRIVATE tarn_program ${CMAKE_DL_LIBS})
  add_executable(faults_library tests/faults/library.c)
  target_link_libraries(faults_library PRIVATE tarn_faults tarn_shared tarn_program)  # in this order: before the C library
endif()

# --- scripts ---------------------------------------------------------------------------------------------------

file(GLOB_RECURSE scripts CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests
     tests/*_test.sh tests/*_test.py tests/*_full.sh tests/*_full.py)
foreach(script IN LISTS scripts)
  string(REGEX REPLACE "\\.[a-z]+$" "" name ${script})
  string(REPLACE / _ name ${name})
  set(label fast)
  if(name MATCHES "_full$")
    set(label full)
  endif()
  set(interpreter bash)
  if(script MATCHES "\\.py$")
    set(interpreter python3)
  endif()
  tarn_add_test(${name} ${label} ${interpreter} ${PROJECT_SOURCE_DIR}/tests/${script})
  set_property(TEST ${name} APPEND PROPERTY LABELS script)
endforeach()

# --- schema: what was released stays readable ------------------------------------------------------------------

file(GLOB released CONFIGURE_DEPENDS schema/v*.fbs)
foreach(schema IN LISTS released)
  cmake_path(GET schema STEM LAST_ONLY version)
  tarn_add_test(schema_conforms_to_${version} fast ${TARN_FLATC} --conform ${schema} ${PROJECT_SOURCE_DIR}/schema/tarn.fbs)
endforeach()

# --- micro-benchmarks ------------------------------------------------------------------------------------------

find_package(benchmark QUIET)
if(benchmark_FOUND)
  file(GLOB bench_sources CONFIGURE_DEPENDS tests/bench/*.cc)
  add_executable(tarn_microbench ${bench_sources})
  set_target_properties(tarn_microbench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  target_link_libraries(tarn_microbench PRIVATE tarn_test_base benchmark::benchmark)
  # That they run, not how fast: all but the slowest.
  tarn_add_test(microbench_runs fast tarn_microbench --benchmark_min_time=0.0001 --benchmark_filter=-dense_model|f32)
endif()

# --- what a token costs at any depth: instructions (by ptrace, or under QEMU) and time -----------------------------------------

if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  foreach(name IN ITEMS instructions marked_step step_time speculation_time)
    add_executable(tarn_${name} tests/bench/${name}.c)
    set_target_properties(tarn_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
    target_include_directories(tarn_${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(tarn_${name} PRIVATE tarn tarn_program)
    if(TARN_STATIC_TOOLS)  # for boards, as the tools are
      target_link_libraries(tarn_${name} PRIVATE tarn_tools)
    endif()
  endforeach()
endif()
