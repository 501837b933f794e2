#!/usr/bin/env bash
# Prints the RUSTFLAGS that lay out a program by the profile FILE and, where there is one beside it, by the order of functions
# in FILE's name with .order.gz in the place of .profdata (docs/decisions/0012-a-profile-for-the-release.md).
# Usage: scripts/profile-flags.sh FILE
set -euo pipefail

profile=$(realpath "$1")
order=${profile%.profdata}.order.gz
target=${CARGO_TARGET_DIR:-target}
# Cargo does not know that the compiler reads the profile. The mark is another for another profile, and has all built anew.
mark=$(sha256sum "$profile" | cut -c1-12)
flags="-Cprofile-use=$profile --cfg profile_$mark"

# Only the linker that Rust brings along puts functions in an order, and it is the usual one on this platform alone.
if [[ -e $order && $(rustc -vV) == *"host: x86_64-unknown-linux-gnu"* ]]; then
  mark=$(sha256sum "$order" | cut -c1-12)
  mkdir -p "$target"
  functions=$(realpath "$target")/functions-$mark
  gunzip -c "$order" > "$functions.$$"
  mv "$functions.$$" "$functions"
  # Most of the functions that ran are a part of others by now, and no symbols of their own.
  flags+=" -Clink-arg=-Wl,--symbol-ordering-file=$functions,--no-warn-symbol-ordering"
  # Relocations in a tenth of the space: every page of them is read when a process starts. Known to this C library and later ones.
  if printf '%s\n' 2.36 "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" | sort -CV; then
    flags+=" -Clink-arg=-Wl,-z,pack-relative-relocs"
  fi
fi
echo "${RUSTFLAGS:-} $flags"
