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

lints() { cargo clippy --locked --workspace --all-targets -- -D warnings; }
# Half a second where nothing changed.
documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --no-deps; }
# Both read all third-party code once more.
checks() {
  phase "lints" lints
  phase "documentation" documentation
}

phase "format" cargo fmt --all --check
if [ -z "${CI:-}" ]; then checks; fi
phase "programs" cargo build --locked --workspace --bins
# It takes minutes the first time, and what follows keeps half of the processors busy.
control_plane=$(mktemp)
"$target/debug/control-plane" fetch >"$control_plane" 2>&1 &
fetching=$!
trap 'kill "$fetching" 2>/dev/null || true; rm -f "$control_plane"' EXIT
phase "plugins and test guests" make --no-print-directory plugins
# Outside the workspace, as a user's plugin is: with a target folder of its own, for its settings are its own, too.
example() {
  cargo fmt --check --manifest-path examples/greeting/Cargo.toml &&
    CARGO_PROFILE_DEV_DEBUG=none CARGO_TARGET_DIR=$target/example \
      cargo test --quiet --locked --manifest-path examples/greeting/Cargo.toml
}

phase "the example's own tests" example
# Without them, the tests of real workers are ignored and say so. The others that training jobs know are more than a gigabyte to fetch.
pytorch() { scripts/torch.sh || echo "there is none for this machine"; }
openmpi() { scripts/openmpi.sh || echo "there is none for this machine"; }
frameworks() {
  if [ -n "${PILOTHOUSE_TEST_ALL:-}" ]; then
    scripts/frameworks.sh
  else
    echo "\`make frameworks\` gets TensorFlow, JAX and PyTorch 1.12, and runs the tests with them"
  fi
}

phase "PyTorch" pytorch
phase "Open MPI" openmpi
phase "other frameworks" frameworks
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
phase "tests" cargo test --locked --workspace --no-run
fetched() {
  local ended=0
  wait "$fetching" || ended=$?
  cat "$control_plane"
  return "$ended"
}

phase "control plane programs" fetched
# Gets Helm too, which takes a minute or two the first time.
phase "charts and manifests" "$target/debug/manifests" --check
phase "unit, documentation and black-box tests" cargo test --locked --workspace --no-fail-fast
# In CI they come last: whoever sends a change has run them. A slow machine would take more time than there is.
if [ -n "${CI:-}" ]; then
  if [ "$SECONDS" -lt 3000 ]; then checks; else echo "=== lints and documentation are left out, for all else took $SECONDS s"; fi
fi
echo "=== $number phases ok, $SECONDS s"
