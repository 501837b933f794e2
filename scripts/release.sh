#!/usr/bin/env bash
# Builds the host for production, laid out by host/pilothouse.profdata (docs/decisions/0012-a-profile-for-the-release.md):
# target/production/release/pilothouse.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RUSTFLAGS=$(scripts/profile-flags.sh host/pilothouse.profdata)
export RUSTFLAGS
cargo build --locked --release -p pilothouse --target-dir "${CARGO_TARGET_DIR:-target}/production"

# A change of a dependency gives all functions of the crates above it other names, and the profile is none of theirs any more.
order=host/pilothouse.order.gz program=${CARGO_TARGET_DIR:-target}/production/release/pilothouse
if command -v nm > /dev/null; then
  export LC_ALL=C
  ran=$(gunzip -c "$order" | sort -u)
  known=$(nm "$program" | cut -d' ' -f3 | sort -u | comm -12 - <(echo "$ran") | wc -l) all=$(echo "$ran" | wc -l)
  echo "release: the program has $known of the $all functions that the profile knows" >&2
  if ((known * 2 < all)); then
    echo "release: the profile is far behind, and the host needs a quarter more of processor and memory; make it anew: make profile" >&2
  fi
fi
