#!/usr/bin/env bash
# A token costs the same at any depth: counts the machine instructions of one decode step after 1,000 and after 1,000,000 tokens, and
# times such steps in turn.
#
#   instructions.sh [MODEL...]    default: the default model; about two minutes each on a core of its own
#
# Equal means to 1 in 10,000: arithmetic has no branches on depth, but a few on values (a denominator under its guard). TARN_ISA
# chooses the kernels.
set -euo pipefail
cd "$(dirname "$0")/../.."

shallow=1000 deep=1000000
[ $# -gt 0 ] || set -- examples/models/shakespeare-rfa-gate-int8.tarn
for model in "$@"; do
  echo "$model"
  a=$(build/bin/tarn_instructions "$model" $shallow)
  printf '  depth %9d  %d instructions per token\n' $shallow "$a"
  b=$(build/bin/tarn_instructions "$model" $deep)
  printf '  depth %9d  %d instructions per token\n' $deep "$b"
  difference=$((b > a ? b - a : a - b))
  if [ $((difference * 10000)) -gt "$a" ]; then
    echo "$model: the step costs $b instructions at depth $deep and $a at depth $shallow: equal to 1 in 10,000 expected" >&2
    exit 1
  fi
  echo "  equal (they differ by $difference)"
  build/bin/tarn_step_time "$model" $shallow $deep
done
