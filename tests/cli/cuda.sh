# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# --device cuda on the emulating driver: what it makes is what the CPU makes, every call that fails is told in one line
# and leaves nothing behind, and a machine without a GPU says why.

LW_CACHE=$PWD/cache
export LW_CACHE
net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --norm-groups 4 --dropout 0'
# shellcheck disable=SC2086
expect 0 train ddpm --data synth:16 --limit 64 $net --batch-size 4 --steps 1 --output-dir ddpm

if [ ! -e /dev/nvidia0 ]; then
    expect 6 sample ddpm --n 1 --device cuda --output x.npy
    err_has 'no NVIDIA driver is installed'
    [ -e x.npy ] && fails 'wrote pictures without a device'
    expect 0 info
    out_has 'no NVIDIA driver is installed'
fi
for number in +0 ' 0' 00 -1 1x; do
    expect 2 sample ddpm --device "cuda:$number" --output x.npy
done
expect 2 sample ddpm --device cuda:x --output x.npy
err_has 'cuda:x'
for command in 'sample ddpm --output x.npy' 'info' 'train ddpm --data synth:16 --steps 1 --output-dir no'; do
    # shellcheck disable=SC2086
    LW_DEVICE=cuda:x expect 2 $command
    err_has 'LW_DEVICE=cuda:x: must be cpu or cuda[:N]'
done
LW_DEVICE=cuda:x expect 0 sample ddpm --n 1 --device cpu --output x.npy
rm x.npy

LD_LIBRARY_PATH=$LW_EMULATED_GPU_DIR
export LD_LIBRARY_PATH
expect 0 info --json
out_has 'emulated GPU'
LW_EMULATED_GPUS=2 expect 0 info
out_has 'gpu       cuda:0  emulated GPU'
out_has '          cuda:1  emulated GPU'
for gpu in 'old:too old' 'none:sees no GPU' 'stub:the toolkit'; do
    LW_EMULATED_GPU=${gpu%%:*}
    export LW_EMULATED_GPU
    expect 6 sample ddpm --n 1 --device cuda --output x.npy
    err_has "${gpu#*:}"
done
unset LW_EMULATED_GPU
expect 6 sample ddpm --n 1 --device cuda:1 --output x.npy
err_has 'the driver sees 1 GPU'

# The differences of pictures in [-1, 1], as numbers: leeway fid of a file with itself is 0.
LW_EMULATED_REPORT=$PWD/report
export LW_EMULATED_REPORT
for d in cpu cuda; do
    expect 0 sample ddpm --n 1 --steps 4 --device $d --output $d.npy
done
grep -q ' 0 blocks, 0 contexts, 0 streams, 0 modules, 0 graphs, 0 events left' report || fails "left behind: $(cat report)"
grep -q '^[0-9]* calls, [1-9]' report || fails 'no kernel ran'
# the sampler's picture has two places, which its runs change: two recordings, each from its second run on
grep -q ' kernels, 2 replays' report || fails "not replayed: $(cat report)"
near() { # near A B [MOST]: numbers of two .npy files of f32, at most 1e-4 apart
    for f in "$1" "$2"; do
        tail -c +129 "$f" | od -An -v -t f4 -w4 >"$f.txt"
    done
    paste "$1.txt" "$2.txt" | awk -v most="${3:-1e-4}" '{d = $1 - $2; if (d < 0) d = -d; if (!(d <= most)) bad++; n++}
        END {exit !(n > 0 && bad == 0)}'
}
near cpu.npy cuda.npy || fails 'pictures differ from the CPU by more than rounding'

# On tensor cores, from operands of bf16: the sums' order is all that differs from the CPU's.
for d in cpu cuda; do
    expect 0 sample ddpm --n 1 --steps 2 --precision bf16 --device $d --output $d.npy
done
near cpu.npy cuda.npy || fails 'bf16: pictures differ from the CPU by more than rounding'

# Steps and wholes are timed by the driver's events; what the GPU lacks is a row that says so.
expect 0 profile ddpm --device cuda --runs 3 --json
out_has '"peak_gflops": null'
grep -q '"ms": 0.0[,}]' "$out" && fails 'a step without its time'
err_has 'is not computed on GPUs yet'
grep -q ' [1-9][0-9]* replays.* 0 events left' report || fails "profile: $(cat report)"
expect 0 bench unet --list --device cuda
out_has 'unet.forward_launched_b128'
expect 0 bench unet --list
grep -q launched "$out" && fails 'the CPU records no runs'
expect 0 bench kernels --filter conv3x3_128_3@32_s1_b8 --samples 3 --device cuda --csv bench.csv
grep -q '_s1_b8,' bench.csv || fails "no row: $(cat bench.csv)"

