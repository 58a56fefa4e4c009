# What the Android targets have in common: the NDK's own toolchain file, whichever NDK ANDROID_NDK_HOME names.
if(NOT EXISTS $ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake)
  message(FATAL_ERROR "ANDROID_NDK_HOME: no NDK in \"$ENV{ANDROID_NDK_HOME}\" (build/cmake/android.toolchain.cmake is missing)")
endif()
set(ANDROID_PLATFORM android-24)
set(ANDROID_STL c++_static)
set(ANDROID_SUPPORT_FLEXIBLE_PAGE_SIZES ON)  # NDK r27; r28 and later do it by themselves
foreach(kind IN ITEMS EXE SHARED MODULE)
  # For every NDK: Android 15 devices may have pages of 16 KiB.
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,-z,max-page-size=16384 -Wl,-z,noexecstack")
endforeach()
include($ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake)
