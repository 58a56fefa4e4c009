#!/usr/bin/env python3
"""Packages what is built: a tarball for each Linux target, an AAR for Android, and SHA256SUMS of them all.

    dist.py [-o FOLDER] TARGET=BUILD...     for example linux-aarch64=build/linux-aarch64

Targets whose names begin with android- go into one AAR: headers and the shared library of each ABI in the layout of prefab, where
CMake finds them in an Android project; the Java classes of examples/android are not in it. The same commit gives the same bytes:
names are sorted, owners are root, times are the commit's (or SOURCE_DATE_EPOCH, seconds since 1970).
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ANDROID_API = 24
DOCUMENTS = "share/doc/tarn"
MISSING_LICENCE = "(the text was not on the machine that built this)"  # notices.cmake


def die(message):
    sys.exit(f"dist: {message}")


def output(*command):
    done = subprocess.run([str(part) for part in command], cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        die(f"{command[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def version():
    """The header's, which is the only place that says it."""
    header = (ROOT / "runtime/include/tarn/tarn.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"^#define TARN_VERSION_{part} (\d+)$", header, re.MULTILINE).group(1)
                    for part in ["MAJOR", "MINOR", "PATCH"])


def commit_time():
    return int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct"))


def ndk():
    return pathlib.Path(os.environ.get("ANDROID_NDK_HOME") or die("ANDROID_NDK_HOME is not set"))


def ndk_major():
    properties = (ndk() / "source.properties").read_text(encoding="utf-8")
    return int(re.search(r"^Pkg\.Revision *= *(\d+)", properties, re.MULTILINE).group(1))


def cache_entry(build, name):
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(rf"^{name}:\w+=(.*)$", cache, re.MULTILINE)
    return found.group(1) if found else ""


def install(build, stage):
    """What CMake's install rules put under a prefix, stripped."""
    if not (build / "CMakeCache.txt").exists():
        die(f"{build}: no build there (make dist makes them all)")
    output("cmake", "--install", build.resolve(), "--prefix", stage, "--strip")
    if MISSING_LICENCE in (stage / DOCUMENTS / "NOTICES").read_text(encoding="utf-8"):
        die(f"{build}: NOTICES lacks a licence: cmake warns which (its Debian package or the NDK has it)")


# --- archives ------------------------------------------------------------------------------------------------


def write(file, content):
    """Under its name only when it is whole."""
    partial = file.with_name(file.name + ".partial")
    partial.write_bytes(content)
    partial.replace(file)
    print(f"{file} ({len(content)} bytes)")


def tarball(folder, seconds):
    """A folder's content as a .tar.gz, in bytes; the folder's own name is the top."""

    def plain(entry):
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = seconds, 0, 0, "root", "root"
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path in [folder, *sorted(folder.rglob("*"), key=str)]:
                tar.add(path, arcname=path.relative_to(folder.parent), recursive=False, filter=plain)
    return packed.getvalue()


def zipped(folder, seconds):
    """A folder's content as a zip, in bytes. Zips know no time before 1980."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted((path for path in folder.rglob("*") if path.is_file()), key=str):
            entry = zipfile.ZipInfo(str(path.relative_to(folder)), max(time.gmtime(seconds)[:6], (1980, 1, 1, 0, 0, 0)))
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, 0o100644 << 16, 3
            archive.writestr(entry, path.read_bytes())
    return packed.getvalue()


# --- packages ------------------------------------------------------------------------------------------------


def package_linux(target, build, work, seconds):
    """(name, bytes) of the tarball of one target."""
    stage = work / f"tarn-{version()}-{target}"
    install(build, stage)
    return f"{stage.name}.tar.gz", tarball(stage, seconds)


def write_json(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def package_android(builds, work, seconds):
    """(name, bytes) of the AAR. Its `stl` is none: the API is C, and libc++ is inside, hidden."""
    stage = work / "aar"
    module = stage / "prefab/modules/tarn"
    write_json(stage / "prefab/prefab.json", {"schema_version": 2, "name": "tarn", "version": version(), "dependencies": []})
    write_json(module / "module.json", {"export_libraries": [], "library_name": "libtarn"})
    for target, build in builds:
        abi = target.removeprefix("android-")
        installed = work / target
        install(build, installed)
        library = module / "libs" / f"android.{abi}"
        write_json(library / "abi.json", {"abi": abi, "api": ANDROID_API, "ndk": ndk_major(), "stl": "none", "static": False})
        (installed / "lib/libtarn.so").rename(library / "libtarn.so")
        if not (module / "include").exists():
            (installed / "include").rename(module / "include")
    (stage / "AndroidManifest.xml").write_text(
        '<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="tarn.android"\n'
        f'    android:versionName="{version()}">\n  <uses-sdk android:minSdkVersion="{ANDROID_API}" />\n</manifest>\n',
        encoding="utf-8")
    for name in ["LICENSE", "NOTICES"]:
        (work / builds[0][0] / DOCUMENTS / name).rename(stage / name)
    return f"tarn-{version()}-android.aar", zipped(stage, seconds)


def is_android(target):
    return target.startswith("android-")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="TARGET=BUILD")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    builds = [(target, pathlib.Path(build)) for target, _, build in (text.partition("=") for text in arguments.builds)]
    android = [(target, build) for target, build in builds if is_android(target)]
    arguments.output.mkdir(parents=True, exist_ok=True)
    seconds, sums = commit_time(), []
    with tempfile.TemporaryDirectory() as work:
        packages = [package_linux(target, build, pathlib.Path(work), seconds) for target, build in builds if not is_android(target)]
        if android:
            packages.append(package_android(android, pathlib.Path(work), seconds))
    for name, content in sorted(packages):
        write(arguments.output / name, content)
        sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
    write(arguments.output / "SHA256SUMS", "".join(sums).encode("ascii"))


if __name__ == "__main__":
    main()
