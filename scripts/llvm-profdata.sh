#!/usr/bin/env bash
# Prints the llvm-profdata that merges what a program built with -Cprofile-generate has counted. It must not be older than the
# compiler's LLVM. Installs it where rustup can, and says what is missing else.
set -euo pipefail

say() { echo "profile: $*" >&2; }
of_rustc() { rustc -vV | sed -n "s/^$1: //p"; }

llvm=$(of_rustc 'LLVM version')
llvm=${llvm%%.*}

# The compiler's own, which rustup has or gets; else the system's. rustup stays silent about the network for minutes, so the
# attempt is cut short.
own=$(rustc --print sysroot)/lib/rustlib/$(of_rustc host)/bin/llvm-profdata
if ! [ -x "$own" ]; then
  say "installing llvm-tools"
  timeout 60 rustup component add llvm-tools >/dev/null 2>&1 || say "rustup has none"
fi
for candidate in "$own" "llvm-profdata-$llvm" llvm-profdata; do
  command -v "$candidate" >/dev/null || continue
  version=$("$candidate" --version | sed -n 's/.*LLVM version \([0-9]*\).*/\1/p')
  if [ "${version:-0}" -ge "$llvm" ]; then
    say "merging with $("$candidate" --version | sed -n 's/ *\(.*LLVM version.*\)/\1/p')"
    echo "$candidate"
    exit
  fi
done
say "an llvm-profdata of LLVM $llvm is missing: run 'rustup component add llvm-tools'"
exit 1
