// A screen on which the default model writes.
plugins {
    id("com.android.application")
}

android {
    namespace = "tarn.demo"
    compileSdk = 34

    defaultConfig {
        applicationId = "tarn.demo"
        minSdk = 24
        targetSdk = 34
        versionCode = 1
        versionName = "0.1.0"
        ndk { abiFilters += listOf("arm64-v8a", "armeabi-v7a") }
    }

    sourceSets { getByName("main") { assets.srcDir("../../models") } }

    // Models are mapped where they lie in the APK.
    androidResources { noCompress += "tarn" }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
}

dependencies {
    implementation(project(":tarn"))
}
