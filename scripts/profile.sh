#!/usr/bin/env bash
# Makes host/pilothouse.profdata anew: how often a host runs what, and host/pilothouse.order.gz: which functions at all. `make release`
# lays out its code by them. Builds a host that counts, gives it typical work on a real API server (tests/src/bin/train), and merges
# the counts. Needs the plugins, and an llvm-profdata that is not older than the compiler's LLVM; says which it takes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Enough for counts that tell often from seldom.
OBJECTS=${OBJECTS:-300}

say() { echo "profile: $*" >&2; }

tool=$(scripts/llvm-profdata.sh)

target=${CARGO_TARGET_DIR:-target}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

say "building a host that counts"
# Build scripts and macros count, too; nobody wants to know.
export LLVM_PROFILE_FILE=/dev/null
cargo build --locked --workspace --bin train
RUSTFLAGS=-Cprofile-generate cargo build --locked --release -p pilothouse --target-dir "$target/counting"

# Once for nothing, for the plugins to be compiled: that is seldom, and would count for more than all the rest.
PILOTHOUSE_BIN=$(realpath "$target/counting/release/pilothouse")
export PILOTHOUSE_BIN
say "compiling the plugins"
"$target/debug/train" "$folder/compiled" 1
say "counting at work, $OBJECTS objects"
LLVM_PROFILE_FILE=$folder/%p.profraw "$target/debug/train" "$folder/compiled" "$OBJECTS"

"$tool" merge --sparse -o host/pilothouse.profdata "$folder"/*.profraw
scripts/symbol-order.sh host/pilothouse.profdata | gzip -9 -n > host/pilothouse.order.gz
say "host/pilothouse.profdata: $(du -k host/pilothouse.profdata | cut -f1) KiB"
