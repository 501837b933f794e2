#!/usr/bin/env bash
# Runs all checks and tests, phase by phase, and stops at the first that fails. It changes no file of the repository and
# leaves nothing running.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${CARGO_TARGET_DIR:-target}
phases=15
number=0

# phase TITLE COMMAND...: says what begins and how long it took.
phase() {
  local title=$1 start=$SECONDS
  shift
  number=$((number + 1))
  echo "=== $number/$phases $title"
  if ! "$@"; then
    echo "=== $number/$phases $title: FAILED after $((SECONDS - start)) s" >&2
    exit 1
  fi
  echo "=== $number/$phases $title: ok, $((SECONDS - start)) s"
}

phase "format" cargo fmt --all --check
phase "lints" cargo clippy --locked --workspace --all-targets -- -D warnings
# Half a second where nothing changed.
documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --no-deps; }

phase "documentation" documentation
phase "programs" cargo build --locked --workspace --bins
phase "plugins and test guests" make --no-print-directory plugins
# Outside the workspace, as a user's plugin is: with a target folder of its own, for its settings are its own, too.
example() {
  cargo fmt --check --manifest-path examples/greeting/Cargo.toml &&
    CARGO_PROFILE_DEV_DEBUG=none CARGO_TARGET_DIR=$target/example \
      cargo test --quiet --locked --manifest-path examples/greeting/Cargo.toml
}

phase "the example's own tests" example
# Without them, the tests of real workers are skipped and say so.
pytorch() {
  scripts/torch.sh || echo "there is none for this machine"
  scripts/framework.sh torch-1.12 || echo "there is no PyTorch 1.12 for this machine"
}
tensorflow() { scripts/framework.sh tensorflow || echo "there is none for this machine"; }
jax() { scripts/framework.sh jax || echo "there is none for this machine"; }
openmpi() { scripts/openmpi.sh || echo "there is none for this machine"; }

phase "PyTorch" pytorch
phase "TensorFlow" tensorflow
phase "JAX" jax
phase "Open MPI" openmpi
phase "languages of plugins" scripts/languages.sh
# mdbook takes a while to build. Where it is not there, the pages' own links are tested all the same.
site() {
  if [ -n "${CI:-}" ] || [ -x "$target/tools/bin/mdbook" ]; then
    scripts/docs.sh
  else
    echo "\`make docs\` makes the site; its links are tested then, too"
  fi
}

phase "the site of the pages" site
phase "control plane programs" "$target/debug/control-plane" fetch
# Gets Helm too, which takes a minute or two the first time.
phase "charts and manifests" "$target/debug/manifests" --check
phase "unit, documentation and black-box tests" cargo test --locked --workspace --no-fail-fast
echo "=== all $phases phases ok, $SECONDS s"
