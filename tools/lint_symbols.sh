#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lint_symbols.sh [BUILD]: every global symbol of the folder libraries begins with lw_; no function of the C library is called
# that writes without bounds, races or draws badly; vector registers beyond SSE appear only in objects whose names say
# so. Exits 1 and names every breach.
set -u
build=${1:-build}
status=0

# liblw_check.a is the kernel tests' own helper
libraries=$(find "$build" -maxdepth 1 -name 'liblw_*.a' ! -name liblw_check.a)
# shellcheck disable=SC2086
bad=$(nm -g --defined-only $libraries 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^lw_/ {print "  " $3}' | sort -u)
if [ -n "$bad" ]; then
    printf 'global symbols without the lw_ prefix:\n%s\n' "$bad"
    status=1
fi

unsafe='gets|str(n?cat|cpy|tok)|stpcpy|v?sprintf|bcmp|bcopy|bzero|getpw|mktemp|tmpnam|tempnam|vfork|s?rand(om)?|[dlm]rand48'
# shellcheck disable=SC2086
bad=$(nm -A -u $libraries 2>/dev/null | grep -wE "U (__)?($unsafe)(_chk)?$")
if [ -n "$bad" ]; then
    printf 'unsafe functions:\n%s\n' "$bad"
    status=1
fi

count=0
for object in $(find "$build"/CMakeFiles/lw_*.dir/src -name '*.o' | sort); do
    count=$((count + 1))
    case $object in
    *_avx512.c.o | *_avx512bf16.c.o | *_amx.c.o) continue ;;
    *_avx2.c.o | *_avxvnni.c.o) registers='zmm[0-9]|[xy]mm(1[6-9]|2[0-9]|3[01])' ;; # AVX-512 has more of each
    *) registers='[yz]mm[0-9]|xmm(1[6-9]|2[0-9]|3[01])' ;;
    esac
    if objdump -d --no-show-raw-insn "$object" | grep -qE "%($registers)"; then
        printf '%s: vector registers that its name does not announce\n' "$object"
        status=1
    fi
done
if [ "$count" -eq 0 ]; then
    printf 'no objects in %s\n' "$build"
    exit 1
fi
[ "$status" -ne 0 ] || printf 'symbols: %s objects, prefix, functions and registers as they should be\n' "$count"
exit $status
