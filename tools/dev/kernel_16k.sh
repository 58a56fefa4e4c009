#!/usr/bin/env bash
# A Linux kernel for 64-bit ARM whose pages are 16 KiB, fetched once into the cache: Debian's, of which the image alone is kept.
# tests/arm/pages_16k.py boots it.
#
#   kernel_16k.sh             fetch it
#   kernel_16k.sh --path      print where it is
#
# TARN_CACHE     cache folder                          (default: ${XDG_CACHE_HOME:-~/.cache}/tarn)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/apt.sh"
cache=$(realpath -m "${TARN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn}")

suite=trixie
newest='linux-image-arm64-16k'  # depends on the kernel of today
kernel=$cache/kernels/vmlinuz-arm64-16k
if [ "${1:-}" = --path ]; then echo "$kernel"; exit; fi

mkdir -p "$cache/kernels"
exec 9> "$kernel.lock"
flock 9
if [ -f "$kernel" ]; then echo "kernel: ready in $kernel"; exit; fi

work=$kernel.partial
log=$kernel.log
rm -rf "$work"; mkdir -p "$work"
trap 'status=$?; [ $status -eq 0 ] || { echo "--- last lines of $log"; tail -n 15 "$log"; } >&2; rm -rf "$work"; exit $status' EXIT
echo "kernel: fetching $suite's for arm64 with pages of 16 KiB (about 90 MB)"
{
  apt_update "$work" arm64 "$suite"
  package=$(apt-cache "${apt_options[@]}" depends "$newest" | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p')
  apt_download "$work" "$package"
} > "$log" 2>&1
dpkg-deb --fsys-tarfile "$work"/got/*.deb | tar -x -C "$work" --wildcards './boot/vmlinuz-*'
mv "$work"/boot/vmlinuz-* "$kernel"
echo "kernel: ready in $kernel ($package)"
