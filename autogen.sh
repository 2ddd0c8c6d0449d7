#!/bin/sh
# Makes ./configure. With --install-deps, first installs the Debian/Ubuntu packages that building
# and testing need (asks apt-get; uses sudo when not root).
set -eu
cd "$(dirname "$0")"

packages="gcc make autoconf automake pkg-config libncurses-dev libyaml-dev libjansson-dev
libutf8proc-dev libcmark-dev libxxhash-dev liburing-dev libcurl4-openssl-dev libssl-dev
libcmocka-dev libvterm-dev"

usage()
{
    echo "usage: ./autogen.sh [--install-deps]"
    echo "packages for --install-deps:" $packages
}

case "${1-}" in
    "") ;;
    --help) usage; exit 0 ;;
    --install-deps)
        command -v apt-get >/dev/null || {
            echo "autogen.sh: no apt-get here; install the equivalents of:" $packages >&2
            exit 1
        }
        sudo=
        [ "$(id -u)" = 0 ] || sudo=sudo
        [ -z "$sudo" ] || command -v sudo >/dev/null || {
            echo "autogen.sh: installing packages needs root, and there is no sudo here; as root do:" >&2
            echo "    apt-get update && apt-get install" $packages >&2
            exit 1
        }
        echo "autogen.sh: installing" $packages
        # The index may be absent on a fresh machine, and old everywhere else.
        $sudo apt-get update -q
        # shellcheck disable=SC2086 # a list
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
        ;;
    *) usage >&2; exit 2 ;;
esac

command -v autoreconf >/dev/null || {
    echo "autogen.sh: autoreconf not found; run ./autogen.sh --install-deps" >&2
    exit 1
}
autoreconf --install --force
echo "autogen.sh: now run ./configure (or configure from another folder), then make"
