#!/usr/bin/env bash
# Gets the frameworks of training jobs that `make test` does without, for the tests in which real replicas meet, and names each that there is
# none of for this machine. It installs nothing outside of target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for framework in torch-1.12 tensorflow jax; do
  scripts/framework.sh "$framework" || echo "frameworks.sh: there is no $framework for this machine" >&2
done
