#!/usr/bin/env bash
# Brings back, one after another, the defects that the plugin training-job had under disruption, and says which of its tests notice each.
# One of those that docs/training-job-tests.md names beside the defect must. Works on a copy of the repository as it was committed last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

patch=$PWD/plugins/training-job/tests/mutations.patch
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git archive HEAD | tar -x -C "$copy"
patch --quiet --strip=1 --directory="$copy" --input="$patch"
cd "$copy"
# The tests with the defects in them: each run wakes one of them up. Those of hosts that stop take longer than all others, and are about
# none of these.
tests() {
  CARGO_TARGET_DIR=$target/mutations RUST_BACKTRACE=0 \
    cargo test --locked -p training-job --no-fail-fast --lib --test training_job "$@" 2>&1 || true
}
# The tests of the plugin beside a defect.
named() { grep -F "\`$1\`" docs/training-job-tests.md | grep -oP '`training-job/\K[^`]+' || true; }
failed() { sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' | sort -u | paste -sd' '; }

without=$(tests -- --skip host_stops)
if ! grep -q '^test result: ok' <<<"$without" || [ -n "$(failed <<<"$without")" ]; then
  tail -20 <<<"$without" >&2
  echo "tests fail without any of the defects" >&2
  exit 1
fi
missed=0
# shellcheck disable=SC2013 # the names have no spaces
for mutation in $(grep -oP '^\+.*?(mutation::is\(|, )"\K[a-z-]+(?="\))' "$patch" | sort -u); do
  noticed=$(PILOTHOUSE_MUTATION=$mutation tests -- --skip host_stops | failed)
  expected=$(named "$mutation")
  if grep -qxF -f <(printf '%s\n' "$expected") <(tr ' ' '\n' <<<"$noticed") && [ -n "$expected" ]; then
    echo "$mutation: $noticed"
  else
    missed=$((missed + 1))
    echo "$mutation: ${noticed:-nobody notices}; expected one of: ${expected:-none is named}" | paste -sd' '
  fi
done
if [[ $missed -gt 0 ]]; then
  echo "$missed defects were not noticed by tests that stand beside them" >&2
  exit 1
fi
