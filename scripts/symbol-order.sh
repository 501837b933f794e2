#!/usr/bin/env bash
# Prints the functions that FILE, a profile, has seen at work, those that run most first. The linker puts them together
# (docs/decisions/0012-a-profile-for-the-release.md).
# Usage: scripts/symbol-order.sh FILE
set -euo pipefail
profile=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool=$(scripts/llvm-profdata.sh)
# A function of one crate alone has the name of its unit of code before its own.
"$tool" show --all-functions --counts "$profile" | awk '
  /^  [^ ].*:$/ { name = $0; sub(/^  /, "", name); sub(/:$/, "", name); sub(/^.*;/, "", name) }
  /Block counts: / {
    gsub(/[^0-9]+/, " "); most = 0
    for (field = 1; field <= NF; field++) if ($field + 0 > most) most = $field + 0
    print most, name
  }
' | LC_ALL=C sort -k1,1nr -k2,2 | awk '$1 > 0 && !seen[$2]++ { print $2 }'
