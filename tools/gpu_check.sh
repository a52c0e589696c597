#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317
# gpu_check.sh [--short] [BUILD] [OUT]: on a machine with an NVIDIA GPU, shows that the GPU computes what the CPU computes,
# and times it, in less than eight minutes. Each stage has its own limit and leaves a line of OUT/stages.jsonl ({"stage",
# "status", "seconds"}) and a log, so that a run that is cut off keeps what it has; OUT/results.json holds all of them, and the
# times as rows beside their floors. --short: a few ops and the smallest networks, for the emulating driver. Exit 1 when a stage
# failed, 6 without a usable GPU. OUT is new. What PyTorch takes beside it: tools/gpu_baseline.py.
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
end=$((SECONDS + 470)) slower=1
[ "$short" = yes ] && end=$((SECONDS + 850)) slower=4 # machines without a GPU have other work, too
export LW_CACHE=$out/cache

# stage NAME LIMIT_S COMMAND...
stage() {
    local name=$1 limit=$(($2 * slower)) left=$((end - SECONDS)) began rc
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

# The same bits of a picture in a batch of 128 and of three, whose products have other tiles; the smallest network instead
batches() {
    local run=$out/wide n=128 b
    if [ "$short" = yes ]; then
        run=$out/run n=4
    else
        "$program" train ddpm --data synth:32 --limit 8 --base-channels 128 --batch-size 1 --steps 1 \
            --output-dir "$run" || return
    fi
    for b in "$n" 3; do
        "$program" sample "$run" --n "$n" --steps 2 --batch-size "$b" --precision bf16 --device cuda \
            --output "$out/batch_$b.npy" || return
    done
    cmp "$out/batch_$n.npy" "$out/batch_3.npy"
}

# What one H200 needs at least by its memory and tensor cores, what the first kernels shall take and what they shall take in
# the end, ms: of rows of whichever precision.
floors='^unet[.].*_b1$ 0.023 0.45 0.15
^unet[.].*_b8$ 0.13 0.6 0.25
^unet[.].*_b128$ 2.07 5 2.8
^sampling[.]ddim50.*_b1$ 1.2 23 7.5
^field[.]field_slots16_64x128x32x192$ 0.004 0.05 0.010
^field[.]field_1x4096x4096x768$ 0.6 2.4 0.9
^stream[.]gpu-stress:192_.*_1x$ 0.45 1.5 0.6
^vit[.]b14_.*_b128$ 7.7 20 10.5'

# bench NAME SUITE ARGUMENTS..: times by the driver's events into OUT/NAME.json; a line of OUT/rows.txt for each case: its
# name, method, ms p50, p95, p99
bench() {
    local name=$1 suite=$2
    shift 2
    "$program" bench "$suite" --device cuda --no-reference --seconds 1.5 --save "$out/$name.json" --csv "$out/$name.csv" \
        "$@" || return
    awk -F, 'NR > 1 {print $10 "." $11, $1, $4, $5, $6}' "$out/$name.csv" >>"$out/rows.txt"
}

# The U-Net of 38 M parameters, recorded and launched step by step; the smallest kernel instead
time_unet() {
    local b
    if [ "$short" = yes ]; then
        bench bench_short kernels --filter linear_77x131x203 --warm-up 1 --samples 3
        return
    fi
    for b in 1 8 128; do
        bench "bench_unet_b$b" unet --batch-size "$b" || return
    done
}

time_sampling() {
    bench bench_sampling sampling --batch-size 1 --samples 20 &&
        bench bench_sampling_bf16 sampling --batch-size 1 --samples 20 --precision bf16
}

time_field() {
    bench bench_field_slots field --filter field_slots16_64x128x32x192 &&
        bench bench_field_large field --filter field_1x4096x4096x768
}

# A frame through the network of 880 M parameters of live video, bytes to bytes, in bf16: there is no fp16 here, of the same
# bytes; a small one instead
time_live() {
    local model=gpu-stress:192 runs='--samples 100'
    [ "$short" = yes ] && model=simple-optimized-unet:8 runs='--warm-up 1 --samples 3'
    # shellcheck disable=SC2086
    bench bench_live stream --model "$model" --precision bf16 --filter "${model}_bf16_1x" $runs
}

# An encoder with random weights: profile's median of the whole network
time_vit() {
    local kind=dinov2_b14 name=b14 side=224 b=128 runs=10 precision
    [ "$short" = yes ] && kind=dinov2 name=short side=32 b=2 runs=1
    "$build/make_model" "$kind" "$out/vit" || return
    for precision in f32 bf16; do
        "$program" profile "$out/vit" --device cuda --no-compare-precisions --precision "$precision" --batch-size "$b" \
            --image-size "$side" --runs "$runs" --json >"$out/profile_vit_$precision.json" || return
        tr -d '\n' <"$out/profile_vit_$precision.json" | sed 's/.*"precisions": *\[[^]]*"ms": *\([0-9.e-]*\).*/\1/' |
            awk -v name="vit.${name}_${precision}_b$b $precision" '$1 > 0 {print name, $1; n++} END {exit n != 1}' \
                >>"$out/rows.txt" || return
    done
    rm -r "$out/vit"
}

# Where a step's time goes
profiles() {
    if [ "$short" = yes ]; then
        "$program" profile "$out/run" --device cuda --runs 3 --json >"$out/profile.json"
        return
    fi
    "$program" profile unet --device cuda --no-compare-precisions --runs 20 --json >"$out/profile.json" || return
    "$program" profile unet --device cuda --no-compare-precisions --precision bf16 --runs 20 --json \
        >"$out/profile_bf16.json" || return
    "$program" profile unet --device cuda --no-compare-precisions --precision bf16 --batch-size 128 --runs 10 --json \
        >"$out/profile_bf16_b128.json"
}

# What this GPU can do at most, beside which the times are read.
peaks() {
    "$program" info --peak --json --device cuda >"$out/peak.json" && grep -A 14 '"peak"' "$out/peak.json"
}

# Lines of rows.txt beside their floors, as JSON; what was not timed has no p50.
json_rows() {
    awk -v floors="$floors" '
        function number(key, text) {return (text + 0 > 0) ? sprintf(", \"%s\": %s", key, text) : ""}
        BEGIN {n = split(floors, line, "\n")}
        {
            printf "%s{\"row\": \"%s\", \"method\": \"%s\"%s%s%s", (NR > 1 ? ",\n " : ""), $1, $2, number("p50_ms", $3),
                number("p95_ms", $4), number("p99_ms", $5)
            for (i = 1; i <= n; i++) {
                split(line[i], f, " ")
                if ($1 ~ f[1])
                    printf "%s%s%s", number("floor_ms", f[2]), number("first_ms", f[3]), number("aim_ms", f[4])
            }
            printf "}"
        }' "$out/rows.txt"
}

# The figures of OUT in one file, and what happened on the way; no other program is needed for it.
write_results() {
    local file name
    {
        printf '{"date": "%s", "short": "%s",\n"stages": [' "$(date -u +%FT%TZ)" "$short"
        paste -sd, "$out/stages.jsonl"
        printf ']'
        [ -s "$out/rows.txt" ] && printf ',\n"rows": [%s]' "$(json_rows)"
        for file in "$out"/info.json "$out"/bench_*.json "$out"/profile*.json "$out/peak.json"; do
            name=${file##*/}
            [ -s "$file" ] && printf ',\n"%s": %s' "${name%.json}" "$(cat "$file")"
        done
        printf '}\n'
    } >"$out/results.json"
}

nvidia-smi -q >"$out/nvidia-smi.log" 2>&1
"$program" info --json | tee "$out/info.json"
grep -q '"cuda"' "$out/info.json" && ! grep -q '"devices": \["cpu"\]' "$out/info.json" || exit 6
trap write_results EXIT
export -f compare refuses make_networks commands batches near bench time_unet time_sampling time_field time_live time_vit profiles peaks
export program build out short
if [ "$short" = yes ]; then # the rest are tests of their own there
    stage ops 90 "$build/leeway-check" --device cuda --filter few_tiles,narrow --least 5 || exit 1
else
    stage ops 90 "$build/leeway-check" --device cuda --filter ops. --least 189 || exit 1
    stage drift 40 "$build/leeway-check" --device cuda --filter drift. --least 30
    stage networks 60 env LW_GOLDEN_DEVICE=cuda "$build/test_golden_networks"
fi
stage make_networks 60 bash -c make_networks
stage commands 60 bash -c commands
stage batches 30 bash -c batches
stage time_unet 70 bash -c time_unet
if [ "$short" = no ]; then
    stage time_sampling 40 bash -c time_sampling
    stage time_field 40 bash -c time_field
fi
stage time_live 60 bash -c time_live
stage time_vit 70 bash -c time_vit
stage profiles 40 bash -c profiles
stage peaks 30 bash -c peaks
# last: slow, and what is left of the time is theirs
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
exit $status
