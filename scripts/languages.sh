#!/usr/bin/env bash
# Gets the tools with which plugins are built in languages other than Rust and Go, for the tests. It says what it installs, and is silent
# and quick where all of it is there. A language whose tools cannot be had is named; its tests are skipped then, except in CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
folder=${CARGO_TARGET_DIR:-$PWD/target}/languages
# The version that new projects name, from the code that builds them: the constant $2 of the file $1.
version_of() { sed -n "s/^pub(crate) const $2: &str = \"\(.*\)\";/\1/p" "host/authoring/src/build/$1"; }

say() { echo "languages.sh: $*" >&2; }

c() {
  command -v clang >/dev/null && command -v wasm-ld >/dev/null && ls /usr/lib/wasm32-wasi*/libc.a >/dev/null 2>&1 && return
  command -v apt-get >/dev/null || return 1
  say "installing clang, lld, wasi-libc and libclang-rt-dev-wasm32"
  as_root apt-get update -qq &&
    as_root apt-get install -qq -y --no-install-recommends clang lld wasi-libc libclang-rt-dev-wasm32 >/dev/null
}

python() {
  [ -x "$folder/python/bin/componentize-py" ] && return
  say "installing componentize-py from PyPI"
  rm -rf "$folder/python"
  python3 -m venv "$folder/python" && "$folder/python/bin/pip" install --quiet "componentize-py==$(version_of python.rs VERSION)"
}

ts() {
  [ -x "$folder/ts/node_modules/.bin/tsc" ] && [ -x "$folder/ts/node_modules/.bin/componentize-qjs" ] && return
  command -v npm >/dev/null || return 1
  say "installing componentize-qjs and typescript from npm"
  rm -rf "$folder/ts"
  mkdir -p "$folder/ts" && echo '{"private": true}' >"$folder/ts/package.json" &&
    npm install --silent --no-audit --no-fund --prefix "$folder/ts" \
      "componentize-qjs@$(version_of typescript.rs VERSION)" "typescript@$(version_of typescript.rs TYPESCRIPT)"
}

for language in c python ts; do
  $language || say "the tools for $language cannot be had here"
done
