#!/usr/bin/env bash
# Makes tests/simulation/simulate.profdata anew: how often the simulation runs what, by which `make simulate` lays out its code
# (docs/decisions/0012-a-profile-for-the-release.md). Builds a simulation that counts, runs histories, and merges the counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Enough for counts that tell often from seldom. Others than those of `make test`.
HISTORIES=${HISTORIES:-2000}
SEED=${SEED:-1000000}

say() { echo "profile: $*" >&2; }

tool=$(scripts/llvm-profdata.sh)
counting=${CARGO_TARGET_DIR:-target}/counting
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

say "building a simulation that counts"
# Build scripts and macros count, too; nobody wants to know.
LLVM_PROFILE_FILE=/dev/null RUSTFLAGS=-Cprofile-generate \
  cargo build --locked --workspace --bin simulate --profile simulation --target-dir "$counting"
say "counting in $HISTORIES histories"
LLVM_PROFILE_FILE=$folder/%p.profraw "$counting/simulation/simulate" search -n "$HISTORIES" --seed "$SEED" --keep-going

"$tool" merge --sparse -o tests/simulation/simulate.profdata "$folder"/*.profraw
say "tests/simulation/simulate.profdata: $(du -k tests/simulation/simulate.profdata | cut -f1) KiB"
