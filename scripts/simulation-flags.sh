#!/usr/bin/env bash
# Prints the RUSTFLAGS of the program that runs simulated histories: laid out by the profile of its own work, and for this processor, for it
# runs where it is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RUSTFLAGS="${RUSTFLAGS:-} -Ctarget-cpu=native" scripts/profile-flags.sh tests/simulation/simulate.profdata
