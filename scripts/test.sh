#!/usr/bin/env bash
# Runs all checks and tests, phase by phase, and stops at the first that fails. It changes no file of the repository and
# leaves nothing running.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${CARGO_TARGET_DIR:-target}
phases=12
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

phase "format" cargo fmt --all --check
# Both read all third-party code once more.
if [ -z "${CI:-}" ]; then
  phase "lints" lints
  phase "documentation" documentation
fi
phase "programs" cargo build --locked --workspace --bins
# What is built with Go, Helm for the charts too, takes minutes the first time, and what follows keeps half of the processors busy.
# CI leaves out other projects' controllers, which take five minutes more: tests with them are shown as ignored then.
go_programs() {
  "$target/debug/control-plane" fetch && "$target/debug/manifests" --check && "$target/debug/third-party" registry || return
  if [ -z "${CI:-}" ]; then
    "$target/debug/third-party" lws kueue
  fi
}
go_log=$(mktemp)
# A process group of its own: it ends with all that it started.
set -m
go_programs >"$go_log" 2>&1 &
building=$!
set +m
trap 'kill -- -"$building" 2>/dev/null || true; rm -f "$go_log"' EXIT
phase "plugins and test guests" make --no-print-directory plugins
# Without them, the tests of real workers are ignored and say so. All of them are two gigabytes to fetch.
frameworks() {
  if [ -n "${PILOTHOUSE_TEST_ALL:-}" ]; then
    scripts/torch.sh && scripts/openmpi.sh && scripts/frameworks.sh
  else
    echo "\`make frameworks\` gets PyTorch, Open MPI, TensorFlow and JAX, and runs the tests with them"
  fi
}

phase "frameworks of training jobs" frameworks
phase "languages of plugins" scripts/languages.sh
phase "tests" cargo test --locked --workspace --no-run
built() {
  local ended=0
  wait "$building" || ended=$?
  cat "$go_log"
  return "$ended"
}

phase "programs in Go, charts and manifests" built
phase "unit, documentation and black-box tests" cargo test --locked --workspace --no-fail-fast
# mdbook takes a while to build. Where it is not there, the pages' own links are tested all the same.
site() {
  if [ -n "${CI:-}" ] || [ -x "$target/tools/bin/mdbook" ]; then
    scripts/docs.sh && cargo test --quiet --locked --workspace --lib -- --ignored --exact site::each_link_of_the_site_leads_to_an_element
  else
    echo "\`make docs\` makes the site; its links are tested then, too"
  fi
}

# Outside the workspace, as a user's plugin is: with a target folder of its own, for its settings are its own, too.
example() {
  cargo fmt --check --manifest-path examples/greeting/Cargo.toml &&
    CARGO_PROFILE_DEV_DEBUG=none CARGO_TARGET_DIR=$target/example \
      cargo test --quiet --locked --manifest-path examples/greeting/Cargo.toml
}

# In CI these come last, each as long as there is time: whoever sends a change has run them, and a slow machine takes twice as long for all.
in_time() {
  if [ -z "${CI:-}" ] || [ "$SECONDS" -lt 3000 ]; then
    phase "$@"
  else
    number=$((number + 1))
    echo "=== $number/$phases $1: left out, for all else took $SECONDS s"
  fi
}

in_time "the example's own tests" example
in_time "the site of the pages" site
if [ -n "${CI:-}" ]; then
  in_time "lints" lints
  in_time "documentation" documentation
fi
echo "=== $number phases ok, $SECONDS s"
