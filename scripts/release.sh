#!/usr/bin/env bash
# Builds the host for production, laid out by host/pilothouse.profdata (docs/decisions/0012-a-profile-for-the-release.md):
# target/production/release/pilothouse.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

profile=$PWD/host/pilothouse.profdata
# Cargo does not know that the compiler reads the profile. The mark is another for another profile, and has all built anew.
mark=$(sha256sum "$profile" | cut -c1-12)
export RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-use=$profile --cfg profile_$mark"
cargo build --locked --release -p pilothouse --target-dir "${CARGO_TARGET_DIR:-target}/production"
