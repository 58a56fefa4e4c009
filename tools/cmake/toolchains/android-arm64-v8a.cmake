# Android 7 (API 24) and later, 64-bit.
set(ANDROID_ABI arm64-v8a)
include(${CMAKE_CURRENT_LIST_DIR}/android-ndk.cmake)
