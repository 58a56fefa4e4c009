#!/usr/bin/env bash
# Compares tarn with llama.cpp on this machine: llama-bench and tarn bench in turn, models of the same size, one table.
#
#   peers.sh [FOLDER] [--models NAME,...] [--threads N,...] [--depths N,...] [-r N]
#
# FOLDER (default: build/peers) gets a Debian sid of its own with llama.cpp's tools, made by debootstrap from the archive that this
# machine's apt uses (once, about 250 MB), the random models, and the results. Nothing outside it is changed. Needs root, for
# chroot. The other arguments are those of peers.py.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=$root/build/peers
case ${1:-} in '' | -*) ;; *) folder=$(realpath -m "$1"); shift ;; esac
sid=$folder/sid

say() { printf '%s\n' "$*" >&2; }
die() { say "peers: $*"; exit 1; }

# The archive of this machine's release, without naming a host here.
archive() {
  local codename
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -v release="$codename" '$2 == release && $3 == "main" { print $1; exit }'
}

in_sid() { DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$sid" "$@"; }

# Runs a command with its output in the log.
logged() { "$@" >> "$log" 2>&1 || { tail -n 15 "$log" >&2; die "failed: $* (log: $log)"; }; }

make_sid() {
  local mirror proxy=
  command -v debootstrap > /dev/null || die 'debootstrap is not installed. Somebody with root must run: apt-get install debootstrap'
  [ "$(id -u)" -eq 0 ] || die "there is no root here: debootstrap and chroot need it. Somebody with root must run: $0 $folder"
  mirror=$(archive)
  [ -n "$mirror" ] || die "apt has no entry for main of this machine's release: nowhere to take Debian sid from"
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "$proxy" ] || export http_proxy=$proxy
  if [ ! -d "$sid" ]; then
    say "peers: making a Debian sid in $sid (log: $log)"
    rm -rf "$sid.partial"
    logged debootstrap --variant=minbase sid "$sid.partial" "$mirror"
    mv "$sid.partial" "$sid"
  fi
  if [ ! -x "$sid/usr/bin/llama-bench" ]; then
    say 'peers: installing llama.cpp-tools in it'
    # A mirror that stands still will do; signatures are checked as ever.
    logged in_sid apt-get -o Acquire::Check-Valid-Until=false update
    logged in_sid apt-get install -y --no-install-recommends llama.cpp-tools
    logged in_sid apt-get clean
  fi
}

mkdir -p "$folder"
log=$folder/log
: > "$log"
make_sid
say "peers: $(in_sid dpkg-query -W -f '${Package} ${Version} ' llama.cpp-tools libggml0)"
exec "$here/peers.py" "$folder" "$@"
