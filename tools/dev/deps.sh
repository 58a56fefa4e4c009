#!/usr/bin/env bash
# Fetches, checks and builds the pinned dependencies (deps.lock) once per machine, target and compiler.
#
#   deps.sh [--toolchain FILE]            build what is missing
#   deps.sh [--toolchain FILE] --prefix   print where the result is, or will be (CMake asks this way)
#
# TARN_CACHE        cache folder                      (default: ${XDG_CACHE_HOME:-~/.cache}/tarn)
# TARN_DEPS_DIR     folder with <name>/ source trees or the pinned tarballs, used instead of the network
# FETCHCONTENT_SOURCE_DIR_<NAME>   source tree of one dependency, e.g. FETCHCONTENT_SOURCE_DIR_XNNPACK
# CC, CXX           compilers of a native build       (default: cc, c++)
#
# Sources come from the first provider that has them: the folders above, the cache, the distribution's
# pristine tarballs (by SHA-256), the upstream repository (by commit).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/apt.sh"
cache=$(realpath -m "${TARN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn}")

toolchain='' prefix_only=''
while [ $# -gt 0 ]; do
  case $1 in
    --toolchain) toolchain=$(realpath "$2"); shift 2 ;;
    --prefix) prefix_only=1; shift ;;
    *) echo "deps.sh: unknown argument $1" >&2; exit 2 ;;
  esac
done

names=()
declare -A suite sha256 upstream commit
while read -r n s h u c; do
  names+=("$n"); suite[$n]=$s; sha256[$n]=$h; upstream[$n]=$u; commit[$n]=$c
done < <(grep -v '^#' "$here/deps.lock")

