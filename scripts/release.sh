#!/usr/bin/env bash
# Builds the host for production, laid out by host/pilothouse.profdata (docs/decisions/0012-a-profile-for-the-release.md):
# target/production/release/pilothouse.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RUSTFLAGS=$(scripts/profile-flags.sh host/pilothouse.profdata)
export RUSTFLAGS
cargo build --locked --release -p pilothouse --target-dir "${CARGO_TARGET_DIR:-target}/production"
