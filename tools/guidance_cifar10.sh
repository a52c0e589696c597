#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guidance_cifar10.sh PROGRAM CIFAR10 DIR ENCODER BATTERY [options]: what trained guidance gives on CIFAR-10 at equal time
# (docs/drifting.md, "Guidance"). Trains the drifting generator of recipe_cifar10.sh twice with each seed, with strengths
# drawn from [1, 4] and without, then asks networks that are no kin of ENCODER for their verdict on strengths 1, 1.5, 2
# and 3 and on the other. Killed or stopped, the same words go on where it ended.
#
#   --guided N --plain N  steps of the two that take the same time on this machine (613 and 650: ten minutes of two Zen 4
#                         cores; a step with unconditional pictures takes 1.06 times as long)
#   --seeds LIST          (1,2,3)
#   --probe SPEC          a network whose linear probe says of how many pictures the class shows, too
set -eu
usage() {
    sed -n '3,13s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[ $# -ge 5 ] || usage
program=$1 data=cifar10:$2 dir=$3 encoder=$4 battery=$5
shift 5
guided=613 plain=650 seeds=1,2,3 probe=''
while [ $# -gt 1 ]; do
    case $1 in
    --guided) guided=$2 ;;
    --plain) plain=$2 ;;
    --seeds) seeds=$2 ;;
    --probe) probe="--probe $2 --probe-images 5000" ;;
    *) usage ;;
    esac
    shift 2
done
[ $# -eq 0 ] || usage
mkdir -p "$dir"

train() { # NAME seed options..
    run=$dir/$1-$2 seed=$2
    shift 2
    [ -f "$run/summary.json" ] && return
    resume=''
    [ -d "$run" ] && resume=--resume
    # shellcheck disable=SC2086 # no word or one
    "$program" train drift --data "$data" --encoder "$encoder" --seed "$seed" --threads 1 --no-progress \
        --base-channels 16 --channel-mult 1,2,4,4 --num-res-blocks 1 --attn-resolutions 8 --norm-groups 8 --dropout 0 \
        --learning-rate 1e-3 --scheduler cosine --lr-floor 0.05 --warmup-steps 20 --ema-decay 0.995 --adam-beta2 0.95 \
        --noise-shape full --latent-dim 64 --feature-keys all --feature-type bf16 --feature-cache 12000 \
        --feature-disk 12000 --no-flip --groups 2 --negatives-per-group 64 --positives-per-group 256 \
        --save-every 100 --keep-last-k-checkpoints 2 --output-dir "$run" $resume "$@"
}

strengths=1,1.5,2,3
for seed in $(echo "$seeds" | tr , ' '); do
    # Both at once on one thread each: what slows one slows the other.
    train guided "$seed" --steps "$guided" --unconditional-per-group 64 --alpha-dist uniform --alpha-min 1 --alpha-max 4 &
    train plain "$seed" --steps "$plain"
    wait $!
    for name in plain guided; do
        [ $name = plain ] && list=1 || list=$strengths
        for alpha in $(echo "$list" | tr , ' '); do
            run=$dir/$name-$seed
            out=$run-$alpha
            told=''
            [ $name = plain ] || told="--alpha $alpha"
            # shellcheck disable=SC2086
            [ -f "$out.png" ] || "$program" sample "$run" $told --n 80 --output "$out.png" --quiet
            # shellcheck disable=SC2086
            [ -f "$out.json" ] || {
                "$program" fid "$run" "$data" $told --num-images 2000 --battery "$battery" $probe --json >"$out.new"
                mv "$out.new" "$out.json"
            }
        done
    done
done
