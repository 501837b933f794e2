#!/usr/bin/env bash
# Gets a framework without GPUs from PyPI into a folder of target, for the tests in which real replicas meet:
#
#   scripts/framework.sh jax           # 150 MB to fetch, 600 MB in target/jax
#   scripts/framework.sh tensorflow    # 250 MB to fetch, 1.6 GB in target/tensorflow
#   scripts/framework.sh torch-1.12    # 780 MB to fetch, 1.6 GB in target/torch-1.12; needs Python 3.7 to 3.10
#
# It installs nothing outside of that folder, and does nothing where it is there already; removing the folder undoes it. After that, the
# command `python` in it is a Python that can import the framework. Today's PyTorch has more ways, and a script of its own: torch.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

framework=${1:-}
pythons=python3
case $framework in
  jax) package=jax module=jax ;;
  tensorflow) package=tensorflow-cpu module=tensorflow ;;
  # The last one before 2.0 of which PyPI's build has its CUDA in itself, and that is in use: its elastic rendezvous is an older one.
  torch-1.12) package=torch==1.12.1 module=torch pythons="python3.10 python3.9 python3.8 python3.7" ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

folder=${CARGO_TARGET_DIR:-target}/$framework
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
say() { echo "framework.sh: $*" >&2; }

works() { [ -x "$folder/python" ] && "$folder/python" -c "import $module" 2>/dev/null; }

# The first Python of these versions: in the path, or one of pyenv's that is not chosen.
python_of() {
  local name candidate
  for name in "$@"; do
    for candidate in "$name" "${PYENV_ROOT:-$HOME/.pyenv}/versions/"*"/bin/$name"; do
      if "$candidate" -c '' 2>/dev/null; then
        echo "$candidate"
        return
      fi
    done
  done
  say "there is no Python of these versions: $*"
  return 1
}

if works; then
  exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
say "installing $package from PyPI"
# The versions are words.
# shellcheck disable=SC2086
if python=$(python_of $pythons) && "$python" -m venv "$folder/venv" && "$folder/venv/bin/pip" install --quiet "$package"; then
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$folder/venv/bin/python" >"$folder/python"
  chmod +x "$folder/python"
  if works; then
    version=$("$folder/python" -c "import $module; print($module.__version__)" 2>/dev/null)
    say "$module $version, $(du -sh "$folder" | cut -f1)"
    exit 0
  fi
fi
say "that did not work"
rm -rf "$folder"
exit 1
