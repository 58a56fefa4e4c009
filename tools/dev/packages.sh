#!/usr/bin/env bash
# Installs the Debian packages that a group of make targets needs, after saying which and what for.
#
#   packages.sh build|ci|cross|count|dist|docs|asan|format|android|bare|test-16k|train
#
# TARN_NO_INSTALL=1 never installs. Without root it prints the command for root to run.
set -euo pipefail

case ${1:-} in
  build) needed='
    g++                 compiler of everything
    cmake               build system
    ninja-build         runs the build
    python3             generates file lists of XNNPACK, runs our checks
    xz-utils            unpacks source tarballs
    libgtest-dev        GoogleTest, for the tests
    nlohmann-json3-dev  JSON in tarn-convert and the tools
    libcli11-dev        command lines of the tools
    libbenchmark-dev    Google Benchmark, for the micro-benchmarks' ;;
  ci) needed='
    ccache              what several presets compile alike is compiled once
    python3-jsonschema  judges what JSON schemas allow, for tests/grammar
    libcpp-httplib-dev  HTTP in examples/server, and so its test' ;;
  cross) needed='
    clang-19            compiler for ARM
    lld-19              its linker
    llvm-19             its archiver and strip; llvm-mca
    qemu-user-static    runs ARM programs here' ;;
  dist) needed='
    pkg-config          finds an unpacked package, as its users do' ;;
  docs) needed='
    python3-venv        holds MkDocs and the prose linter, apart from other packages' ;;
  count) needed='
    qemu-user           QEMU that loads plugins, which the static one does not' ;;
  asan) needed='
    clang               compiler with sanitizers and libFuzzer
    libclang-rt-dev     their libraries
    llvm                names of functions in their messages' ;;
  format) needed='
    clang-format        source formatting' ;;
  android) needed='
    default-jdk-headless  Java, for the class library of examples/android
    maven               fetches the framework classes and JUnit for its tests' ;;
  bare) needed='
    gcc-arm-none-eabi             compiler for Cortex-M
    libnewlib-arm-none-eabi       its C library
    libstdc++-arm-none-eabi-dev   headers of C++
    qemu-system-arm               boards to run on' ;;
  test-16k) needed='
    qemu-system-arm     boots a kernel for ARM here' ;;
  train) needed='
    python3-torch          trains the models of examples/train
    libopenblas0-pthread   matrix products; the default ones take ten times as long
    python3-venv           holds the package tarn-train and what it needs from PyPI' ;;
  *) echo 'usage: packages.sh build|ci|cross|count|dist|docs|asan|format|android|bare|test-16k|train' >&2; exit 2 ;;
esac

if ! command -v dpkg-query > /dev/null; then
  echo "setup: not a Debian system; these or their equivalents are needed:$needed"
  exit
fi

missing=()
while read -r package purpose; do
  [ -n "$package" ] || continue
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed && continue
  [ ${#missing[@]} -gt 0 ] || echo 'packages: missing'
  printf '  %-28s %s\n' "$package" "$purpose"
  missing+=("$package")
done <<< "$needed"
[ ${#missing[@]} -gt 0 ] || exit 0

command="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
refused=
[ "$(id -u)" -eq 0 ] || refused='there is no root here'
[ -z "${TARN_NO_INSTALL:-}" ] || refused='TARN_NO_INSTALL is set'
if [ -n "$refused" ]; then
  printf 'setup: %s. Somebody with root must run:\n  %s\n' "$refused" "$command" >&2
  exit 1
fi

# apt's output as a few lines: the size, then a count that moves.
progress() {
  local line total=0 count=0
  while IFS= read -r line; do
    case $line in
      'Need to get '* | 'After this operation'*) echo "  $line" ;;
      *' newly installed, '*) [[ $line =~ ([0-9]+)\ newly ]] && total=${BASH_REMATCH[1]} ;;
      'Setting up '*)
        count=$((count + 1))
        [ ! -t 1 ] || printf '\r  installed %d of %d packages' "$count" "$total" ;;
    esac
  done
  [ ! -t 1 ] || printf '\r'
  printf '  installed %d packages\n' "$total"
}

echo 'packages: installing them'
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
bash -c "$command" 2>&1 | tee "$log" | progress || {
  echo "setup: failed: $command" >&2
  tail -n 15 "$log" >&2
  exit 1
}
