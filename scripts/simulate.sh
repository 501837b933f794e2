#!/usr/bin/env bash
# Runs simulated histories (docs/simulation.md): N of them from SEED on, as many as HOURS leave time for, or the one of SEED with
# all that happens.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RUSTFLAGS=$(scripts/simulation-flags.sh) \
  cargo build --locked --quiet --workspace --bin simulate --profile simulation
simulate=${CARGO_TARGET_DIR:-target}/simulation/simulate
if [[ -n ${HOURS:-} ]]; then
  # What is found first shall not end the night.
  exec "$simulate" search --hours "$HOURS" ${N:+-n "$N"} --seed "${SEED:-1}" --keep-going
elif [[ -n ${N:-} ]]; then
  exec "$simulate" search -n "$N" --seed "${SEED:-1}"
elif [[ -n ${SEED:-} ]]; then
  exec "$simulate" replay --seed "$SEED" --shrink
else
  exec "$simulate" search
fi
