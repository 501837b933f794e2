#!/usr/bin/env bash
# Measures the host under load and beside an operator on controller-runtime, and fails where something that was reached once is not any
# more (`limits` in bench/benches/load/main.rs and bench/benches/peers/main.rs). KEEP=1 keeps what was measured in bench/results, under
# the commit that it belongs to. Takes half an hour on an idle machine; others at work on it make it mean nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

commit=$(git rev-parse --short HEAD)
if [[ -n ${KEEP:-} && -n $(git status --porcelain --untracked-files=no) ]]; then
  echo "bench-check: there are changes that are not committed, so what is measured belongs to no commit" >&2
  exit 1
fi
results=$(mktemp)
trap 'rm -f "$results"' EXIT

export BENCH_CHECK=1
broken=0
printf '# %s, %s, %s processors\n' "$commit" "$(date -u +%F)" "$(nproc)" >"$results"
printf '\n## Under load: the plugin linked natively, and as WebAssembly\n' >>"$results"
LOAD_REPEATS=${LOAD_REPEATS:-0} cargo bench --locked -p pilothouse-bench --bench load | tee -a "$results" || broken=1
printf '\n## Beside an operator on controller-runtime\n' >>"$results"
scripts/compare.sh | tee -a "$results" || broken=1

if [[ -n ${KEEP:-} ]]; then
  mkdir -p bench/results
  cp "$results" "bench/results/$(date -u +%F)-$commit.md"
  echo "bench-check: kept in bench/results/$(date -u +%F)-$commit.md" >&2
fi
exit "$broken"
