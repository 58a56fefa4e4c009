# The dependencies as targets tarn_deps::<name>.

# --- the library's ---------------------------------------------------------------------------------------------

# Pinned, and not looked for elsewhere: the library has XNNPACK's bits and reads its packing, and calls functions of cpuinfo that no
# package installs. tools/dev/deps.sh builds them once per machine, target and compiler, into the user's cache.
option(TARN_BUILD_DEPS "Fetch and build the dependencies while configuring, where the cache lacks them" ON)
set(deps_script ${PROJECT_SOURCE_DIR}/tools/dev/deps.sh)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${deps_script} ${PROJECT_SOURCE_DIR}/tools/dev/deps.lock)
# For a project that asks for CMake below 3.24 (policy CMP0132), a first configuration puts its compilers into CC and CXX: those of
# another CPU perhaps. The script wants those of this machine.
set(run_deps_script ${CMAKE_COMMAND} -E env)
if(CMAKE_CROSSCOMPILING)
  list(APPEND run_deps_script --unset=CC --unset=CXX)
endif()
list(APPEND run_deps_script ${deps_script})
function(tarn_find_dependencies result)  # arguments of deps.sh
  execute_process(COMMAND ${run_deps_script} ${ARGN} --prefix
                  OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(TARN_BUILD_DEPS AND NOT IS_DIRECTORY ${prefix})
    execute_process(COMMAND ${run_deps_script} ${ARGN})  # tells its progress, and what fails
  endif()
  if(NOT IS_DIRECTORY ${prefix})
    list(JOIN ARGN " " arguments)
    message(FATAL_ERROR "The dependencies of tarn are not built (${prefix}). "
                        "Run: ${PROJECT_SOURCE_DIR}/tools/dev/packages.sh build && ${deps_script} ${arguments}")
  endif()
  set(${result} ${prefix} PARENT_SCOPE)
endfunction()

tarn_find_dependencies(native_deps)
set(TARN_FLATC ${native_deps}/bin/flatc)
set(deps ${native_deps})
if(CMAKE_TOOLCHAIN_FILE AND NOT TARN_BARE)  # which takes headers only, and those of this machine
  tarn_find_dependencies(deps --toolchain ${CMAKE_TOOLCHAIN_FILE})
endif()

# IMPORTED, so that compilers see the headers as system headers: our warnings are not for them. GLOBAL, since an app that links
# libtarn.a links them.
function(tarn_add_dependency name)  # name archive...
  add_library(tarn_deps::${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(tarn_deps::${name} INTERFACE ${deps}/include)
  list(TRANSFORM ARGN PREPEND ${deps}/lib/)
  target_link_libraries(tarn_deps::${name} INTERFACE ${ARGN})
endfunction()

tarn_add_dependency(xnnpack libXNNPACK.a libmicrokernels-prod.a libcpuinfo.a)
target_link_libraries(tarn_deps::xnnpack INTERFACE m)
target_compile_definitions(tarn_deps::xnnpack INTERFACE TARN_HAVE_XNNPACK=1 TARN_HAVE_CPUINFO=1)
tarn_add_dependency(highway libhwy.a)
tarn_add_dependency(flatbuffers)
tarn_add_dependency(xxhash)

# --- the tools' ------------------------------------------------------------------------------------------------

if(NOT TARN_BUILD_TOOLS)
  return()
endif()

# Header-only, of any version. For another machine, or where there is no file for find_package: through links of our own, since a
# compiler for another machine must not look into the folder that they lie in.
set(host_headers ${PROJECT_BINARY_DIR}/generated/packages)
file(MAKE_DIRECTORY ${host_headers})
function(tarn_add_package name package target header)
  if(NOT CMAKE_CROSSCOMPILING)
    find_package(${package} CONFIG QUIET)
  endif()
  if(TARGET ${target})
    add_library(tarn_deps::${name} ALIAS ${target})
    return()
  endif()
  find_path(${name}_include ${header} NO_CMAKE_FIND_ROOT_PATH)
  if(NOT ${name}_include)
    message(FATAL_ERROR "${package} (${header}) is not installed, and tarn's tools need it. "
                        "Run: ${PROJECT_SOURCE_DIR}/tools/dev/packages.sh build; or do without: -DTARN_BUILD_TOOLS=OFF")
  endif()
  cmake_path(GET header PARENT_PATH folder)
  file(CREATE_LINK ${${name}_include}/${folder} ${host_headers}/${folder} SYMBOLIC)
  add_library(tarn_deps::${name} INTERFACE IMPORTED)
  target_include_directories(tarn_deps::${name} INTERFACE ${host_headers})
endfunction()
tarn_add_package(json nlohmann_json nlohmann_json::nlohmann_json nlohmann/json.hpp)
tarn_add_package(cli11 CLI11 CLI11::CLI11 CLI/CLI.hpp)
