#!/usr/bin/env python3
"""Holds the packages of `make dist` against what they promise, each on its own in an empty folder.

    packages.py FOLDER AGAIN     AGAIN: packages of the same builds, made a second time

A tarball is unpacked; examples/hello_c is built against it by pkg-config and a plain C compiler and by CMake, with the shared and
with the static library, and must write the same text each time (foreign machines: under QEMU). CMake and the NDK build hello_c
against each library of the AAR; only a device can run it.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "examples/models/shakespeare-rfa-gate-int8.tarn"
HELLO = ROOT / "examples/hello_c"
# target -> clang's name of the machine, Debian's, QEMU, further flags
CROSS = {"linux-aarch64": ("aarch64-linux-gnu", "arm64", "qemu-aarch64-static", []),
         "linux-armv7": ("arm-linux-gnueabihf", "armhf", "qemu-arm-static", ["-march=armv7-a", "-mfpu=neon-vfpv4"])}


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"packages: {shlex.join(str(part) for part in command)}\n{done.stdout}{done.stderr}failed with {done.returncode}")
    return done.stdout


def expect(condition, message):
    if not condition:
        sys.exit(f"packages: {message}")


class Machine:
    """How to build for a target, and how to run what was built."""

    def __init__(self, target):
        self.name, self.compiler, self.cmake, self.emulator = "host", ["cc"], [], []
        if target not in CROSS:
            return
        triple, architecture, emulator, flags = CROSS[target]
        sysroot = run(ROOT / "tools/dev/sysroot.sh", architecture, "--prefix").strip()
        self.name = target
        self.compiler = ["clang-19", f"--target={triple}", f"--sysroot={sysroot}", "-fuse-ld=lld-19", *flags]
        self.cmake = [f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/tools/cmake/toolchains/{target}.cmake"]
        self.emulator = [emulator, "-L", sysroot]

    def run(self, *command):
        return run(*self.emulator, *command, cwd="/")


def hello_by_pkg_config(machine, package, work, module):
    environment = {**os.environ, "PKG_CONFIG_LIBDIR": str(package / "lib/pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", module, env=environment).split()
    program = work / f"hello-{module}"
    run(*machine.compiler, "-std=c99", HELLO / "hello.c", *flags, f"-Wl,-rpath,{package}/lib", "-o", program)
    return program


def hello_by_cmake(machine, package, work, static):
    build = work / f"cmake-{static}"
    # Toolchain files look for packages in the sysroot alone; who has one names the folder.
    where = f"-Dtarn_DIR={package}/lib/cmake/tarn" if machine.cmake else f"-DCMAKE_PREFIX_PATH={package}"
    run("cmake", "-S", HELLO, "-B", build, where, f"-DHELLO_STATIC={static}", *machine.cmake)
    run("cmake", "--build", build)
    return build / "hello"


def check_static_library(file):
    """Nothing in it can clash with the application's own: the API alone is global, and it asks for no executable stack."""
    table = [line.split() for line in run("nm", "--defined-only", "--extern-only", file).splitlines()]
    symbols = {fields[2] for fields in table if len(fields) == 3}
    others = sorted(symbol for symbol in symbols if not symbol.startswith("tarn_"))
    expect(symbols and not others, f"{file.name} defines {len(others)} symbols besides tarn_*: {others[:5]}")
    sections = run("readelf", "--wide", "--sections", file)
    stack = re.findall(r"\.note\.GNU-stack +PROGBITS +(?:\w+ +){4}([A-Z]*)", sections)
    expect(stack and all("X" not in flags for flags in stack), f"{file.name}: GNU ld would make the stack executable ({stack})")


def check_paths(package):
    """Nothing says where it was built."""
    places = [str(ROOT).encode(), str(pathlib.Path.home() / ".cache").encode()]
    for file in package.rglob("*"):
        if file.is_symlink():
            expect(not os.path.isabs(os.readlink(file)) and file.exists(), f"{file} leads to {os.readlink(file)}")
        elif file.is_file():
            content = file.read_bytes()
            for place in places:
                expect(place not in content, f"{file} contains the path {place.decode()}")


