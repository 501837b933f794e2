#!/usr/bin/env bash
# Gets the tools with which plugins are built in languages other than Rust and Go, for the tests. It says what it installs, and is silent
# and quick where all of it is there. A language whose tools cannot be had is named; its tests are skipped then, except in CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
say() { echo "languages.sh: $*" >&2; }

c() {
  command -v clang >/dev/null && command -v wasm-ld >/dev/null && ls /usr/lib/wasm32-wasi*/libc.a >/dev/null 2>&1 && return
  command -v apt-get >/dev/null || return 1
  say "installing clang, lld, wasi-libc and libclang-rt-dev-wasm32"
  as_root apt-get update -qq &&
    as_root apt-get install -qq -y --no-install-recommends clang lld wasi-libc libclang-rt-dev-wasm32 >/dev/null
}

for language in c; do
  $language || say "the tools for $language cannot be had here"
done
