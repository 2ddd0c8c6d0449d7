#!/bin/sh
# fuzz.sh SRCDIR SECONDS [TARGET]... - builds the fuzz targets with clang's libFuzzer and runs each for so
# long from its stored inputs, FUZZ_JOBS (2) at a time, in the folder FUZZ_BUILD (fuzz), which it configures
# unless that was done with `fuzz.sh --flags`. New inputs stay in corpus/ there; a finding ends its target
# and is stored beside it.
#
# Each target leaves a result like those of make check (fuzz_NAME.trs, with a log), for who counts them.
# Ends with 1 when a target found something, with 77 when the compiler has no libFuzzer.
#
#   fuzz.sh --flags      the CFLAGS of an instrumented build
#   fuzz.sh --distil SRCDIR SECONDS [TARGET]...
#                        the same, and the smallest set of inputs that reaches all that was reached
#                        becomes the stored one (tests/data/fuzz)
set -eu

flags="-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
instrument="$flags -fsanitize=fuzzer-no-link"
# Bytes of a distilled input: what is longer is cut, for the stored set to stay small. A configuration
# that is read to its end has more.
distilled_len() { case $1 in config) echo 4096 ;; *) echo 512 ;; esac; }

# One target, in the build folder: NAME SRCDIR SECONDS.
run_one()
{
    stored="$2/tests/data/corpus/$1"
    [ ! -d "$2/tests/data/fuzz/$1" ] || stored="$stored $2/tests/data/fuzz/$1"
    mkdir -p "corpus/$1"
    rc=0
    # shellcheck disable=SC2086 # a list of folders
    ASAN_OPTIONS=detect_leaks=1 "./libfuzz_$1" -max_total_time="$3" -timeout=20 -rss_limit_mb=4096 \
        -print_final_stats=1 -artifact_prefix="./found_$1-" "corpus/$1" $stored \
        >"fuzz_$1.log" 2>&1 || rc=$?
    # A target that ran nothing has not passed.
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "fuzz_$1.log")
    result=PASS
    [ "$rc" = 0 ] && [ "${runs:-0}" -gt 0 ] || result=FAIL
    printf ':test-result: %s fuzz_%s\n' "$result" "$1" >"fuzz_$1.trs"
    echo "$result: fuzz_$1, ${runs:-0} runs in $3 s"
}

case ${1-} in
    --flags) echo "$instrument"; exit 0 ;;
    --one) shift; run_one "$@"; exit 0 ;;
    --distil) distil=yes; shift ;;
    *) distil=no ;;
esac

self=$(cd "$(dirname "$0")" && pwd)/fuzz.sh
src=$1
seconds=$2
shift 2
targets=${*:-$(cd "$src/tests" && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//' | grep -vxE 'replay|file')}
jobs=${FUZZ_JOBS:-2}
build=${FUZZ_BUILD:-fuzz}
mkdir -p "$build"
cd "$build"
rm -f fuzz_*.trs fuzz_*.log

cat >try.c <<'END'
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return data == NULL && size > 0; }
END
# shellcheck disable=SC2086 # a list of flags
if ! clang $flags -fsanitize=fuzzer try.c -o try >/dev/null 2>&1; then
    echo "fuzz.sh: skipped: no clang with libFuzzer (Debian: clang, libclang-rt-14-dev)" >&2
    for t in $targets; do
        printf ':test-result: SKIP fuzz_%s\n' "$t" >"fuzz_$t.trs"
    done
    exit 77
fi
rm -f try try.c
[ -f Makefile ] || "$src/configure" -q CC=clang CFLAGS="$instrument"
make -s -j"$jobs" fuzz-libs
printf '%s\n' $targets | xargs -P "$jobs" -I NAME \
    make -s fuzz-link FUZZ_TARGET=NAME FUZZ_FLAGS="$flags -fsanitize=fuzzer"
printf '%s\n' $targets | xargs -P "$jobs" -I NAME sh "$self" --one NAME "$src" "$seconds"

found=no
for t in $targets; do
    grep -q PASS "fuzz_$t.trs" || { found=yes; tail -n 40 "fuzz_$t.log"; }
done
[ "$found" = no ] || exit 1
[ "$distil" = yes ] || exit 0
for t in $targets; do
    rm -rf distilled
    mkdir -p distilled "$src/tests/data/fuzz/$t"
    "./libfuzz_$t" -set_cover_merge=1 -max_len="$(distilled_len "$t")" -verbosity=0 distilled "$src/tests/data/corpus/$t" \
        "$src/tests/data/fuzz/$t" "corpus/$t" >distil.log 2>&1 || { tail distil.log; exit 1; }
    rm -rf "$src/tests/data/fuzz/$t"
    mkdir "$src/tests/data/fuzz/$t"
    # What is among the hand-made inputs already stays theirs; libFuzzer names a file by its SHA-1.
    sha1sum "$src/tests/data/corpus/$t"/* >hand-made
    for f in distilled/*; do
        name=$(basename "$f")
        grep -q "^$name" hand-made || cp "$f" "$src/tests/data/fuzz/$t/$(echo "$name" | cut -c1-12)"
    done
    echo "fuzz.sh: $t: $(ls "$src/tests/data/fuzz/$t" | wc -l) inputs"
done
