#!/usr/bin/env bash
# Builds the host that a benchmark measures and prints where it is: what users get, or with PROFILE=dev the one for development, which is
# there in a minute and says nothing of speed or memory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
case ${PROFILE:-release} in
  release)
    scripts/release.sh >&2
    echo "$target/production/release/pilothouse"
    ;;
  dev)
    cargo build --locked --workspace --bin pilothouse >&2
    echo "$target/debug/pilothouse"
    ;;
  *)
    echo "measured-host: PROFILE is release or dev, and not '$PROFILE'" >&2
    exit 2
    ;;
esac
