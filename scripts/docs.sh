#!/usr/bin/env bash
# Makes the site of docs/ as HTML in target/book, and compiles the block of it that is on controller-runtime. It changes nothing of the
# repository. The first time it installs mdbook to target/tools, which takes some minutes and needs the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${CARGO_TARGET_DIR:-target}
version=0.5.4
repository=https://github.com/pilothouse/pilothouse/blob/main

mdbook=$target/tools/bin/mdbook
if [ "$("$mdbook" --version 2>/dev/null)" != "mdbook v$version" ]; then
  echo "docs: installing mdbook $version with 'cargo install'; that takes some minutes" >&2
  # Without optimisation it is there in half the time, and makes the site in seconds.
  cargo install --quiet --locked --debug --root "$target/tools" --no-default-features --features search "mdbook@$version"
fi

# The pages with links out of docs/ as links to the repository: a site has only its own pages.
book=$target/book-source
rm -rf "$book" && mkdir -p "$book"
cp -R docs "$book/src"
mv "$book/src/book.toml" "$book/"
find "$book/src" -maxdepth 1 -name '*.md' -exec sed -i -E "s#\]\(\.\./([^)]*)\)#](${repository}/\1)#g" {} +
find "$book/src/decisions" -name '*.md' -exec sed -i -E "s#\]\(\.\./\.\./([^)]*)\)#](${repository}/\1)#g" {} +
"$mdbook" build "$book" --dest-dir "$(realpath -m "$target/book")"

# A package of the module that has the same library.
peer=$target/coming-from
rm -rf "$peer" && mkdir -p "$peer"
cp bench/peers/controller-runtime/go.{mod,sum} "$peer/"
cp tests/fixtures/coming-from/controller-runtime.go "$peer/main.go"
(cd "$peer" && go vet .)
echo "docs: $target/book/index.html"
