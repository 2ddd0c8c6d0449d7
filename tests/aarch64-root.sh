#!/bin/sh
# aarch64-root.sh FOLDER - Debian's AArch64 libraries that the program needs, unpacked below FOLDER, for
# "make check-aarch64 AARCH64_ROOT=FOLDER". Downloads with the system's own package sources, changes
# nothing else of the system. Says so and ends with 77 where that is not possible.
set -eu
[ $# = 1 ] || { echo "usage: aarch64-root.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
root=$(cd "$1" && pwd)
for tool in apt-get dpkg-deb; do
    command -v $tool >/dev/null 2>&1 || { echo "aarch64-root: there is no $tool here"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/debs"
apt() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
        -o Dir::State="$work/state" -o Dir::State::status=/dev/null -o Dir::Cache="$work/cache" "$@"
}
# The libraries with what they need themselves; the C library's headers come with the cross compiler.
libs='libncurses-dev libyaml-dev libjansson-dev libutf8proc-dev libcmark-dev libxxhash-dev
    libcurl4-openssl-dev libssl-dev libgomp1 libcmocka-dev libvterm-dev'
if ! apt update >"$work/log" 2>&1; then
    tail -n 3 "$work/log"
    echo "aarch64-root: the packages of AArch64 are not to be had here"
    exit 77
fi
# shellcheck disable=SC2086
apt install --print-uris -y --no-install-recommends $libs 2>"$work/log" |
    sed -n "s/^'[^']*' \([^_ ]*\)_.*\.deb .*/\1/p" |
    grep -vxE 'libc6-dev|libc-dev-bin|linux-libc-dev|libcrypt-dev|perl.*|.*-base' >"$work/names" || true
if ! [ -s "$work/names" ] || ! (cd "$work/debs" && xargs apt-get -q -o APT::Architecture=arm64 \
    -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Dir::State="$work/state" \
    -o Dir::State::status=/dev/null -o Dir::Cache="$work/cache" download <"$work/names") \
    >>"$work/log" 2>&1; then
    tail -n 3 "$work/log"
    echo "aarch64-root: the packages of AArch64 could not be downloaded"
    exit 77
fi
for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$root"
done
# Links from the root of the system would lead into this one's; the linker then takes an archive instead.
find "$root" -type l -lname '/*' | while read -r link; do
    ln -sf "$root$(readlink "$link")" "$link"
done
echo "aarch64-root: $(find "$work/debs" -name '*.deb' | wc -l) packages in $root"
