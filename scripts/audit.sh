#!/usr/bin/env bash
# Checks third-party code against deny.toml: known vulnerabilities, licences, banned crates, sources. Needs the network. It
# changes nothing of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The version that deny.toml was written for.
version=0.20.2

if ! cargo deny --version >/dev/null 2>&1; then
  echo "audit: installing cargo-deny $version with 'cargo install'; that takes some minutes" >&2
  cargo install --quiet --locked "cargo-deny@$version"
fi
cargo deny --workspace check "$@"