def check_tarball(file, version, work):
    target = re.fullmatch(rf"tarn-{re.escape(version)}-(.+)\.tar\.gz", file.name).group(1)
    machine = Machine(target)
    with tarfile.open(file) as tar:
        names = tar.getnames()
        expect(names == sorted(names), f"{file.name}: names are not sorted")
        tar.extractall(work)
    package = work / f"tarn-{version}-{target}"
    expect(sorted(work.iterdir()) == [package], f"{file.name}: one folder expected")
    for name in ["LICENSE", "NOTICES", "README.md"]:
        expect((package / "share/doc/tarn" / name).stat().st_size > 0, f"{file.name}: {name} is empty")
    for name in ["man/man1/tarn-run.1", "man/man1/tarn-convert.1", "bash-completion/completions/tarn", "zsh/site-functions/_tarn-convert",
                 "fish/vendor_completions.d/tarn.fish"]:
        expect((package / "share" / name).exists(), f"{file.name}: share/{name} is missing")
    print(run(sys.executable, ROOT / "tools/dev/check_elf.py", machine.name, package).replace(f"{work}/", ""), end="")
    check_static_library(package / "lib/libtarn.a")
    check_paths(package)

    expect(version in machine.run(package / "bin/tarn", "--version"), f"bin/tarn --version does not say {version}")
    expect("--quant" in machine.run(package / "bin/tarn-convert", "--help"), "bin/tarn-convert --help says nothing")
    built = work / "built"
    built.mkdir()
    programs = [hello_by_pkg_config(machine, package, built, "tarn"), hello_by_pkg_config(machine, package, built, "tarn_static"),
                hello_by_cmake(machine, package, built, "OFF"), hello_by_cmake(machine, package, built, "ON")]
    texts = [machine.run(program, MODEL, "ROMEO:") for program in programs]
    for program, text in zip(programs, texts):
        expect(len(text) > 200 and text == texts[0], f"{program} writes {text!r}, {programs[0]} {texts[0]!r}")
    print(f"{file.name}: hello_c by pkg-config and CMake, shared and static: {len(texts[0])} characters, the same four times")


def hello_by_prefab(module, libraries, abi, work):
    """As an app's CMake builds it: with the NDK, and the package file that Gradle has prefab make of such an AAR."""
    work.mkdir()
    (work / "tarn-config.cmake").write_text(f"""
add_library(tarn::tarn SHARED IMPORTED)
set_target_properties(tarn::tarn PROPERTIES IMPORTED_LOCATION "{libraries}/libtarn.so"
                                            INTERFACE_INCLUDE_DIRECTORIES "{module}/include")
""", encoding="utf-8")
    toolchain = pathlib.Path(os.environ["ANDROID_NDK_HOME"]) / "build/cmake/android.toolchain.cmake"
    run("cmake", "-S", HELLO, "-B", work, f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", f"-DANDROID_ABI={abi['abi']}",
        f"-DANDROID_PLATFORM=android-{abi['api']}", f"-Dtarn_DIR={work}")
    run("cmake", "--build", work)
    needs = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "--wide", "--dynamic", work / "hello"))
    expect("libtarn.so" in needs, f"hello for {abi['abi']} needs {needs}, libtarn.so expected by its name alone")


def check_aar(file, folder):
    work = folder / "aar"
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        archive.extractall(work)
    expect(names == sorted(names), f"{file.name}: names are not sorted")
    expect((work / "AndroidManifest.xml").exists(), f"{file.name}: no AndroidManifest.xml")
    prefab = json.loads((work / "prefab/prefab.json").read_text(encoding="utf-8"))
    expect(prefab["name"] == "tarn", f"{file.name}: prefab.json names {prefab['name']}")
    module = work / "prefab/modules/tarn"
    expect((module / "include/tarn/tarn.h").exists() and (module / "module.json").exists(), f"{file.name}: no module tarn")
    folders = sorted((module / "libs").iterdir())
    expect(folders, f"{file.name}: no library")
    for libraries in folders:
        abi = json.loads((libraries / "abi.json").read_text(encoding="utf-8"))
        target, library = f"android-{abi['abi']}", libraries / "libtarn.so"
        expect(libraries.name == f"android.{abi['abi']}", f"{file.name}: {libraries.name}/abi.json is for {abi['abi']}")
        expect((abi["stl"], abi["static"]) == ("none", False), f"{file.name}: {libraries.name}/abi.json asks for an STL: {abi}")
        print(run(sys.executable, ROOT / "tools/dev/check_elf.py", target, library).replace(f"{work}/", ""), end="")
        hello_by_prefab(module, libraries, abi, folder / target)
    check_paths(work)
    print(f"{file.name}: hello_c built for {len(folders)} ABIs")


def main():
    folder, again = map(pathlib.Path, sys.argv[1:])
    listed = [line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text(encoding="ascii").splitlines()]
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=folder)
    for name in [*listed, "SHA256SUMS"]:
        expect((folder / name).read_bytes() == (again / name).read_bytes(), f"{name}: two runs gave different bytes")
    version = re.match(r"tarn-([0-9.]+)-", listed[0]).group(1)
    for name in listed:
        with tempfile.TemporaryDirectory() as work:
            if name.endswith(".aar"):
                check_aar(folder / name, pathlib.Path(work))
            else:
                check_tarball(folder / name, version, pathlib.Path(work))
    print(f"packages: {len(listed)} are good: {' '.join(listed)}")


if __name__ == "__main__":
    main()
