#!/usr/bin/env bash
# Gets a JAX without GPUs from PyPI into target/jax, for the test in which real workers meet. It installs nothing outside of that folder,
# and does nothing where it is there already. `rm -r target/jax` undoes it. It is 150 MB to fetch, and takes 600 MB.
#
# After that, target/jax/python is a Python that can `import jax`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${CARGO_TARGET_DIR:-target}/jax
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
say() { echo "jax.sh: $*" >&2; }

works() { [ -x "$folder/python" ] && "$folder/python" -c 'import jax' 2>/dev/null; }

if works; then
  exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
say "installing jax from PyPI"
if python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install --quiet jax; then
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$folder/venv/bin/python" >"$folder/python"
  chmod +x "$folder/python"
  if works; then
    say "$("$folder/python" -c 'import jax; print("JAX", jax.__version__)'), $(du -sh "$folder" | cut -f1)"
    exit 0
  fi
fi
say "that did not work"
rm -rf "$folder"
exit 1
