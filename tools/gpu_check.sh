#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317
# gpu_check.sh [--short] [BUILD] [OUT]: on a machine with an NVIDIA GPU, shows that the GPU computes what the CPU computes,
# and times it, in less than eight minutes. Each stage has its own limit and leaves a line of OUT/stages.jsonl ({"stage",
# "status", "seconds"}) and a log, so that a run that is cut off keeps what it has; OUT/results.json holds all of them.
# --short: the smallest network instead of the timed ones, for the emulating driver. Exit 1 when a stage failed, 6 without
# a usable GPU. OUT is new. What PyTorch takes beside it: tools/gpu_baseline.py.
set -u
short=no
if [ "${1-}" = --short ]; then
    short=yes
    shift
fi
build=${1:-build}
out=${2:-gpu_check_$(date +%Y%m%d_%H%M%S)}
[ "${build#/}" = "$build" ] && build=$PWD/$build
program=$build/leeway
mkdir "$out" || exit 4
out=$(cd "$out" && pwd)
status=0
end=$((SECONDS + 470))
export LW_CACHE=$out/cache

# stage NAME LIMIT_S COMMAND...
stage() {
    local name=$1 limit=$2 left=$((end - SECONDS)) began rc
    shift 2
    [ "$limit" -le "$left" ] || limit=$left
    [ "$limit" -ge 2 ] || limit=2
    began=$(date +%s.%N)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
    rc=$?
    [ $rc -eq 0 ] || status=1
    awk -v n="$name" -v rc=$rc -v a="$began" -v b="$(date +%s.%N)" \
        'BEGIN {printf "{\"stage\": \"%s\", \"status\": %d, \"seconds\": %.3f}\n", n, rc, b - a}' |
        tee -a "$out/stages.jsonl"
    [ $rc -eq 0 ] || tail -n 15 "$out/$name.log" | sed 's/^/    /'
    return $rc
}

# near A B LIMIT: the numbers of two .npy files of f32 are at most LIMIT apart
near() {
    local f
    for f in "$1" "$2"; do
        tail -c +129 "$f" | od -An -v -t f4 -w4 >"$f.txt"
    done
    paste "$1.txt" "$2.txt" | awk -v limit="$3" '{d = $1 - $2; if (d < 0) d = -d; if (!(d <= most)) most = d; n++}
        END {printf "%d numbers, at most %g apart\n", n, most; exit !(n > 0 && most <= limit)}'
}

# compare NAME LIMIT ARGUMENTS..: the command's --output on both devices
compare() {
    local d name=$1 limit=$2
    shift 2
    for d in cpu cuda; do
        "$program" "$@" --device "$d" --output "$out/$name.$d.npy" || return
    done
    near "$out/$name.cpu.npy" "$out/$name.cuda.npy" "$limit"
}

# refuses WORDS ARGUMENTS..: exit code 6, and says so
refuses() {
    local words=$1 said
    shift
    said=$("$program" "$@" --device cuda 2>&1)
    [ $? -eq 6 ] || return 1
    case $said in *"$words"*) echo "$said" ;; *) return 1 ;; esac
}

make_networks() {
    "$program" train ddpm --data synth:16 --limit 64 --base-channels 32 --channel-mult 1,2 --num-res-blocks 1 \
        --attn-resolutions 8 --norm-groups 8 --batch-size 4 --steps 2 --output-dir "$out/run" &&
        "$build/make_model" encoder "$out/enc" &&
        "$program" sample "$out/run" --n 1 --steps 1 --seed 3 --output "$out/encode.input.npy" &&
        "$program" sample "$out/run" --n 1 --steps 1 --seed 4 --output "$out/field.pos.npy"
}

commands() {
    local n=8
    [ "$short" = yes ] && n=1
    compare sample 1e-2 sample "$out/run" --n "$n" --steps 5 || return
    compare sample_bf16 2e-2 sample "$out/run" --n "$n" --steps 5 --precision bf16 || return
    compare encode 1e-3 encode "$out/enc" --data synth:16 --limit 16 --num-images 2 || return
    compare run 1e-3 run "$out/enc" --input "$out/encode.input.npy" || return
    "$program" mc synth:16 --models "$out/enc" --only exp0 --passes 2 --trials 2 --num-images 4 --device cuda \
        --output-dir "$out/mc" || return
    compare field 1e-3 field --gen "$out/encode.input.npy" --pos "$out/field.pos.npy" || return
    refuses 'in f64' field --gen "$out/encode.input.npy" --pos "$out/field.pos.npy" --precision f64 || return
    refuses 'not computed on GPUs' train ddpm --data synth:16 --limit 64 --steps 1 --output-dir "$out/no"
}

# The U-Net of 38 M parameters by the driver's events: ms p50, p95, p99; where a step's time goes
time_networks() {
    if [ "$short" = yes ]; then
        "$program" profile "$out/run" --device cuda --runs 3 --json >"$out/profile.json"
        return
    fi
    "$program" bench unet --device cuda --batch-size 1,8,128 --samples 100 --seconds 3 --no-reference \
        --save "$out/bench.json" --csv "$out/bench.csv" || return
    "$program" profile unet --device cuda --no-compare-precisions --runs 20 --json >"$out/profile.json" || return
    "$program" profile unet --device cuda --no-compare-precisions --precision bf16 --runs 20 --json \
        >"$out/profile_bf16.json" || return
    "$program" profile unet --device cuda --no-compare-precisions --precision bf16 --batch-size 128 --runs 10 --json \
        >"$out/profile_bf16_b128.json"
}

# The figures of OUT in one file, and what happened on the way; no other program is needed for it.
write_results() {
    local name
    {
        printf '{"date": "%s", "short": "%s",\n"stages": [' "$(date -u +%FT%TZ)" "$short"
        paste -sd, "$out/stages.jsonl"
        printf ']'
        for name in info bench profile profile_bf16 profile_bf16_b128; do
            [ -s "$out/$name.json" ] && printf ',\n"%s": %s' "$name" "$(cat "$out/$name.json")"
        done
        printf '}\n'
    } >"$out/results.json"
}

nvidia-smi -q >"$out/nvidia-smi.log" 2>&1
"$program" info --json | tee "$out/info.json"
grep -q '"cuda"' "$out/info.json" && ! grep -q '"devices": \["cpu"\]' "$out/info.json" || exit 6
trap write_results EXIT
export -f compare refuses make_networks commands time_networks near
export program build out short
stage ops 90 env LW_OPS_DEVICE=cuda LW_OPS_LEAST=90 "$build/test_ops" || exit 1
[ "$short" = yes ] || stage networks 60 env LW_GOLDEN_DEVICE=cuda "$build/test_golden_networks"
stage make_networks 60 bash -c make_networks
stage commands 60 bash -c commands
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        for precision in f32 bf16; do
            stage "${tool}_$precision" 45 compute-sanitizer --tool "$tool" --error-exitcode 1 "$program" sample "$out/run" \
                --n 1 --steps 1 --precision "$precision" --device cuda --output "$out/$tool.npy"
        done
    done
else
    echo '{"stage": "compute-sanitizer", "status": "not installed"}' | tee -a "$out/stages.jsonl"
fi
stage time 150 bash -c time_networks
exit $status
