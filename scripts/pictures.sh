#!/usr/bin/env bash
# Makes the pictures of the README anew: docs/pictures/demo.svg from a run of the demo, and docs/pictures/comparison.svg from what
# `make bench-check KEEP=1` kept last in bench/results.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --locked --quiet --workspace --bin pictures
pictures() { "${CARGO_TARGET_DIR:-target}/debug/pictures" "$@"; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p docs/pictures

CLICOLOR_FORCE=1 make --no-print-directory demo >"$folder/demo"
pictures terminal '3. ' '7. ' <"$folder/demo" >"$folder/demo.svg"
mv "$folder/demo.svg" docs/pictures/demo.svg
echo "pictures: docs/pictures/demo.svg" >&2

mkdir -p bench/results
results=$(find bench/results -name '*.md' | sort | tail -1)
if [[ -z $results ]]; then
  echo "pictures: nothing is kept in bench/results; \`make bench-check KEEP=1\` measures it" >&2
  exit
fi
pictures comparison <"$results" >"$folder/comparison.svg"
mv "$folder/comparison.svg" docs/pictures/comparison.svg
echo "pictures: docs/pictures/comparison.svg, of $results" >&2
