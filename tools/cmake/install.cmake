# What `cmake --install` and `make install` put under a prefix, and `make dist` into tarballs, file for file: headers, both libraries,
# tools with completions and manual pages, the files by which CMake and pkg-config find them, README and licences. All of it is found relative to itself: the folder may
# be moved. The tools need no libtarn.so, so that none of them needs a path to one.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(DIRECTORY runtime/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(TARGETS tarn_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARN_BUILD_TOOLS)
  install(TARGETS tarn_cli tarn_convert_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # What shells and man know of them, where each looks for it.
  set(shell ${PROJECT_SOURCE_DIR}/tools/shell)
  foreach(program IN ITEMS tarn tarn-convert)
    install(FILES ${shell}/${program}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program})
    install(FILES ${shell}/${program}.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _${program})
    install(FILES ${shell}/${program}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endforeach()
  install(DIRECTORY ${shell}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN *.1)
endif()

# --- libtarn.a -------------------------------------------------------------------------------------------------

# One object of ours, the dependencies' and the C++ runtime's in which the C API alone stays global: it links with a plain C
# compiler, and beside another XNNPACK or another C++ runtime. Groups are dissolved (--force-group-allocation): a linker keeps one
# group of a name, and where that is the application's copy of an inline function, references to our local one would lead nowhere.
# Not on Android: its packages hold shared libraries, and lld learned to dissolve groups after the NDKs of today.
if(NOT ANDROID)
  add_executable(tarn_whole $<TARGET_OBJECTS:tarn_objects>)
  set_target_properties(tarn_whole PROPERTIES OUTPUT_NAME tarn SUFFIX .o RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/package
                                              LINKER_LANGUAGE CXX)
  target_link_options(tarn_whole PRIVATE -r -nostdlib -Wl,--no-gc-sections -Wl,--force-group-allocation)
  target_link_libraries(tarn_whole PRIVATE tarn_deps::highway)
  if(TARN_XNNPACK)
    get_target_property(archives tarn_deps::xnnpack INTERFACE_LINK_LIBRARIES)
    list(REMOVE_ITEM archives m)  # the application's
    target_link_libraries(tarn_whole PRIVATE ${archives})
  endif()
  target_link_libraries(tarn_whole PRIVATE stdc++ gcc gcc_eh)

  set(whole_archive ${PROJECT_BINARY_DIR}/package/libtarn.a)
  add_custom_command(
    OUTPUT ${whole_archive}
    # GNU's objcopy makes a unique symbol local only after it has become a weak one.
    COMMAND ${CMAKE_OBJCOPY} --wildcard --weaken-symbol=_Z* $<TARGET_FILE:tarn_whole> tarn_weak.o
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=tarn_* --strip-unneeded tarn_weak.o tarn_api.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${whole_archive}
    COMMAND ${CMAKE_AR} qcDs ${whole_archive} tarn_api.o
    DEPENDS tarn_whole
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/package
    VERBATIM)
  add_custom_target(tarn_whole_archive ALL DEPENDS ${whole_archive})
  install(FILES ${whole_archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# --- how others find it ----------------------------------------------------------------------------------------

set(package ${CMAKE_CURRENT_LIST_DIR}/package)
set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tarn)
configure_package_config_file(${package}/tarn-config.cmake.in package/tarn-config.cmake INSTALL_DESTINATION ${cmake_folder}
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(package/tarn-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/tarn-config.cmake ${PROJECT_BINARY_DIR}/package/tarn-config-version.cmake
        DESTINATION ${cmake_folder})

file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
foreach(name IN ITEMS tarn tarn_static)
  configure_file(${package}/${name}.pc.in package/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# --- what has to come with it -----------------------------------------------------------------------------------

include(tools/cmake/notices.cmake)
install(FILES LICENSE ${package}/README.md ${PROJECT_BINARY_DIR}/package/NOTICES DESTINATION ${CMAKE_INSTALL_DOCDIR})
