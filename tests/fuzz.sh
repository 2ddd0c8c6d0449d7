#!/bin/sh
# fuzz.sh SRCDIR SECONDS [TARGET]... - builds the fuzz targets with clang's libFuzzer under ./fuzz and
# runs each for so long from its stored corpus. New inputs stay in fuzz/corpus; a finding ends it.
set -eu

src=$1
seconds=$2
shift 2
targets=${*:-tokenizer chat transcript state profile config safetensors scan}
command -v clang >/dev/null || { echo "fuzz.sh: clang is not installed" >&2; exit 2; }

mkdir -p fuzz
cd fuzz
flags="-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
if [ ! -f Makefile ]; then
    "$src/configure" -q CC=clang CFLAGS="$flags -fsanitize=fuzzer-no-link"
fi
for t in $targets; do
    make -s fuzz-link FUZZ_TARGET="$t" FUZZ_FLAGS="$flags -fsanitize=fuzzer"
    mkdir -p "corpus/$t"
    echo "fuzz.sh: $t for $seconds s"
    ASAN_OPTIONS=detect_leaks=1 "./libfuzz_$t" -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 -artifact_prefix="./found_$t-" \
        "corpus/$t" "$src/tests/data/corpus/$t"
done
