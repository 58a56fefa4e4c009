#!/usr/bin/env bash
# The C and C++ libraries that the Linux cross builds link with: Debian 11's (glibc 2.31), unpacked once into the cache, so that
# what is built runs on boards whose system is some years old.
#
#   sysroot.sh arm64|armhf            make it
#   sysroot.sh arm64|armhf --prefix   print where it is, or will be
#
# TARN_CACHE     cache folder                          (default: ${XDG_CACHE_HOME:-~/.cache}/tarn)
# TARN_SYSROOT   another sysroot of that architecture to use instead
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/apt.sh"
cache=$(realpath -m "${TARN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn}")

suite=bullseye
packages='libc6 libc6-dev linux-libc-dev libgcc-10-dev libgcc-s1 libstdc++-10-dev libstdc++6 libcrypt1 libcrypt-dev'

architecture=${1:-}
case $architecture in
  arm64 | armhf) ;;
  *) echo 'usage: sysroot.sh arm64|armhf [--prefix]' >&2; exit 2 ;;
esac
recipe=$(sha256sum <<< "$suite $packages" | cut -c1-12)
prefix=${TARN_SYSROOT:-$cache/sysroots/debian-$suite-$architecture-$recipe}
if [ "${2:-}" = --prefix ]; then echo "$prefix"; exit; fi
if [ -d "$prefix" ]; then echo "sysroot: ready in $prefix"; exit; fi
[ -z "${TARN_SYSROOT:-}" ] || { echo "setup: TARN_SYSROOT: no such directory: $prefix" >&2; exit 1; }

mkdir -p "$cache/sysroots"
exec 9> "$prefix.lock"
flock 9
if [ -d "$prefix" ]; then echo "sysroot: ready in $prefix"; exit; fi

work=$prefix.partial
log=$prefix.log
rm -rf "$work"; mkdir -p "$work/root"
trap 'status=$?; [ $status -eq 0 ] || { echo "--- last lines of $log"; tail -n 15 "$log"; } >&2; rm -rf "$work"; exit $status' EXIT
echo "sysroot: fetching $suite's libraries for $architecture"
# shellcheck disable=SC2086
apt_fetch "$work/apt" "$architecture" "$suite" $packages > "$log" 2>&1 || {
  echo "setup: the distribution does not offer $suite for $architecture any more (log: $log).
  Unpack these packages of an old system into a folder and name it in TARN_SYSROOT: $packages" >&2
  exit 1
}
for package in "$work"/apt/got/*.deb; do dpkg-deb -x "$package" "$work/root"; done
# Absolute links would lead out of the folder, and the linker would take the static library beside a dangling one.
find "$work/root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfnr "$work/root$(readlink "$link")" "$link"
done
rm -rf "$work/root"/usr/share "$work/root"/etc
mv "$work/root" "$prefix"
echo "sysroot: ready in $prefix ($(du -sh "$prefix" | cut -f1))"
