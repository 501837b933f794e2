#!/usr/bin/env bash
# Fetches packages of this system's distribution, with all that they depend on and this machine lacks, and unpacks them into a folder,
# beside each other and not installed:
#
#   scripts/unpack.sh FOLDER PACKAGE...
#
# Nothing is unpacked where this machine has all of them installed. Fails where the distribution is not one of Debian's kind.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
root=$1
shift
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null
mkdir -p "$root"
# As apt would install them.
missing=$(apt-get --simulate --no-install-recommends install "$@" | sed -n 's/^Inst \([^ ]*\) .*/\1/p')
[ -n "$missing" ] || exit 0
echo "unpack.sh: $(wc -w <<<"$missing") packages of this system's distribution" >&2
packages=$(mktemp -d)
trap 'rm -r "$packages"' EXIT
# The package names are words.
# shellcheck disable=SC2086
(cd "$packages" && apt-get download -qq $missing)
for package in "$packages"/*.deb; do
  dpkg-deb --extract "$package" "$root"
done
