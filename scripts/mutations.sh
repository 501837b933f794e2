#!/usr/bin/env bash
# Breaks the host in many ways, one after another, and says after how many simulated histories each is found
# (docs/simulation.md). Works on a copy of the repository as it was committed last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

patch=$PWD/tests/simulation/mutations.patch
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git archive HEAD | tar -x -C "$copy"
patch --quiet --strip=1 --directory="$copy" --input="$patch"
flags=$(scripts/simulation-flags.sh)
(cd "$copy" && CARGO_TARGET_DIR=$target RUSTFLAGS=$flags cargo build --locked --quiet --workspace --bin simulate --profile simulation)
cp "$target/simulation/simulate" "$copy/simulate"

missed=0
# shellcheck disable=SC2013 # the names have no spaces
for mutation in $(grep -oP '^\+.*mutation::is\("\K[a-z0-9-]+' "$patch" | sort -u); do
  start=$SECONDS
  found=$(PILOTHOUSE_MUTATION=$mutation "$copy/simulate" search -n "${N:-100000}" --seed "${SEED:-1}" --no-shrink 2>/dev/null) &&
    missed=$((missed + 1))
  echo "$mutation: $(head -1 <<<"$found" | cut -d: -f1), $((SECONDS - start)) s; $(sed -n 2p <<<"$found")"
done
if [[ $missed -gt 0 ]]; then
  echo "$missed mutations were not found" >&2
  exit 1
fi
