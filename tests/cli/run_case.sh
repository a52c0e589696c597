# SPDX-License-Identifier: Apache-2.0
# run_case.sh CASE PROGRAM DIR: a command-line test. The case is a shell script that calls these functions:
#
#   expect CODE ARG...     runs the program; its exit code must be CODE; output is in $out and $err
#   out_has / err_has TEXT a line of stdout / stderr contains TEXT (fixed string)
#   out_is TEXT            stdout is exactly TEXT and a newline
#   fails MESSAGE          ends the test
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

# shellcheck disable=SC1090
. "$case_file"
printf 'ok: %s\n' "$case_file"
