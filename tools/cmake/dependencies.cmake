# The dependencies as targets deps::<name>. What `make setup` built lies in the cache; deps.sh knows where.

set(deps_script ${PROJECT_SOURCE_DIR}/tools/dev/deps.sh)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${deps_script} ${PROJECT_SOURCE_DIR}/tools/dev/deps.lock)
function(find_dependencies result)  # arguments of deps.sh
  execute_process(COMMAND ${deps_script} ${ARGN} --prefix
                  OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT IS_DIRECTORY ${prefix})
    message(FATAL_ERROR "The dependencies are not built yet (${prefix}). Run: make setup (make cross for another machine)")
  endif()
  set(${result} ${prefix} PARENT_SCOPE)
endfunction()

find_dependencies(native_deps)
set(TARN_FLATC ${native_deps}/bin/flatc)
set(deps ${native_deps})
if(CMAKE_TOOLCHAIN_FILE AND NOT TARN_BARE)  # which takes headers only, and those of this machine
  find_dependencies(deps --toolchain ${CMAKE_TOOLCHAIN_FILE})
endif()

# IMPORTED, so that compilers see the headers as system headers: our warnings are not for them.
function(add_dependency name)
  add_library(deps::${name} INTERFACE IMPORTED)
  target_include_directories(deps::${name} INTERFACE ${deps}/include)
  list(TRANSFORM ARGN PREPEND ${deps}/lib/)
  target_link_libraries(deps::${name} INTERFACE ${ARGN})
endfunction()

add_dependency(xnnpack libXNNPACK.a libmicrokernels-prod.a libcpuinfo.a)
add_dependency(highway libhwy.a)
add_dependency(flatbuffers)
add_dependency(xxhash)
target_link_libraries(deps::xnnpack INTERFACE m)

if(NOT TARN_BUILD_TOOLS AND NOT TARN_BUILD_TESTS)
  return()
endif()

# Distribution packages, header-only: the build machine's will do for any target. Through links of our own, since a compiler for
# another machine must not look into the folder that they lie in.
set(host_headers ${PROJECT_BINARY_DIR}/generated/packages)
file(MAKE_DIRECTORY ${host_headers})
function(add_package name header folder)
  find_path(${name}_include ${header} REQUIRED NO_CMAKE_FIND_ROOT_PATH)
  file(CREATE_LINK ${${name}_include}/${folder} ${host_headers}/${folder} SYMBOLIC)
  add_library(deps::${name} INTERFACE IMPORTED)
  target_include_directories(deps::${name} INTERFACE ${host_headers})
endfunction()
add_package(json nlohmann/json.hpp nlohmann)
add_package(cli11 CLI/CLI.hpp CLI)
