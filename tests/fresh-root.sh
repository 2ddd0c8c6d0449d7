#!/bin/bash
# fresh-root.sh [FOLDER] - the README's two commands on a machine that has nothing: a minimal Debian in a
# new folder, a clone of this repository in it, the chat command in a pseudo terminal, the test command.
# Then the Debian package: built there, in a second root installed with apt, used, and removed. Run as
# root; needs debootstrap, a network and 4 GB. Not part of make check.
#
#   FOLDER    where the roots are made, and left afterwards; without it a temporary one that is removed
#   SUITE     the Debian release (bookworm)
#   MIRROR    where its packages come from (http://deb.debian.org/debian)
#   STEPS     what to do, of "chat test package" (all)
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
say() { printf '\n== %s\n' "$*"; }
die() { echo "fresh-root.sh: $*" >&2; exit 1; }
die_with() { tail -n 40 "$1"; shift; die "$*"; } # log, words

[ "$(id -u)" = 0 ] || die "must be run as root, for chroot and mount"
for tool in debootstrap unshare script git; do
    command -v "$tool" >/dev/null || die "there is no $tool here"
done
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    work=$(cd "$1" && pwd)
    [ -z "$(ls -A "$work")" ] || die "$work is not empty"
    trap 'echo "roots and logs are in $work"' EXIT
else
    work=$(mktemp -d "${TMPDIR:-/var/tmp}/k3chat-root-XXXXXX")
    trap 'rm -rf "$work"' EXIT
fi

make_root() { # name
    debootstrap --variant=minbase "${SUITE:-bookworm}" "$work/$1" \
        "${MIRROR:-http://deb.debian.org/debian}" >"$work/$1.log" 2>&1 ||
        die_with "$work/$1.log" "debootstrap failed"
    cp /etc/resolv.conf "$work/$1/etc/resolv.conf"
}
# Runs a command in a root, with mounts that end with it and an environment of its own.
inside() { # name, command
    unshare --mount --pid --fork --kill-child -- sh -euc '
        mount --make-rprivate /
        mount -t proc proc "$1/proc"
        mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$1/dev/pts"
        ln -sf pts/ptmx "$1/dev/ptmx"
        mkdir -p "$1/dev/shm"
        mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
        exec chroot "$1" /usr/bin/env -i HOME=/root TERM=xterm-256color \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
            /bin/sh -euc "cd; $2"' sh "$work/$1" "$2"
}
# The command behind a marker of the README.
readme() { sed -n "/^<!-- $1 command -->\$/,/^\`\`\`\$/p" "$src/README.md" | grep -vE '^(<!--|```|$)'; }
# Waits until a text is on a terminal's recording; not longer than the program lives.
await() { # text, recording, process
    until grep -qaF -e "$1" "$2" 2>/dev/null; do
        kill -0 "$3" 2>/dev/null || return 1
        sleep 1
    done
}
# Opens a chat in a pseudo terminal, types, and leaves it.
chat() { # name, command
    local keys=$work/keys recording=$work/$1/root/recording pid
    mkfifo "$keys"
    printf '%s\n' "$2" >"$work/$1/root/chat.sh"
    inside "$1" "script -qefc 'stty rows 24 cols 80; . ./chat.sh' recording" <"$keys" >/dev/null &
    pid=$!
    exec 3>"$keys"
    rm "$keys"
    await "Enter sends" "$recording" "$pid" || die_with "$recording" "the chat did not open"
    printf 'Hello\r' >&3
    await " tok" "$recording" "$pid" || die_with "$recording" "the chat did not answer"
    # Ctrl+Q; the second one stops a running answer.
    printf '\021\021' >&3
    wait "$pid" || die_with "$recording" "the chat ended with status $?"
    exec 3>&-
    echo "the chat opened, answered and closed"
}

say "a minimal Debian"
make_root first
git clone -q --no-hardlinks "$src" "$work/first/root/k3chat"
log=$work/log
for step in ${STEPS:-chat test package}; do
    case $step in
        chat)
            say "the README's chat command"
            readme chat
            chat first "cd k3chat && $(readme chat)"
            ;;
        test)
            say "the README's test command"
            readme test
            inside first "cd k3chat && $(readme test)" >"$log" 2>&1 || {
                grep -E '^(FAIL|ERROR)' "$log" || true
                die_with "$log" "the test command failed"
            }
            grep -E '^# (TOTAL|PASS|SKIP|FAIL|ERROR)' "$log"
            ;;
        package)
            say "the Debian package"
            inside first 'cd k3chat && ./autogen.sh --install-deps &&
                apt-get install -q -y --no-install-recommends build-essential debhelper lintian &&
                ./configure -q && make -s deb DEB_BUILD_OPTIONS=nocheck' >"$log" 2>&1 ||
                die_with "$log" "the package does not build"
            # A root without compilers and headers: what the package needs stands in its control file.
            make_root second
            cp "$work"/first/root/k3chat/deb/k3chat_*.deb "$work/second/root/k3chat.deb"
            inside second 'apt-get update -q && apt-get install -q -y --no-install-recommends ./k3chat.deb &&
                k3chat --version && k3chat --batch --prompt Hello --max-tokens 4 && k3chat doctor' \
                >"$log" 2>&1 || die_with "$log" "the package does not install or run"
            chat second k3chat
            inside second 'dpkg -L k3chat >files && apt-get purge -q -y k3chat' >"$log" 2>&1 ||
                die_with "$log" "the package cannot be removed"
            inside second 'while read -r f; do
                [ ! -f "$f" ] || { echo "$f is left behind"; exit 1; }
                done <files' || die "the package leaves files behind"
            echo "the package builds, installs, runs and leaves nothing behind"
            ;;
        *) die "there is no step '$step'" ;;
    esac
done
say "passed"
