# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# A short address space: every command ends, well or with exit code 5 and one line. (127: the loader found no room for
# the libraries.)

# short KIB ARG...: 0 or 5 within 20 seconds, and at most one line on stderr.
short() {
    kib=$1
    shift
    last="ulimit -v $kib; leeway $*"
    (
        # shellcheck disable=SC3045
        ulimit -v "$kib" || exit 99
        exec timeout 20 "$program" "$@"
    ) >"$out" 2>"$err" </dev/null
    got=$?
    case $got in
    0) [ ! -s "$err" ] || fails "$last: words on stderr" ;;
    5) [ "$(grep -c '^leeway: ' "$err")" -eq 1 ] && [ "$(wc -l <"$err")" -eq 1 ] || fails "$last: not one line" ;;
    127) [ "$kib" -lt 64000 ] || fails "$last: exit code 127" ;;
    *) fails "$last: exit code $got" ;;
    esac
}

"$make_model" unet model || fails 'make_model'
for kib in 56000 64000 72000 80000 96000 104000 128000 160000 200000 230000; do
    short "$kib" info
    short "$kib" info --threads 8
    short "$kib" sample model --n 2 --output x.npy --threads 4 --no-progress
done
short 900000 sample model --n 2 --output x.npy --threads 4 --no-progress
[ "$got" -eq 0 ] || fails 'room enough, and no picture'
