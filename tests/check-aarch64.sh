#!/bin/sh
# check-aarch64.sh - the NEON kernels and the scalar ones, cross-compiled and run under emulation, give
# the bits of the kernels here. Run by "make check-aarch64", which sets the variables below.
#
#   SRCDIR, NATIVE (the native kernel-digest), FLAGS (the flags of the build that matter to numbers and
#   warnings); of the user: AARCH64_CC, AARCH64_RUN, AARCH64_ROOT (Debian: gcc-aarch64-linux-gnu,
#   qemu-user, libc6-dev-arm64-cross)
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
