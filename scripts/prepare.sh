#!/usr/bin/env bash
# Gets what the other commands need and this machine lacks: a C linker, rustfmt and clippy. Says what it installs, and is
# silent and quick where all of it is there. It never upgrades or removes anything.
set -euo pipefail

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
fail() { echo "prepare: $*" >&2; exit 1; }

command -v cargo >/dev/null || fail "cargo is missing: install Rust from https://rustup.rs"

# C compiler: Rust links with it, and a few crates have C in them.
if ! command -v cc >/dev/null; then
  command -v apt-get >/dev/null || fail "a C compiler is missing: install gcc or clang"
  echo "prepare: installing a C compiler (gcc, libc6-dev)" >&2
  as_root apt-get update -qq
  as_root apt-get install -qq -y --no-install-recommends gcc libc6-dev >/dev/null
fi

# rustup's minimal profile leaves these out.
for component in "$@"; do
  tool=cargo-${component#rust}
  [ "$component" = rustfmt ] && tool=cargo-fmt
  if ! cargo "${tool#cargo-}" --version >/dev/null 2>&1; then
    echo "prepare: installing $component" >&2
    rustup component add "$component"
  fi
done