# The drift field of arrays: the same statistics, the same F but for rounding.
noise() { # noise FILE SHAPE COUNT SEED: numbers of either sign, 0.5 to 2 in size
    npy "$1" '<f4' "$2" "$(awk -v n="$3" -v seed="$4" 'function byte() {return int(256 * rand())}
        BEGIN {srand(seed); for (i = 0; i < n; i++) printf "\\%03o\\%03o\\%03o\\%03o", byte(), byte(), byte(), rand() < 0.5 ? 63 : 191}')"
}
noise gen.npy '2, 35, 3, 20' 4200 1
noise pos.npy '2, 40, 3, 20' 4800 2
noise unc.npy '2, 5, 3, 20' 600 3
noise w.npy '2,' 2 4
printf '\000\000\000\077\000\000\200\077' | dd of=w.npy bs=1 seek=128 conv=notrunc 2>/dev/null
for way in '' '--uncond unc.npy --uncond-weight w.npy' '--drift-variant plain' '--drift-variant tau-times-dim' \
    '--no-normalize-over-x --temperatures 0.3' --disable-shared-location-normalization; do
    for d in cpu cuda; do
        # shellcheck disable=SC2086
        expect 0 field --gen gen.npy --pos pos.npy $way --output $d.npy --json --device $d
        grep -v work_bytes "$out" | tr -cs '0-9.e+-' '\n' | grep '^-*[0-9]' >$d.stats
    done
    # a rounded distance of 7.4 over a temperature of 0.02 is an exponent off by 2e-5
    paste cpu.stats cuda.stats | awk '{d = $1 - $2; if (d < 0) d = -d; if (!(d <= 4e-5 * $1)) bad++; n++}
        END {exit !(n >= 5 && bad == 0)}' || fails "field $way: other statistics: $(paste cpu.stats cuda.stats)"
    near cpu.npy cuda.npy || fails "field $way: differs from the CPU by more than rounding"
done
grep -q ' 0 blocks, 0 contexts, 0 streams, 0 modules, 0 graphs, 0 events left' report || fails "field left behind: $(cat report)"
expect 6 field --gen gen.npy --pos pos.npy --device cuda --precision f64
err_has 'in f64 is plain loops on the CPU'
expect 6 field --gen gen.npy --pos pos.npy --device cuda --precision f64 --output no.npy
[ -e no.npy ] && fails 'wrote a field that is refused'
# Distances of vectors rounded to bf16 on both, but less another centre: each is as far from f32.
for d in cpu cuda; do
    expect 0 field --gen gen.npy --pos pos.npy --field-precision bf16 --output $d.npy --device $d
done
near cpu.npy cuda.npy 0.2 || fails 'field bf16: differs from the CPU by more than its rounding'
near cpu.npy cuda.npy 1e-3 && fails 'field bf16: nothing was rounded'
expect 0 field --gen gen.npy --pos pos.npy --device cuda --output whole.npy
k=1
while :; do
    LW_EMULATED_FAIL=$k "$program" field --gen gen.npy --pos pos.npy --device cuda --output no.npy >"$out" 2>"$err"
    got=$?
    last="field: call $k fails"
    grep -q ' 0 blocks, 0 contexts, 0 streams, 0 modules, 0 graphs, 0 events left' report || fails "$last: left behind: $(cat report)"
    [ "$(sed 's/ .*//' report)" -ge "$k" ] || break
    if [ $got -eq 0 ] && cmp -s whole.npy no.npy; then # memory of the host that copies go on from was refused
        rm no.npy
        k=$((k + 5))
        continue
    fi
    case $got in 5 | 6) ;; *) fails "$last: exit code $got" ;; esac
    [ -e no.npy ] && fails "$last: wrote a field"
    [ "$(grep -vcE 'WARNING: ASan|^False positive error reports|google/sanitizers' "$err")" -eq 1 ] || fails "$last: not one line"
    k=$((k + 5))
done
[ "$got" -eq 0 ] || fails "field: no call fails: exit code $got"

expect 6 train ddpm --data synth:16 --limit 64 --steps 1 --batch-size 4 --output-dir no --device cuda
err_has 'not computed on GPUs'

expect 6 train drift --data synth:16 --limit 16 --generator dit --hidden-dim 32 --depth 1 --num-heads 2 --patch-size 8 \
    --groups 1 --negatives-per-group 2 --positives-per-group 2 --steps 1 --output-dir no --device cuda
err_has 'not computed on GPUs yet'
[ -d no ] && fails 'a run directory of a training that is refused'

