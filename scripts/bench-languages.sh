#!/usr/bin/env bash
# Measures the same plugin in each language: builds plugins/examples in new projects, calls each with one case, and prints a table in
# Markdown. A language whose tools are missing is named and left out. Changes nothing of the repository.
#
#   bench-languages.sh PILOTHOUSE [CALLS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pilothouse=$(realpath "$1")
calls=${2:-1000}
target=$(realpath "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target/authoring/rust
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

declare -A source=([rust]=src/lib.rs [go]=main.go [c]=plugin.c [python]=reconciler.py [ts]=plugin.ts)

# build LANGUAGE: the example in a new project, with the packages that languages.sh has installed.
build() {
  local project=$folder/$1/web-site
  mkdir -p "$folder/$1"
  "$pilothouse" new web-site --lang "$1" --kind example.com/v1/Website --sdk plugins/sdk --dir "$project" >/dev/null 2>&1
  case $1 in
  rust) cp Cargo.lock "$project" ;;
  python) ln -s "$target/languages/python" "$project/.venv" ;;
  ts) ln -s "$target/languages/ts/node_modules" "$project/node_modules" ;;
  esac
  cp "plugins/examples/$1/${source[$1]}" "$project/${source[$1]}"
  cp plugins/examples/plugin.yaml "$project/plugin.yaml"
  cp plugins/examples/cases/website.yaml "$project/cases/first.yaml"
  "$pilothouse" build "$project" >"$folder/$1/log" 2>&1
}

echo '| language | `.wasm`, KiB | with gzip | memory, KiB | half of the calls | 99 of 100 calls |'
echo '|---|---|---|---|---|---|'
for language in rust c ts go python; do
  if ! build "$language"; then
    echo "bench-languages.sh: $language is left out: $(tail -n 1 "$folder/$language/log")" >&2
    continue
  fi
  wasm=$folder/$language/web-site/build/web-site.wasm
  "$pilothouse" bench "$wasm" "$folder/$language/web-site/cases/first.yaml" --calls "$calls" -o json >"$folder/$language/cost"
  # The row of the case that uses each part of an SDK once.
  python3 - "$language" "$wasm" "$folder/$language/cost" <<'ROW'
import gzip, json, os, sys
language, wasm, cost = sys.argv[1:]
case = next(case for case in json.load(open(cost))["cases"] if case["name"] == "with everything")
kib = lambda size: f"{-(-size // 1024):,}"
ms = lambda microseconds: f"{microseconds / 1000:.2f} ms"
packed = len(gzip.compress(open(wasm, "rb").read()))
print(f"| {language} | {kib(os.path.getsize(wasm))} | {kib(packed)} | {kib(case['memoryBytes'])} | "
      f"{ms(case['p50Microseconds'])} | {ms(case['p99Microseconds'])} |")
ROW
done