say() { printf '%s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# --- sources -----------------------------------------------------------------------------------------------

# A source tree that the caller names; such a tree is trusted as it is.
local_tree() {  # name
  local var=FETCHCONTENT_SOURCE_DIR_${1^^}
  if [ -n "${!var:-}" ]; then
    [ -d "${!var}" ] || die "$var: no such folder: ${!var}"
    realpath "${!var}"
  elif [ -n "${TARN_DEPS_DIR:-}" ] && [ -d "$TARN_DEPS_DIR/$1" ]; then
    realpath "$TARN_DEPS_DIR/$1"
  fi
}

matches_pin() { printf '%s  %s\n' "${sha256[$1]}" "$2" | sha256sum --check --status; }  # name file

# The first tarball of a dependency in the given folders that has the pinned hash.
pinned_tarball() {  # name folder...
  local name=$1 folder f; shift
  for folder in "$@"; do
    for f in "$folder/$name"_*.tar.?z; do
      if [ -f "$f" ] && matches_pin "$name" "$f"; then echo "$f"; return; fi
    done
  done
}

# Where the sources of a dependency are on this machine, or nothing.
find_source() {  # name
  local found
  found=$(local_tree "$1")
  [ -n "$found" ] || found=$(pinned_tarball "$1" ${TARN_DEPS_DIR:+"$TARN_DEPS_DIR"} "$cache/sources")
  [ -n "$found" ] || found=$(ls -d "$cache/sources/$1-${commit[$1]}" "$cache/sources/moved/$1"_*.tar.?z 2>/dev/null | head -1 || true)
  echo "$found"
}

fetch_from_distribution() {  # work names...
  local work=$1 s n wanted; shift
  command -v apt-get > /dev/null || return 0
  apt_configure "$work/apt" deb-src $(printf '%s\n' "${suite[@]}" | sort -u)
  say "  asking the distribution for $* (about 25 MB of package lists first)"
  apt-get "${apt_options[@]}" update >> "$log" 2>&1 || say "  not all of the distribution's source lists can be had"
  for s in $(printf '%s\n' "${suite[@]}" | sort -u); do
    wanted=()
    for n in "$@"; do [ "${suite[$n]}" != "$s" ] || wanted+=("$n"); done
    [ ${#wanted[@]} -gt 0 ] || continue
    # --tar-only: the packaging files are not always there, the tarballs are.
    (cd "$work/apt/got" && apt-get "${apt_options[@]}" source --download-only --tar-only -t "$s" "${wanted[@]}") 2>&1 |
      tee -a "$log" | sed -n "s/^Need to get \([^ ]* [^ ]*\) .*/  fetching \1 from $s: ${wanted[*]}/p" || true
  done
  for n in "$@"; do keep_tarball "$n" "$work/apt/got"; done
}

keep_tarball() {  # name folder
  local f newest
  f=$(pinned_tarball "$1" "$2")
  if [ -n "$f" ]; then mv "$f" "$cache/sources/"; return; fi
  newest=$(ls "$2/$1"_*.tar.?z 2>/dev/null | head -1 || true)
  [ -n "$newest" ] || return 0
  # sid moves on and drops what was pinned; apt has checked this one against the archive's signature.
  if [ "${suite[$1]}" = sid ]; then
    say "  $1: the pinned version has left sid; taking the newer $(basename "$newest")"
    mkdir -p "$cache/sources/moved" && mv "$newest" "$cache/sources/moved/"
  else
    say "  $1: $(basename "$newest") does not have the pinned SHA-256; not used"
  fi
}

fetch_from_upstream() {  # work name
  command -v git > /dev/null || return 0
  local tree=$1/git/$2
  say "  cloning $2 at ${commit[$2]:0:12} from its upstream repository"
  { git init -q "$tree" && git -C "$tree" fetch -q --depth 1 "${upstream[$2]}" "${commit[$2]}" &&
    git -C "$tree" checkout -q "${commit[$2]}"; } >> "$log" 2>&1 || return 0
  rm -rf "$tree/.git" "$cache/sources/$2-${commit[$2]}"
  mv "$tree" "$cache/sources/$2-${commit[$2]}"
}

fetch_missing() {  # work
  local n missing=()
  for n in "${names[@]}"; do [ -n "$(find_source "$n")" ] || missing+=("$n"); done
  [ ${#missing[@]} -eq 0 ] || fetch_from_distribution "$1" "${missing[@]}"
  for n in "${missing[@]}"; do
    [ -n "$(find_source "$n")" ] || fetch_from_upstream "$1" "$n"
    [ -n "$(find_source "$n")" ] || die "no provider has the sources of $n.
  Put its pinned tarball or source tree into a folder and name that folder in TARN_DEPS_DIR (log: $log)."
  done
}

unpack() {  # work: every source tree is at $work/src/<name> afterwards
  local n from
  for n in "${names[@]}"; do
    from=$(find_source "$n")
    if [ -d "$from" ]; then mkdir -p "$1/src" && ln -s "$from" "$1/src/$n"; continue; fi
    mkdir -p "$1/src/$n" && tar -xf "$from" -C "$1/src/$n"
    # Most tarballs hold one folder, XNNPACK's holds none.
    [ -e "$1/src/$n/LICENSE" ] || { mv "$1/src/$n" "$1/src/$n.tar" && mv "$1/src/$n.tar"/* "$1/src/$n"; }
  done
}

# --- build (the text of this part is in the cache key) -----------------------------------------------------

build() {  # work prefix
  local src=$1/src out=$1/build to=$2 n
  local common=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -Wno-dev)
  local flags="-ffunction-sections -fdata-sections -fvisibility=hidden -ffile-prefix-map=$1="
  # Added to a toolchain file's own CMAKE_<LANG>_FLAGS_INIT, which a plain CMAKE_<LANG>_FLAGS would replace.
  local target=("${common[@]}" ${toolchain:+-DCMAKE_TOOLCHAIN_FILE="$toolchain"}
                -DCMAKE_C_FLAGS_RELEASE="-O3 -DNDEBUG $flags" -DCMAKE_CXX_FLAGS_RELEASE="-O3 -DNDEBUG $flags")

  mkdir -p "$to/include" "$to/lib" "$to/bin" "$to/licenses"
  cp -r "$src/flatbuffers/include/flatbuffers" "$to/include/"

  # flatc runs on the build machine: a cross build takes the native one.
  if [ -z "$toolchain" ]; then
    # Not optimized: it reads one small file, and optimizing its 37 takes longer than it will ever run.
    step 'FlatBuffers compiler' cmake -S "$src/flatbuffers" -B "$out/flatbuffers" "${common[@]}" -DFLATBUFFERS_BUILD_TESTS=OFF \
      -DFLATBUFFERS_BUILD_FLATLIB=OFF -DFLATBUFFERS_INSTALL=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O0
    step 'FlatBuffers compiler' cmake --build "$out/flatbuffers" --target flatc
    cp "$out/flatbuffers/flatc" "$to/bin/"
  fi

  step 'Highway' cmake -S "$src/highway" -B "$out/highway" "${target[@]}" -DHWY_ENABLE_CONTRIB=OFF -DHWY_ENABLE_EXAMPLES=OFF \
    -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_INSTALL=OFF -DHWY_FORCE_STATIC_LIBS=ON
  step 'Highway' cmake --build "$out/highway" --target hwy
  cp "$out/highway/libhwy.a" "$to/lib/"
  (cd "$src/highway" && find hwy -name '*.h' -exec cp --parents {} "$to/include/" \;)

  # Release also sets XNN_LOG_LEVEL=0: XNNPACK never prints.
  step 'XNNPACK' cmake -S "$src/xnnpack" -B "$out/xnnpack" "${target[@]}" -DXNNPACK_LIBRARY_TYPE=static \
    -DXNNPACK_BUILD_ALL_MICROKERNELS=OFF -DXNNPACK_BUILD_TESTS=OFF -DXNNPACK_BUILD_BENCHMARKS=OFF \
    -DXNNPACK_ENABLE_KLEIDIAI=OFF -DCMAKE_PROJECT_XNNPACK_INCLUDE="$here/xnnpack_dense.cmake" \
    -DCPUINFO_SOURCE_DIR="$src/cpuinfo" -DPTHREADPOOL_SOURCE_DIR="$src/pthreadpool" \
    -DFXDIV_SOURCE_DIR="$src/fxdiv" -DFP16_SOURCE_DIR="$src/fp16" -DCPUINFO_LOG_LEVEL=none -DCPUINFO_BUILD_PKG_CONFIG=OFF
  step 'XNNPACK' cmake --build "$out/xnnpack" --target XNNPACK microkernels-prod cpuinfo
  # Of pthreadpool the header alone: the functions that XNNPACK calls are kernels/dense/xnnpack_threads.cc.
  cp "$out/xnnpack"/{libXNNPACK.a,libmicrokernels-prod.a,cpuinfo/libcpuinfo.a} "$to/lib/"
  cp "$src"/{xnnpack,pthreadpool,cpuinfo}/include/*.h "$to/include/"

  cp "$src/xxhash/xxhash.h" "$to/include/"
  for n in "${names[@]}"; do cp "$src/$n/LICENSE" "$to/licenses/$n"; done
}

# --- progress ----------------------------------------------------------------------------------------------

# Runs a command with its output in the log, and shows Ninja's [n/m] as one line that moves.
step() {  # what command...
  local what=$1 line shown='' percent; shift
  printf '+ %s\n' "$*" >> "$log"
  "$@" 2>&1 | while IFS= read -r line; do
    printf '%s\n' "$line" >> "$log"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    percent=$((100 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    if [ -t 1 ]; then
      printf '\r  building %s: %d of %d files ' "$what" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
      [ "$percent" -lt 100 ] || printf '\n'
    elif [ "$((percent / 25))" != "$shown" ]; then
      shown=$((percent / 25))
      printf '  building %s: %d of %d files\n' "$what" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    fi
  done
}

# -----------------------------------------------------------------------------------------------------------

if [ -z "$toolchain" ]; then
  target_name=native
  compiler=${CXX:-c++}
  command -v "$compiler" > /dev/null || die "no C++ compiler: $compiler (run: make setup)"
  id="$("$compiler" -dumpmachine) $("$compiler" --version | head -1)"
else
  target_name=$(basename "$toolchain" .cmake)
  # What the toolchain file says, and the one beside it that ours include; and which compiler that is, as far as it tells.
  included=$(sed -nE 's|^include\(\$\{CMAKE_CURRENT_LIST_DIR\}/(.*)\)$|\1|p' "$toolchain")
  settings=$(cat "$toolchain" ${included:+"$(dirname "$toolchain")/$included"})
  compiler=$(sed -nE 's/^set\(CMAKE_CXX_COMPILER "?([^")]+)"?\)$/\1/p' <<< "$settings")
  if [[ $settings == *android.toolchain.cmake* ]]; then
    [ -e "${ANDROID_NDK_HOME:-}/build/cmake/android.toolchain.cmake" ] || die "$target_name: ANDROID_NDK_HOME is '${ANDROID_NDK_HOME:-}', expected the directory of an NDK: docs/android.md says how to install one"
    id="$target_name NDK $(sed -nE 's/^Pkg.Revision *= *//p' "$ANDROID_NDK_HOME/source.properties" 2> /dev/null || echo unknown)"
  elif [ -n "$compiler" ]; then
    command -v "$compiler" > /dev/null || die "no C++ compiler: $compiler (run: make cross)"
    id="$target_name $("$compiler" --version | head -1)"
  else
    id="$target_name, compiler unknown"
  fi
fi
recipe=$(grep -v '^#' "$here/deps.lock"; cat "$here/xnnpack_dense.cmake"; declare -f build; echo "$id"; echo "${settings:-}"
         [ -z "${toolchain:+${TARN_SYSROOT:-}}" ] || echo "$TARN_SYSROOT"
         for n in "${names[@]}"; do local_tree "$n"; done)
prefix=$cache/deps/$target_name-$(sha256sum <<< "$recipe" | cut -c1-12)

if [ -n "$prefix_only" ]; then echo "$prefix"; exit; fi
if [ -d "$prefix" ]; then say "dependencies: ready in $prefix"; exit; fi

mkdir -p "$cache/deps" "$cache/sources"
exec 9> "$prefix.lock"
flock -n 9 || { say 'dependencies: another set-up is building them; waiting for it'; flock 9; }
if [ -d "$prefix" ]; then say "dependencies: ready in $prefix"; exit; fi

log=$prefix.log
work=$prefix.partial
rm -rf "$work"; mkdir -p "$work"; : > "$log"
trap 'status=$?; if [ $status -ne 0 ]; then say "--- last lines of $log"; tail -n 25 "$log"; fi; rm -rf "$work"; exit $status' EXIT

say "dependencies: building ${names[*]}"
say "  for $id; once per machine, some minutes on two cores"
say "  log: $log"
fetch_missing "$work"
unpack "$work"
build "$work" "$work/prefix"
mv "$work/prefix" "$prefix"
say "  removing what is not needed any more"
rm -rf "$work"
say "dependencies: ready in $prefix ($(du -sh "$prefix" | cut -f1))"