# Out of memory is said with the size.
LW_EMULATED_BYTES=20000
export LW_EMULATED_BYTES
expect 5 sample ddpm --n 1 --steps 1 --output x.npy --device cuda
err_has 'no room for'
# Once the weights are there: that of all the rest together, which is asked before any of it is taken.
needs=0
while
    LW_EMULATED_BYTES=$((LW_EMULATED_BYTES + 20000))
    "$program" sample ddpm --n 1 --steps 1 --output x.npy --device cuda >"$out" 2>"$err"
    got=$?
    [ "$got" -ne 0 ]
do
    [ "$got" -eq 5 ] || fails "too little memory: exit code $got"
    grep -q 'no room for .* in one piece' "$err" && fails "not asked before: $(cat "$err")"
    grep -q 'values of the network and prepared weights, beside the weights there: cuda:0: no room for' "$err" && needs=$((needs + 1))
    [ "$LW_EMULATED_BYTES" -lt 2000000 ] || fails 'no room is enough'
done
[ "$needs" -gt 0 ] || fails 'the values of the network are not counted'
unset LW_EMULATED_BYTES

expect 0 bench prove --filter walk_512_uniform --device cuda
out_has 'without a policy nothing is left for a GPU'
expect 6 bench eval --device cuda
err_has 'computed by the CPU'
expect 6 bench --tune t.json --list --device cuda
err_has "of the CPU's convolutions"
expect 0 bench queue --list --device auto
err_has '--device auto is cpu: bench queue is computed by the CPU'
# The ops and the drift field on the GPU beside the CPU's references.
expect 2 check --filter norm --isa ref --device cuda
err_has 'a level of the CPU'
expect 2 check --filter no_such_case --device cuda
err_has 'no case'
expect 0 check --filter ops.pad,drift.one --device cuda
out_has '3 cases on cuda:0: 0 wrong'
expect 0 check --filter ops.pad --device cuda --json
out_has '{"device": "cuda:0", "passed": true, "cases": 1, "wrong": 0, "not_computed": 0}'
LW_EMULATED_FAIL=300 expect 6 check --filter ops.relu6,ops.subsample,ops.concat --device cuda

# A step of a recorded sampler is four calls: its tick, its start, a mark behind it, and whether the fourth run before is done. Nobody
# reads what nobody looks at.
for steps in 4 14; do
    expect 0 sample ddpm --n 1 --steps $steps --output x.npy --device cuda
    cp report report.$steps
done
[ $(($(sed 's/ .*//' report.14) - $(sed 's/ .*//' report.4))) -le 40 ] ||
    fails "ten steps more: $(cat report.4) and $(cat report.14)"

# Of a call that opens the device the driver's own word is told.
for k in 1 3 5 8; do
    LW_EMULATED_FAIL=$k expect 6 sample ddpm --n 1 --steps 1 --output no.npy --device cuda
    err_has CUDA_ERROR
done

# Opening the device, the first steps, from there on every 61st call, and the last, which bring the result; LW_CUDA_FULL=1: every
# one. What was there before stays.
expect 0 sample ddpm --n 1 --steps 3 --output whole.npy --device cuda
expect 0 sample ddpm --n 1 --steps 3 --seed 5 --output before.npy --device cuda
last_calls=$(($(sed 's/ .*//' report) - 6))
k=1
while :; do
    cp before.npy x.npy
    LW_EMULATED_FAIL=$k "$program" sample ddpm --n 1 --steps 3 --output x.npy --device cuda >"$out" 2>"$err"
    got=$?
    last="call $k fails"
    grep -q ' 0 blocks, 0 contexts, 0 streams, 0 modules, 0 graphs, 0 events left' report || fails "$last: left behind: $(cat report)"
    [ "$(sed 's/ .*//' report)" -ge "$k" ] || break
    if [ $got -eq 0 ] && cmp -s whole.npy x.npy; then
        k=$((k + 1))
        continue
    fi
    case $got in 5 | 6) ;; *) fails "$last: exit code $got" ;; esac
    cmp -s before.npy x.npy || fails "$last: what was there is gone"
    # The address sanitizer says in three lines of its own that it does not know the driver's fibers.
    [ "$(grep -vcE 'WARNING: ASan|^False positive error reports|google/sanitizers' "$err")" -eq 1 ] ||
        fails "$last: not one line"
    if [ "$k" -lt 16 ] || [ "$k" -ge "$last_calls" ] || [ -n "${LW_CUDA_FULL:-}" ]; then
        k=$((k + 1))
    else
        k=$((k + 61 < last_calls ? k + 61 : last_calls))
    fi
done
[ "$got" -eq 0 ] || fails "no call fails: exit code $got"
[ "$k" -gt 100 ] || fails "only $k calls"
