#!/usr/bin/env bash
# Measures the host beside an operator on controller-runtime that writes the same (bench/peers), by turns, on a real API server.
# Builds both as for production; the benchmark itself only asks and counts. Needs the plugins and Go, which the control plane is built with, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
command -v go >/dev/null || {
  echo "compare: Go 1.26 or newer is missing: install it from https://go.dev/dl/" >&2
  exit 1
}

echo "compare: building the host" >&2
host=$(scripts/measured-host.sh)
echo "compare: building the operator on controller-runtime (the first time takes two minutes)" >&2
env -u GOFLAGS CGO_ENABLED=0 GOWORK=off \
  go build -C bench/peers/controller-runtime -trimpath -ldflags '-s -w' -o "$target/peers/controller-runtime" .

PILOTHOUSE_BIN=$host PEER_BIN=$target/peers/controller-runtime \
  cargo bench --locked --profile dev --workspace --bench peers
