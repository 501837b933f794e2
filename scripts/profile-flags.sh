#!/usr/bin/env bash
# Prints the RUSTFLAGS that lay out a program by the profile FILE (docs/decisions/0012-a-profile-for-the-release.md).
# Usage: scripts/profile-flags.sh FILE
set -euo pipefail

profile=$(realpath "$1")
# Cargo does not know that the compiler reads the profile. The mark is another for another profile, and has all built anew.
mark=$(sha256sum "$profile" | cut -c1-12)
echo "${RUSTFLAGS:-} -Cprofile-use=$profile --cfg profile_$mark"
