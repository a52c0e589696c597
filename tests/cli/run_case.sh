# SPDX-License-Identifier: Apache-2.0
# run_case.sh CASE PROGRAM DIR: a command-line test. The case is a shell script that calls these functions:
#
#   expect CODE ARG...     runs the program; its exit code must be CODE; output is in $out and $err
#   out_has / err_has TEXT a line of stdout / stderr contains TEXT (fixed string)
#   out_is TEXT            stdout is exactly TEXT and a newline
#   fails MESSAGE          ends the test
#   wait_for MESSAGE COMMAND...     until the command succeeds; fails with MESSAGE after a minute
#   npy NAME DESCR SHAPE BYTES...   writes an array; BYTES are printf escapes
#   npy_noise NAME SHAPE COUNT      writes COUNT floats between 0.05 and 1
#
# $corpus holds good and damaged files of every format; $make_model KIND DIR writes a small model folder.
case_file=$1
program=$2
dir=$3
out=$dir/stdout
err=$dir/stderr
rm -rf "$dir"
mkdir -p "$dir/work" || exit 1
cd "$dir/work" || exit 1
unset LW_LOG LW_ISA

fails() {
    printf 'FAILED: %s\n' "$*"
    printf -- '--- stdout\n'
    head -n 40 "$out"
    printf -- '--- stderr\n'
    head -n 40 "$err"
    exit 1
}

wait_for() {
    message=$1
    shift
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fails "$message"
        sleep 0.1
    done
}

expect() {
    code=$1
    shift
    last="leeway $*"
    "$program" "$@" >"$out" 2>"$err" </dev/null
    got=$?
    [ "$got" -eq "$code" ] || fails "$last: exit code $got, expected $code"
}

out_has() {
    grep -qF -- "$1" "$out" || fails "$last: stdout lacks \"$1\""
}

err_has() {
    grep -qF -- "$1" "$err" || fails "$last: stderr lacks \"$1\""
}

out_is() {
    printf '%s\n' "$1" | cmp -s - "$out" || fails "$last: stdout is not \"$1\""
}

npy() {
    npy_head "$1" "$2" "$3" >"$1"
    npy_file=$1
    shift 3
    for npy_bytes in "$@"; do
        # shellcheck disable=SC2059
        printf "$npy_bytes" >>"$npy_file"
    done
}

npy_head() {
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
}

npy_noise() {
    npy_head "$1" '<f4' "$2" >"$1"
    yes 'ab.>cd!?xyz=Qr5>tu$?' | tr -d '\n' | head -c "$((4 * $3))" >>"$1"
}

corpus=$(dirname "$case_file")/../fuzz/corpus
make_model=$(dirname "$program")/make_model

# shellcheck disable=SC1090
. "$case_file"
printf 'ok: %s\n' "$case_file"
