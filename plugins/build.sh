#!/usr/bin/env bash
# Builds plugin crates to WebAssembly components with their manifests. It never builds or changes the host.
#
#   plugins/build.sh [-o FOLDER] [CRATE_FOLDER...]
#
# Without crate folders: all reference plugins, to target/plugins. Crates under tests/guests go to target/guests, those
# under examples to target/examples.
# -o puts all of them into one folder. A file is touched only if its content changes.
# WASM_COMPILER=debian takes Debian's compiler even where rustup has the target.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=wasm32-unknown-unknown
build_root=${CARGO_TARGET_DIR:-$root/target}
output=

while getopts o:h option; do
  case $option in
    o) output=$OPTARG ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
shift $((OPTIND - 1))

crates=("$@")
if [ ${#crates[@]} = 0 ]; then
  for folder in "$root"/plugins/*/; do
    grep -qsE '^pilothouse_sdk::(plugin|configured_plugin)!' "$folder/src/lib.rs" && crates+=("${folder%/}")
  done
fi

say() { echo "build.sh: $*"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# The usual way: rustup's compiler and its WebAssembly target. rustup stays silent about the network for minutes, so the
# attempt is cut short.
has_rustup_target() {
  [ "${WASM_COMPILER:-rustup}" = rustup ] || return 1
  command -v rustup >/dev/null || return 1
  rustup target list --installed 2>/dev/null | grep -qx $target && return 0
  [ -e "$build_root/wasm/no-rustup-target" ] && return 1
  timeout 60 rustup target add $target >/dev/null 2>&1 && return 0
  mkdir -p "$build_root/wasm" && touch "$build_root/wasm/no-rustup-target"
  return 1
}

# The other way: Debian's compiler and library sources, which build the standard library along.
need_debian_compiler() {
  [ -x /usr/bin/cargo ] && [ -d /usr/lib/rustlib/src/rust/library ] && [ -n "$(linker_folder)" ] && return 0
  command -v apt-get >/dev/null || {
    say "no compiler for $target: run 'rustup target add $target'" >&2
    exit 1
  }
  say "installing Debian's rustc-web cargo-web rust-web-src lld-19"
  as_root apt-get install -qq -y --no-install-recommends rustc-web cargo-web rust-web-src lld-19 >/dev/null
}

# A linker for WebAssembly under the name that rustc looks for: the toolchain's own, or Debian's.
linker_folder() {
  local own
  own=$(rustc --print sysroot 2>/dev/null)/lib/rustlib/$(uname -m)-unknown-linux-gnu/bin
  if [ -x "$own/rust-lld" ]; then
    echo "$own"
  elif [ -x /usr/bin/wasm-ld-19 ]; then
    mkdir -p "$build_root/wasm/linker"
    ln -sf /usr/bin/lld-19 "$build_root/wasm/linker/rust-lld"
    echo "$build_root/wasm/linker"
  fi
}

# The same bytes wherever the repository and the registry lie.
export RUSTFLAGS="--remap-path-prefix=$root=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"

if has_rustup_target; then
  say "rustup's compiler with its target $target"
  compile() { CARGO_TARGET_DIR=$build_root/wasm cargo rustc "$@"; }
else
  need_debian_compiler
  say "Debian's $(/usr/bin/rustc --version), standard library built along"
  compile() {
    RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 PATH=$(linker_folder):$PATH CARGO_TARGET_DIR=$build_root/wasm \
      /usr/bin/cargo rustc -Zbuild-std=std,panic_abort "$@"
  }
fi

cd "$root"
# As a part of the whole workspace, so that it shares what is built for the other programs.
(unset RUSTFLAGS && CARGO_TARGET_DIR=$build_root cargo build --quiet --workspace --bin pilothouse-pack)
for crate in "${crates[@]}"; do
  # Beside the crates under examples are plugins without code.
  [ -e "$crate/Cargo.toml" ] || continue
  crate=$(cd "$crate" && pwd)
  name=$(sed -n 's/^name = "\(.*\)"/\1/p' "$crate/Cargo.toml" | head -1)
  case $crate in
    */tests/guests/*) folder=${output:-$build_root/guests} ;;
    */examples/*) folder=${output:-$build_root/examples} ;;
    *) folder=${output:-$build_root/plugins} ;;
  esac
  say "$name"
  # One crate at a time, and only it as a dynamic library: a plugin may build upon another plugin's crate, in which case
  # that one is an ordinary library without exports.
  compile --quiet --locked --profile plugin --target $target --manifest-path "$crate/Cargo.toml" --lib --crate-type cdylib
  "$build_root/debug/pilothouse-pack" "$build_root/wasm/$target/plugin/${name//-/_}.wasm" -o "$folder/$name.wasm"
done
