#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317
# gpu_check.sh [BUILD] [OUT]: on a machine with an NVIDIA GPU, shows that the GPU computes what the CPU computes, and times
# it. Each stage has its own limit and leaves a line of OUT/stages.jsonl ({"stage", "status", "seconds"}) and a log, so that
# a run that is cut off keeps what it has. Exit 1 when a stage failed, 6 without a usable GPU.
set -u
build=${1:-build}
out=${2:-gpu_check_$(date +%Y%m%d_%H%M%S)}
program=$PWD/$build/leeway
mkdir -p "$out" || exit 4
out=$(cd "$out" && pwd)
status=0

# stage NAME LIMIT_S COMMAND...
stage() {
    local name=$1 limit=$2 began rc
    shift 2
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

compare_sample() {
    local d
    for d in cpu cuda; do
        "$program" sample "$out/run" --n 8 --steps 5 --device "$d" --output "$out/$d.npy" || return
    done
    near "$out/cpu.npy" "$out/cuda.npy" 1e-2
}

time_sample() { # the 38 M U-Net, random weights
    local n
    "$program" train ddpm --data synth:32 --limit 64 --batch-size 1 --steps 1 --output-dir "$out/large" || return
    for n in 1 8 128; do
        "$program" sample "$out/large" --n "$n" --batch-size "$n" --steps 10 --device cuda --output "$out/large.npy" --json ||
            return
    done
}

nvidia-smi -q >"$out/nvidia-smi.log" 2>&1
"$program" info --json | tee "$out/info.json"
grep -q '"cuda"' "$out/info.json" && ! grep -q '"devices": \["cpu"\]' "$out/info.json" || exit 6
stage ops 120 env LW_OPS_DEVICE=cuda LW_OPS_LEAST=90 "$PWD/$build/test_ops" || exit 1
stage networks 90 env LW_GOLDEN_DEVICE=cuda "$PWD/$build/test_golden_networks"
stage train_small 60 "$program" train ddpm --data synth:16 --limit 64 --base-channels 32 --channel-mult 1,2 \
    --num-res-blocks 1 --attn-resolutions 8 --norm-groups 8 --batch-size 4 --steps 2 --output-dir "$out/run"
export -f compare_sample time_sample near
export program out
stage sample 60 bash -c compare_sample
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        stage "$tool" 90 compute-sanitizer --tool "$tool" --error-exitcode 1 "$program" sample "$out/run" --n 1 --steps 1 \
            --device cuda --output "$out/$tool.npy"
    done
else
    echo '{"stage": "compute-sanitizer", "status": "not installed"}' | tee -a "$out/stages.jsonl"
fi
stage time 120 bash -c time_sample
exit $status
