#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# instructions.sh [--update] [BUILD]   counts the instructions of small cases and compares them with
#                                      bench/baseline/instructions.txt
#
# Times on a shared machine cannot say whether a change made something 5 % slower; instruction counts repeat to the
# last digit. Each case of bench_instructions runs once under callgrind at AVX2 on one thread (valgrind knows no
# AVX-512), so the counts are those of one compiler and one library. A case that needs 2 % more fails; one that needs
# 2 % less is good news: --update writes the baseline, so that the gain is not lost again unseen. Times are printed,
# never judged.
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
baseline=bench/baseline/instructions.txt
tolerance=2 # per cent
update=no
if [ "${1-}" = --update ]; then
    update=yes
    shift
fi
build=${1:-build}
command -v valgrind >/dev/null || {
    echo "valgrind is not installed: apt-get install valgrind" >&2
    exit 1
}
log=$(cmake --build "$build" --target bench_instructions 2>&1) || {
    printf '%s\n' "$log" | tail -n 30 >&2
    exit 1
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

"$build/bench_instructions" >"$tmp/native" || exit 1 # times, without callgrind
# One dump per call of lw_counted, numbered in the order of the cases.
valgrind --tool=callgrind --callgrind-out-file="$tmp/out" --collect-atstart=no --toggle-collect=lw_counted \
    --dump-after=lw_counted "$build/bench_instructions" >"$tmp/names" 2>"$tmp/log" || {
    tail -n 20 "$tmp/log" >&2
    exit 1
}
compiler=$(sed -n 's/^CMAKE_C_COMPILER_VERSION:.*=//p; s/^set(CMAKE_C_COMPILER_VERSION "\(.*\)")/\1/p' \
    "$build"/CMakeFiles/*/CMakeCCompiler.cmake | head -n 1)
kind=$(sed -n 's/^set(CMAKE_C_COMPILER_ID "\(.*\)")/\1/p' "$build"/CMakeFiles/*/CMakeCCompiler.cmake | head -n 1)
libc=$(getconf GNU_LIBC_VERSION)
{
    echo "# compiler $kind $compiler, $libc"
    i=0
    while read -r name _; do
        i=$((i + 1))
        count=$(sed -n 's/^totals: //p' "$tmp/out.$i" | head -n 1)
        [ -n "$count" ] || {
            echo "no count of $name in callgrind's output" >&2
            exit 1
        }
        echo "$name $count"
    done <"$tmp/names"
} >"$tmp/now" || exit 1

if [ "$update" = yes ]; then
    mkdir -p "${baseline%/*}"
    cp "$tmp/now" "$baseline"
    echo "wrote $baseline"
    exit 0
fi
[ -f "$baseline" ] || {
    echo "$baseline is missing: bench/instructions.sh --update $build" >&2
    exit 1
}
if [ "$(head -n 1 "$baseline")" != "$(head -n 1 "$tmp/now")" ]; then
    echo "not compared: the baseline is of$(head -n 1 "$baseline" | cut -c2-), this is$(head -n 1 "$tmp/now" | cut -c2-)"
    exit 0
fi
awk -v tolerance="$tolerance" '
    FNR == 1 { file++ }
    /^#/ { next }
    file == 1 { base[$1] = $2; next }
    file == 2 { ms[$1] = $2; next }
    {
        seen[$1] = 1
        if (!($1 in base)) { verdict = "new"; bad++; change = 0 }
        else {
            change = 100 * ($2 / base[$1] - 1)
            verdict = change > tolerance ? "MORE" : change < -tolerance ? "LESS" : "ok"
            bad += verdict == "MORE"
            less += verdict == "LESS"
        }
        if (FNR == 2) printf "%-18s %14s %14s %9s  %-5s %10s\n", "case", "base", "now", "change", "", "ms"
        printf "%-18s %14d %14d %+8.2f %%  %-5s %10s\n", $1, base[$1], $2, change, verdict, ms[$1]
    }
    END {
        for (name in base) if (!(name in seen)) { print name " is in the baseline only"; bad++ }
        if (less) print less " cases need less: run bench/instructions.sh --update to keep it so"
        exit bad > 0
    }' "$baseline" "$tmp/native" "$tmp/now" >"$tmp/table"
status=$?
cat "$tmp/table"
if [ "$status" -ne 0 ]; then
    echo
    echo "Cases need more than $tolerance % more instructions than the baseline, or are not in it. Look for the cause"
    echo "first: callgrind_annotate on what  valgrind --tool=callgrind $build/bench_instructions NAME  writes."
    echo "If the change is meant, run  bench/instructions.sh --update $build  and commit $baseline with it,"
    echo "saying in the commit what costs or saves the instructions."
    exit 1
fi
echo "$(($(wc -l <"$tmp/now") - 1)) cases need at most $tolerance % more instructions than $baseline"
