# What the scripts in this folder share: kubectl in one namespace, and checks that say what differs. Sourced, never run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
namespace=${NAMESPACE:-default}
patience=${PATIENCE:-60}
models=llmmodels.ai.example.com

k() { kubectl --namespace "$namespace" "$@"; }

say() { echo "--- $*"; }

# same WHAT EXPECTED ACTUAL: ends the script where the two texts differ.
same() {
  if [ "$2" != "$3" ]; then
    printf '%s: expected\n%s\nbut there is\n%s\n' "$1" "$2" "$3" >&2
    exit 1
  fi
  echo "$3"
}

# until_same WHAT EXPECTED COMMAND...: waits until the command prints the text.
until_same() {
  local what=$1 expected=$2 actual='' end=$((SECONDS + patience))
  shift 2
  while [ $SECONDS -lt $end ]; do
    actual=$("$@" 2>/dev/null || true)
    if [ "$actual" = "$expected" ]; then
      echo "$actual"
      return 0
    fi
    sleep 0.2
  done
  same "$what" "$expected" "$actual"
}

# The columns NAME and READY of `kubectl get`, with single spaces.
ready() { k get "$@" --no-headers 2>/dev/null | awk '{ print $1, $2 }'; }
