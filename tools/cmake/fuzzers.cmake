# Fuzzers: tests/fuzz/<x>_fuzz.cc is a program, linked with the other files there. Its corpus/<x>/ is replayed as a fast test.

file(GLOB fuzzers CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cc)
add_custom_target(fuzzers)
# The schema once more, with tables that say what is where.
add_custom_command(
  OUTPUT ${generated}/reflected/tarn_generated.h
  COMMAND ${TARN_FLATC} --cpp --scoped-enums --cpp-std c++17 --reflect-types -o ${generated}/reflected
          ${PROJECT_SOURCE_DIR}/schema/tarn.fbs
  DEPENDS schema/tarn.fbs ${TARN_FLATC}
  VERBATIM)
add_library(fuzz_support STATIC tests/fuzz/graph_fields.cc tests/fuzz/use_model.cc ${generated}/reflected/tarn_generated.h)
target_link_libraries(fuzz_support PUBLIC tarn_test_base)
foreach(source IN LISTS fuzzers)
  cmake_path(GET source STEM binary)
  string(REGEX REPLACE "_fuzz$" "" name ${binary})
  add_executable(${binary} ${source})
  set_target_properties(${binary} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_link_libraries(${binary} PRIVATE fuzz_support)
  if(TARN_FUZZ)
    target_link_options(${binary} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${binary} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
  endif()
  add_dependencies(fuzzers ${binary})
  file(GLOB corpus CONFIGURE_DEPENDS tests/fuzz/corpus/${name}/*)
  if(corpus)
    tarn_add_test(fuzz_${name} fast ${binary} ${corpus})
  endif()
endforeach()
