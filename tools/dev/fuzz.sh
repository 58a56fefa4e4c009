#!/usr/bin/env bash
# Runs every libFuzzer binary of a build for some seconds, from the committed corpus.
#
#   fuzz.sh BUILD_DIR SECONDS
#
# New inputs stay in BUILD_DIR/corpus; a finding ends up in BUILD_DIR/findings and, once fixed, in tests/fuzz/corpus.
set -euo pipefail
build=$1 seconds=$2
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mkdir -p "$build/findings"
for fuzzer in "$build"/fuzz/*_fuzz; do
  [ -x "$fuzzer" ] || { echo 'fuzz: no fuzzers yet'; exit; }
  name=$(basename "$fuzzer" _fuzz)
  log=$build/$name.log
  corpus=("$build/corpus/$name")
  mkdir -p "${corpus[0]}"
  [ ! -d "tests/fuzz/corpus/$name" ] || corpus+=("tests/fuzz/corpus/$name")
  echo "fuzz: $name for $seconds s"
  if ! "$fuzzer" -max_total_time="$seconds" -timeout=10 -artifact_prefix="$build/findings/$name-" "${corpus[@]}" > "$log" 2>&1; then
    tail -n 40 "$log"
    echo "fuzz: $name found something, see above and $build/findings" >&2
    exit 1
  fi
  grep -E '^(Done|stat::)' "$log" || tail -n 1 "$log"
done
