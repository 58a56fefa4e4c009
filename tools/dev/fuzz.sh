#!/usr/bin/env bash
# Runs every libFuzzer binary of a build for some seconds, from the committed corpus, as many at a time as there are processors.
#
#   fuzz.sh BUILD_DIR SECONDS
#
# New inputs stay in BUILD_DIR/corpus; a finding ends up in BUILD_DIR/findings and, once fixed, in tests/fuzz/corpus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export build=$1 seconds=$2

fuzz_one() {  # fuzzer
  local name log corpus
  name=$(basename "$1" _fuzz)
  log=$build/$name.log
  corpus=("$build/corpus/$name")
  mkdir -p "${corpus[0]}"
  [ ! -d "tests/fuzz/corpus/$name" ] || corpus+=("tests/fuzz/corpus/$name")
  if ! "$1" -max_total_time="$seconds" -timeout=10 -artifact_prefix="$build/findings/$name-" "${corpus[@]}" > "$log" 2>&1; then
    tail -n 40 "$log"
    echo "fuzz: $name found something, see above and $build/findings" >&2
    return 1
  fi
  echo "fuzz: $name for $seconds s: $(grep -E '^Done' "$log" || tail -n 1 "$log")"
}
export -f fuzz_one

mkdir -p "$build/findings"
fuzzers=("$build"/fuzz/*_fuzz)
[ -x "${fuzzers[0]}" ] || { echo "fuzz: $build has no fuzzers: make fuzz builds them" >&2; exit 1; }
printf '%s\0' "${fuzzers[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'set -euo pipefail; fuzz_one "$1"' fuzz
