# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# The n-th allocation of a process fails: the command ends with exit code 5 and one line that starts with "leeway: ", or
# it succeeds all the same with the result it always has. Samples n; LW_EVERY=1 in the environment tries every
# n and counts what went wrong; LW_ONLY=WORD tries only the commands that hold WORD.
shim=$(dirname "$program")/libfailing_alloc.so
LW_CACHE=$PWD/cache
export LW_CACHE
bad=0

# wrong MESSAGE: at once in a sample, a count over all n
wrong() {
    [ -n "$LW_EVERY" ] || fails "$1"
    printf '%s: %s\n' "$1" "$(tail -n 1 "$err")"
    bad=$((bad + 1))
}

# sweep STEP MADE ARG...: MADE is what must be the same each time: a file or a folder that the command makes, or stdout
sweep() {
    step=${LW_EVERY:-$1}
    made=$2
    shift 2
    case "$*" in *"$LW_ONLY"*) ;; *) return ;; esac
    rm -rf "$made"
    LW_COUNT_ALLOC=$dir/count LD_PRELOAD=$shim "$program" "$@" >"$out" 2>"$err" || fails "leeway $*: with all memory"
    total=$(cat "$dir/count")
    rm -rf kept
    mv "$made" kept
    n=1
    while [ "$n" -le "$total" ]; do
        last="LW_FAIL_ALLOC=$n leeway $*"
        rm -rf "$made"
        LW_FAIL_ALLOC=$n LD_PRELOAD=$shim timeout 20 "$program" "$@" >"$out" 2>"$err" </dev/null
        got=$?
        case $got in
        0) same kept "$made" || wrong "$last: another result" ;;
        1) grep -q 'Internal Error in libarchive: ' "$err" || wrong "$last: exit code 1" ;; # it ends the process
        5) [ "$(grep -c '^leeway: ..*' "$err")" -eq 1 ] || wrong "$last: not one line" ;;
        *) wrong "$last: exit code $got" ;;
        esac
        n=$((n + step))
    done
    printf '%s allocations, every %s: leeway %s\n' "$total" "$step" "$*"
}

# same A B: equal files, or equal weights in folders, whose other files tell of times
same() {
    [ -d "$1" ] || { cmp -s "$1" "$2" && return; }
    for weights in "$1"/*.safetensors "$1"/ema/*.safetensors; do
        [ ! -f "$weights" ] || cmp -s "$weights" "$2${weights#"$1"}" || return 1
    done
}

# frames through a pipeline: 40 more of them cost nothing (a thread may, now and then)
counted() {
    LW_COUNT_ALLOC=$dir/count LD_PRELOAD=$shim "$program" stream "$@" --every-frame >"$out" 2>"$err" || fails "stream $*"
    cat "$dir/count"
}
counted --input test:64x32 --num-frames 70 --output frames.y4m >"$dir/all"
head -c 90000 /dev/zero >frames.raw
for from in test:64x32 frames.y4m 'frames.raw --raw 20x20:yuv420p'; do
    for to in null to.y4m md5; do
        # shellcheck disable=SC2086
        few=$(counted --input $from --num-frames 20 --output $to)
        # shellcheck disable=SC2086
        many=$(counted --input $from --num-frames 60 --output $to)
        [ "$many" -lt $((few + 20)) ] || fails "stream $from to $to: $few allocations for 20 frames, $many for 60"
    done
done

"$make_model" encoder model && "$make_model" unet unet || fails 'make_model'
npy_noise x.npy '2, 3, 16, 16' 1536
npy_noise g.npy '8, 6' 48
npy c.npy '<i8' '2,' '\001\000\000\000\000\000\000\000\002\000\000\000\000\000\000\000'
mkdir family
printf 'parent(ann,bob).\nparent(bob,cid).\nparent(bob,dan).\n' >family/train.txt
printf 'r0:0.9:parent(x,z), parent(z,y) -> grand(x,y)\n' >family/rules.txt
printf 'grand(ann,dan).\n' >family/test.txt
case='--filter field_16x64x128x192 --seconds 0.01 --samples 3 --warm-up 1 --no-progress'
net='--base-channels 8 --channel-mult 1 --num-res-blocks 1 --attn-resolutions 16 --norm-groups 4 --dropout 0'
# shellcheck disable=SC2086
expect 0 bench field $case --save a.json
expect 0 data check synth:16

sweep 97 y.npy run model --input x.npy --output y.npy --threads 1
sweep 397 y.npy run unet --input x.npy --class c.npy --output y.npy --threads 1
sweep 397 s.npy sample unet --n 2 --steps 2 --output s.npy --threads 1
sweep 11 v.npy field --gen g.npy --pos g.npy --output v.npy --json --threads 1
sweep 97 quantized quantize model --calibration synth:16 --n 2 --batch-size 2 --output-dir quantized --threads 1
sweep 29 "$out" prove check family --json
sweep 29 "$out" inspect "$corpus/npz/stats.npz" --json
sweep 29 "$out" data check synth:16
sweep 29 "$out" bench --compare a.json,a.json
# shellcheck disable=SC2086
sweep 797 ddpm train ddpm --data synth:16 --limit 8 $net --batch-size 4 --steps 2 --threads 1 --no-progress \
    --output-dir ddpm
[ "$bad" -eq 0 ] || fails "$bad bad ends"
