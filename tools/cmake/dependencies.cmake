# The dependencies as targets deps::<name>. What `make setup` built lies in the cache; deps.sh knows where.

set(deps_script ${PROJECT_SOURCE_DIR}/tools/dev/deps.sh)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${deps_script} ${PROJECT_SOURCE_DIR}/tools/dev/deps.lock)
if(CMAKE_TOOLCHAIN_FILE AND NOT TARN_BARE)  # which takes headers only, and those of this machine
  set(deps_toolchain --toolchain ${CMAKE_TOOLCHAIN_FILE})
endif()
execute_process(COMMAND ${deps_script} ${deps_toolchain} --prefix
                OUTPUT_VARIABLE deps OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT IS_DIRECTORY ${deps})
  message(FATAL_ERROR "The dependencies are not built yet (${deps}). Run: make setup")
endif()

set(TARN_FLATC ${deps}/bin/flatc)

# IMPORTED, so that compilers see the headers as system headers: our warnings are not for them.
function(add_dependency name)
  add_library(deps::${name} INTERFACE IMPORTED)
  target_include_directories(deps::${name} INTERFACE ${deps}/include)
  list(TRANSFORM ARGN PREPEND ${deps}/lib/)
  target_link_libraries(deps::${name} INTERFACE ${ARGN})
endfunction()

add_dependency(xnnpack libXNNPACK.a libmicrokernels-prod.a libpthreadpool.a libcpuinfo.a)
add_dependency(highway libhwy.a)
add_dependency(flatbuffers)
add_dependency(xxhash)
target_link_libraries(deps::xnnpack INTERFACE m)

if(NOT TARN_BUILD_TOOLS AND NOT TARN_BUILD_TESTS)
  return()
endif()

# Distribution packages, header-only.
find_path(json_include nlohmann/json.hpp REQUIRED)
find_path(cli11_include CLI/CLI.hpp REQUIRED)
add_library(deps::json INTERFACE IMPORTED)
add_library(deps::cli11 INTERFACE IMPORTED)
target_include_directories(deps::json INTERFACE ${json_include})
target_include_directories(deps::cli11 INTERFACE ${cli11_include})
