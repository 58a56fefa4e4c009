// 8.5.1 and later put uncompressed libraries at multiples of 16 KiB, as devices with such pages want them.
plugins {
    id("com.android.library") version "8.7.3" apply false
    id("com.android.application") version "8.7.3" apply false
}
