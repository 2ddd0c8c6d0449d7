#!/bin/sh
# check-aarch64.sh - the NEON kernels and the scalar ones, cross-compiled and run under emulation, give
# the bits of the kernels here. Run by "make check-aarch64", which sets the variables below.
#
#   SRCDIR, NATIVE (the native kernel-digest), PROGRAM (the native k3chat), FLAGS (the flags of the build
#   that matter to numbers and warnings); of the user: AARCH64_CC, AARCH64_RUN, AARCH64_ROOT (Debian:
#   gcc-aarch64-linux-gnu, qemu-user, libc6-dev-arm64-cross)
#
# With AARCH64_LIBS=FOLDER, filled by tests/aarch64-root.sh, the whole program is built too, and its
# logits on the demo model must be those of the program here, byte for byte. AARCH64_SUITE=1 besides
# runs "make check" there, AARCH64_SUITE='test_gates test_state' these of its programs.
set -eu
cc=${AARCH64_CC:-aarch64-linux-gnu-gcc}
run=${AARCH64_RUN:-qemu-aarch64}
root=${AARCH64_ROOT:-/usr/aarch64-linux-gnu}
for tool in "$cc" "$run"; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "check-aarch64: SKIPPED, there is no $tool here"
        exit 0
    fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo '#define K3_KERNELS_NEON 1' >"$work/config.h"
k=$SRCDIR/engine/kernels
# FLAGS is a list of words
# shellcheck disable=SC2086
"$cc" -std=c11 -O2 $FLAGS -I"$work" -o "$work/digest" "$k/scalar.c" "$k/dispatch.c" "$k/neon.c" \
    "$SRCDIR/tests/kernel_cases.c" "$SRCDIR/tests/kernel_digest.c" -lm
"$NATIVE" scalar >"$work/native"
for set in scalar neon; do
    "$run" -L "$root" "$work/digest" $set >"$work/$set"
    if ! diff -u "$work/native" "$work/$set"; then
        echo "check-aarch64: FAILED, the set $set on AArch64 differs from the scalar set here"
        exit 1
    fi
done
for set in avx2 avx512; do
    if "$NATIVE" $set >"$work/$set" 2>/dev/null && ! diff -u "$work/native" "$work/$set"; then
        echo "check-aarch64: FAILED, the set $set differs from the scalar set"
        exit 1
    fi
done
echo "check-aarch64: PASSED, $(wc -l <"$work/native") kernels give the same bits in every set"

[ -n "${AARCH64_LIBS:-}" ] || exit 0
libs=$(cd "$AARCH64_LIBS" && pwd)
source=$(cd "$SRCDIR" && pwd)
here=$(pwd)
mkdir "$work/build"
cd "$work/build"
at=lib/aarch64-linux-gnu
export PKG_CONFIG_LIBDIR="$libs/usr/$at/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$libs"
if ! { "$source/configure" -q --host=aarch64-linux-gnu --without-liburing CC="$cc" \
           CPPFLAGS="-isystem $libs/usr/include" \
           LDFLAGS="-L$libs/usr/$at -L$libs/$at -Wl,-rpath-link,$libs/usr/$at:$libs/$at" &&
       make -s -j"$(nproc)" k3chat; } >"$work/log" 2>&1; then
    tail -n 20 "$work/log"
    echo "check-aarch64: FAILED, the program does not build for AArch64"
    exit 1
fi
cd "$here"
export XDG_CACHE_HOME="$work" XDG_CONFIG_HOME="$work" XDG_DATA_HOME="$work"
logits() { # file, program and its options
    out=$1
    shift
    "$@" --batch --prompt 'What is the true resident hit rate?' --max-tokens 8 --ignore-stop \
        --logits "$out" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}
logits "$work/here" "$PROGRAM"
for set in scalar neon; do
    logits "$work/there" "$run" -L "$libs" "$work/build/k3chat" --isa $set --io buffered
    if ! cmp "$work/here" "$work/there"; then
        echo "check-aarch64: FAILED, the logits of the set $set on AArch64 differ from those here"
        exit 1
    fi
done
echo "check-aarch64: PASSED, $(wc -c <"$work/here") bytes of logits of the whole program are the same"

[ -n "${AARCH64_SUITE:-}" ] || exit 0
cd "$work/build"
make -s -j"$(nproc)" check TESTS= >"$work/log" 2>&1 || {
    tail -n 20 "$work/log"
    echo "check-aarch64: FAILED, the tests do not build for AArch64"
    exit 1
}
touch "$work/built"
# A script in each program's place starts it under emulation, whoever calls it: the suite, or a test that
# starts the chat.
for file in *; do
    if [ -f "$file" ] && [ -x "$file" ] && head -c 4 "$file" | grep -q ELF; then
        mv "$file" "$file.elf"
        printf '#!/bin/sh\nexec %s -L %s -0 "$0" %s "$@"\n' "$run" "$libs" "$PWD/$file.elf" >"$file"
        chmod +x "$file"
        # All of one age: nothing is to be linked again.
        touch -r "$work/built" "$file"
    fi
done
export K3_EMULATED=1
rc=0
if [ "$AARCH64_SUITE" = 1 ]; then
    make -s -j"$(nproc)" check >"$work/log" 2>&1 || rc=$?
else
    make -s -j"$(nproc)" check TESTS="$AARCH64_SUITE" >"$work/log" 2>&1 || rc=$?
fi
if [ $rc != 0 ]; then
    cat test-suite.log 2>/dev/null || tail -n 40 "$work/log"
fi
grep -E '^# (TOTAL|PASS|SKIP|FAIL|ERROR)' "$work/log" || true
if [ $rc != 0 ]; then
    echo "check-aarch64: FAILED, the suite under emulation"
    exit 1
fi
echo "check-aarch64: PASSED, the suite under emulation"
