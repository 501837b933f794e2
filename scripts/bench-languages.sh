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

# warm LANGUAGE: the same, and an instance may answer many calls.
warm() {
  local project=$folder/$1/web-site
  case $1 in
  rust) sed -i 's/^    reconcile:/    calls_per_instance: 1000,\n&/' "$project/${source[$1]}" ;;
  *) echo 'callsPerInstance: 1000' >>"$project/plugin.yaml" ;;
  esac
  "$pilothouse" build "$project" >"$folder/$1/log" 2>&1
}

# cost LANGUAGE NAME: measures the calls of the component.
cost() {
  local project=$folder/$1/web-site
  "$pilothouse" bench "$project/build/web-site.wasm" "$project/cases/first.yaml" --calls "$calls" -o json >"$folder/$1/$2"
}

echo '| language | `.wasm`, KiB | with gzip | memory, KiB | half of the calls | 99 of 100 calls | half of the warm calls |'
echo '|---|---|---|---|---|---|---|'
for language in rust c ts go python; do
  if ! build "$language"; then
    echo "bench-languages.sh: $language is left out: $(tail -n 1 "$folder/$language/log")" >&2
    continue
  fi
  cost "$language" fresh
  wasm=$folder/$language/fresh.wasm
  cp "$folder/$language/web-site/build/web-site.wasm" "$wasm"
  warm "$language"
  cost "$language" warm
  # The row of the case that uses each part of an SDK once.
  python3 - "$language" "$wasm" "$folder/$language" <<'ROW'
import gzip, json, os, sys
language, wasm, folder = sys.argv[1:]
def case(costs):
    return next(case for case in json.load(open(f"{folder}/{costs}"))["cases"] if case["name"] == "with everything")
fresh, warm = case("fresh"), case("warm")
kib = lambda size: f"{-(-size // 1024):,}"
ms = lambda microseconds: f"{microseconds / 1000:.2f} ms"
packed = len(gzip.compress(open(wasm, "rb").read()))
print(f"| {language} | {kib(os.path.getsize(wasm))} | {kib(packed)} | {kib(fresh['memoryBytes'])} | "
      f"{ms(fresh['p50Microseconds'])} | {ms(fresh['p99Microseconds'])} | {ms(warm['p50Microseconds'])} |")
ROW
done
