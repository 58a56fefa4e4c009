# Android 7 (API 24) and later, 32-bit. VFPv4: see linux-armv7.cmake.
set(ANDROID_ABI armeabi-v7a)
set(CMAKE_C_FLAGS_INIT "-mfpu=neon-vfpv4")
set(CMAKE_CXX_FLAGS_INIT "-mfpu=neon-vfpv4")
include(${CMAKE_CURRENT_LIST_DIR}/android-ndk.cmake)
