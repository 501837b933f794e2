#!/usr/bin/env bash
# Gets a framework without GPUs from PyPI into a folder of target, for the tests in which real replicas meet:
#
#   scripts/framework.sh jax           # 150 MB to fetch, 600 MB in target/jax
#   scripts/framework.sh tensorflow    # 250 MB to fetch, 1.6 GB in target/tensorflow
#
# It installs nothing outside of that folder, and does nothing where it is there already; removing the folder undoes it. After that, the
# command `python` in it is a Python that can import the framework. PyTorch has more ways, and a script of its own: torch.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

framework=${1:-}
case $framework in
  jax) package=jax ;;
  tensorflow) package=tensorflow-cpu ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

folder=${CARGO_TARGET_DIR:-target}/$framework
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
say() { echo "framework.sh: $*" >&2; }

works() { [ -x "$folder/python" ] && "$folder/python" -c "import $framework" 2>/dev/null; }

if works; then
  exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
say "installing $package from PyPI"
if python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install --quiet "$package"; then
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$folder/venv/bin/python" >"$folder/python"
  chmod +x "$folder/python"
  if works; then
    version=$("$folder/python" -c "import $framework; print($framework.__version__)" 2>/dev/null)
    say "$framework $version, $(du -sh "$folder" | cut -f1)"
    exit 0
  fi
fi
say "that did not work"
rm -rf "$folder"
exit 1
