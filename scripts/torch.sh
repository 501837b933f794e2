#!/usr/bin/env bash
# Gets a PyTorch without GPUs into target/torch, for the test in which real workers meet. It installs nothing outside of that
# folder, and does nothing where it is there already. `rm -r target/torch` undoes it.
#
# PyPI itself has no such build for Linux on x86-64: what it has needs gigabytes of CUDA. So this takes, whichever can be had
# first,
#   1. the build of PyTorch's own package index (about 200 MB), in a virtual environment;
#   2. Debian's or Ubuntu's packages (about 150 MB), unpacked beside each other and not installed.
# After that, target/torch/python is a Python that can `import torch`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

index=https://download.pytorch.org/whl/cpu
folder=${CARGO_TARGET_DIR:-target}/torch
say() { echo "torch.sh: $*" >&2; }

works() { [ -x "$folder/python" ] && "$folder/python" -c 'import torch.distributed as d; assert d.is_gloo_available()' 2>/dev/null; }

# Makes the command $folder/python of shell text.
command_of() {
  printf '#!/bin/sh\n%s\n' "$1" >"$folder/python"
  chmod +x "$folder/python"
}

from_index() {
  say "installing from $index"
  python3 -m venv "$folder/venv" &&
    timeout 20 curl -fsSo /dev/null "$index/torch/" &&
    "$folder/venv/bin/pip" install --quiet --index-url "$index" torch numpy &&
    command_of "exec '$PWD/$folder/venv/bin/python' \"\$@\""
}

# Everything that python3-torch depends on and this machine lacks.
from_packages() {
  local python
  scripts/unpack.sh "$folder/root" python3-torch || return 1
  local root=$PWD/$folder/root
  python=$(ls -d "$root"/usr/lib/python3/dist-packages)
  # Libraries lie in folders of their own where there are alternatives of them.
  local libraries
  libraries=$(find "$root" -name '*.so*' -printf '%h\n' | grep -v python3 | sort -u | paste -sd:)
  command_of "export LD_LIBRARY_PATH='$libraries' PYTHONPATH='$python'
exec /usr/bin/python3 \"\$@\""
}

if works; then
  exit 0
fi
for way in from_index from_packages; do
  rm -rf "$folder"
  mkdir -p "$folder"
  if $way && works; then
    say "$("$folder/python" -c 'import torch; print("PyTorch", torch.__version__)'), $(du -sh "$folder" | cut -f1)"
    exit 0
  fi
  say "that did not work"
done
rm -rf "$folder"
exit 1
