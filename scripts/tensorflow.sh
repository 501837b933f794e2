#!/usr/bin/env bash
# Gets a TensorFlow without GPUs from PyPI into target/tensorflow, for the tests in which real replicas meet. It installs nothing outside
# of that folder, and does nothing where it is there already. `rm -r target/tensorflow` undoes it. It is 250 MB to fetch, and takes 1.6 GB.
#
# After that, target/tensorflow/python is a Python that can `import tensorflow`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${CARGO_TARGET_DIR:-target}/tensorflow
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
say() { echo "tensorflow.sh: $*" >&2; }

works() { [ -x "$folder/python" ] && "$folder/python" -c 'import tensorflow' 2>/dev/null; }

if works; then
  exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
say "installing tensorflow-cpu from PyPI"
if python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install --quiet tensorflow-cpu; then
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$folder/venv/bin/python" >"$folder/python"
  chmod +x "$folder/python"
  if works; then
    say "$("$folder/python" -c 'import tensorflow; print("TensorFlow", tensorflow.__version__)' 2>/dev/null), $(du -sh "$folder" | cut -f1)"
    exit 0
  fi
fi
say "that did not work"
rm -rf "$folder"
exit 1
