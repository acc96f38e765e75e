#!/bin/sh
# Installs the program of a release of Webstrata, after it has compared its checksum:
#
#     curl --proto '=https' -sSfL https://github.com/webstrata/webstrata/releases/latest/download/install.sh | sh
#
# Needs curl or wget, tar, and sha256sum or shasum. install.sh --help lists the options.
set -eu

repository=https://github.com/webstrata/webstrata
# The oldest glibc that the program for it runs with; without that, the program for musl has all that it needs.
glibc_min=2.35

usage() {
    cat << END
Usage: install.sh [OPTIONS]

Options:
  --version V   version to install, as 0.1.0 [default: the latest]
  --to DIR      directory for the program [default: ~/.local/bin]
  --target T    target, as x86_64-unknown-linux-musl [default: that of this machine]
  --from URL    address of a directory with the archives and SHA256SUMS [default: the releases]
  --help        print this
END
}

fail() { echo "install.sh: $*" >&2; exit 1; }

version='' target='' from='' to=${HOME:-}/.local/bin
while [ $# -gt 0 ]; do
    case $1 in
        --help) usage; exit ;;
        --version | --to | --target | --from) [ $# -gt 1 ] || fail "$1 needs a value" ;;
        *) fail "unknown option $1; see --help" ;;
    esac
    case $1 in
        --version) version=${2#v} ;;
        --to) to=$2 ;;
        --target) target=$2 ;;
        --from) from=$2 ;;
    esac
    shift 2
done

has() { command -v "$1" > /dev/null 2>&1; }

# Whether the glibc of this machine is new enough.
has_glibc() {
    here=$(getconf GNU_LIBC_VERSION 2> /dev/null | sed -n 's/^glibc //p')
    [ -n "$here" ] && [ "$(printf '%s\n' "$glibc_min" "$here" | sort -t. -k1,1n -k2,2n | head -n 1)" = "$glibc_min" ]
}

this_target() {
    case $(uname -m) in
        x86_64 | amd64) cpu=x86_64 ;;
        aarch64 | arm64) cpu=aarch64 ;;
        *) fail "no program for the processor $(uname -m); build it: $repository" ;;
    esac
    case $(uname -s) in
        Linux) if has_glibc; then echo "$cpu-unknown-linux-gnu"; else echo "$cpu-unknown-linux-musl"; fi ;;
        Darwin) echo "$cpu-apple-darwin" ;;
        *) fail "no program for $(uname -s) from here; on Windows use install.ps1" ;;
    esac
}

fetch() {
    if has curl; then
        curl -sSfL -o "$2" "$1"
    elif has wget; then
        wget -q -O "$2" "$1"
    else
        fail "needs curl or wget"
    fi || fail "cannot fetch $1"
}

sum_of() {
    if has sha256sum; then sha256sum "$1"; elif has shasum; then shasum -a 256 "$1"; else fail "needs sha256sum"; fi |
        cut -d ' ' -f 1
}

[ -n "$target" ] || target=$(this_target)
if [ -z "$from" ]; then
    if [ -n "$version" ]; then from=$repository/releases/download/v$version
    else from=$repository/releases/latest/download; fi
fi
name=webstrata-$target
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
trap 'exit 1' HUP INT TERM

fetch "$from/SHA256SUMS" "$made/SHA256SUMS"
expected=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$name\.tar\.gz\$/\1/p" "$made/SHA256SUMS")
[ -n "$expected" ] || fail "$from has no $name.tar.gz"
fetch "$from/$name.tar.gz" "$made/archive.tar.gz"
found=$(sum_of "$made/archive.tar.gz")
[ "$found" = "$expected" ] || fail "$name.tar.gz has checksum $found, expected $expected: nothing is installed"

tar -xzf "$made/archive.tar.gz" -C "$made" "$name/webstrata"
"$made/$name/webstrata" --version > "$made/version" || fail "$name does not run here; try --target"
mkdir -p "$to"
# A program that runs is replaced, not written over.
cp "$made/$name/webstrata" "$to/.webstrata.new"
mv "$to/.webstrata.new" "$to/webstrata"
echo "installed: $to/webstrata, $(cat "$made/version")"
case :$PATH: in
    *:"$to":*) ;;
    *) echo "$to is not on the PATH; add it: export PATH=\"$to:\$PATH\"" ;;
esac
