#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# recipe_cifar10.sh PROGRAM CIFAR10 DIR JUDGE [options]: docs/recipes/cifar10.md from beginning to end. Trains the encoder
# of the loss (10 epochs), a drifting generator for what is left of the time, and measures its pictures in JUDGE, a network
# that is no kin of the encoder (MobileNetV2 of ImageNet). CIFAR10 is the folder of the binary batches. Killed or stopped,
# the same words go on where it ended: what is there is not done again.
#
#   --minutes M      for encoder and drift together (60)
#   --encoder SPEC   a published encoder instead of one trained here: drift gets all minutes
#   --beside LIST    ddpm, flow or ddpm,flow: the same U-Net for as many minutes as drift, and `leeway compare` of DDPM
#   --seed N         of every training (0)
#   --trial          some steps of everything: does it run?
set -eu
usage() {
    sed -n '3,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[ $# -ge 4 ] || usage
program=$1
data=cifar10:$2
dir=$3
judge=$4
shift 4
minutes=60 given='' beside='' seed=0 trial=no
while [ $# -gt 0 ]; do
    case $1 in
    --minutes | --encoder | --beside | --seed)
        [ $# -ge 2 ] || usage
        case $1 in
        --minutes) minutes=$2 ;;
        --encoder) given=$2 ;;
        --beside) beside=$2 ;;
        --seed) seed=$2 ;;
        esac
        shift 2
        ;;
    --trial)
        trial=yes
        shift
        ;;
    *) usage ;;
    esac
done
mkdir -p "$dir"

# What a folder was begun with stays.
printf '%s\n' "minutes $minutes encoder ${given:-own} seed $seed trial $trial" >"$dir/begun.new"
if [ -f "$dir/begun" ] && ! cmp -s "$dir/begun" "$dir/begun.new"; then
    echo "$dir was begun with: $(cat "$dir/begun")" >&2
    exit 2
fi
mv "$dir/begun.new" "$dir/begun"

train() { # NAME what options..
    name=$1
    shift
    [ -f "$dir/$name/summary.json" ] && return
    resume=''
    [ -d "$dir/$name" ] && resume=--resume
    # shellcheck disable=SC2086 # no word or one
    "$program" train "$@" --data "$data" --seed "$seed" --no-progress --output-dir "$dir/$name" $resume
}

number_in() { # KEY FILE
    sed -n "s/^ *\"$1\": \([0-9.]*\),*\$/\1/p" "$2" | head -n 1
}

few='--num-images 2000' epochs='--steps 3900' scored='--n-ddpm 1000'
[ $trial = no ] ||
    few='--num-images 100' epochs='--steps 4 --limit 512' scored='--score-steps 1 --ancestral-steps= --ddim-steps 2'

encoder=$given
if [ -z "$given" ]; then
    # shellcheck disable=SC2086 # lists of words
    train encoder encoder --objective classify --stages 3 --blocks 3 --width 16 --norm-type batch --crop-padding 4 \
        --weight-decay 0.05 --learning-rate 2e-3 --scheduler cosine --warmup-steps 100 --batch-size 128 $epochs \
        --precision bf16 --save-every 500 --keep-last-k-checkpoints 2
    encoder=$dir/encoder
fi

# The time that is left, told once: a run that goes on has the steps it began with.
if [ ! -f "$dir/drift_minutes" ]; then
    spent=0
    [ -n "$given" ] || spent=$(number_in seconds "$dir/encoder/summary.json")
    awk -v all="$minutes" -v spent="$spent" 'BEGIN { m = all - spent / 60; printf "%.2f\n", (m > 0.1 ? m : 0.1) }' \
        >"$dir/drift_minutes.new"
    mv "$dir/drift_minutes.new" "$dir/drift_minutes"
fi
length="--minutes $(cat "$dir/drift_minutes")"
[ $trial = no ] || length='--steps 3 --limit 512'
echo "drift: $length"

net='--base-channels 16 --channel-mult 1,2,4,4 --num-res-blocks 1 --attn-resolutions 8 --norm-groups 8 --dropout 0'
rate='--learning-rate 1e-3 --scheduler cosine --lr-floor 0.05 --warmup-steps 20 --ema-decay 0.995'
kept='--save-every 200 --keep-last-k-checkpoints 2 --sample-every 500'
# shellcheck disable=SC2086
train drift drift --encoder "$encoder" $net $rate $kept --noise-shape full --latent-dim 64 --feature-keys all \
    --feature-type bf16 --feature-cache 12000 --no-flip --groups 2 --negatives-per-group 64 --positives-per-group 256 \
    --adam-beta2 0.95 $length
for other in ddpm flow; do
    # shellcheck disable=SC2086
    case ,$beside, in
    *,$other,*) train $other $other $net $rate $kept --batch-size 128 $length ;;
    esac
done

# shellcheck disable=SC2086
for run in drift ddpm flow; do
    [ -d "$dir/$run" ] || continue
    [ -f "$dir/fid_$run.json" ] || {
        "$program" fid "$dir/$run" "$data" --split-b held-out $few --encoder "$judge" --json >"$dir/fid_$run.new"
        mv "$dir/fid_$run.new" "$dir/fid_$run.json"
    }
    echo "$run: Frechet distance in $judge: $(number_in frechet "$dir/fid_$run.json")"
    [ -f "$dir/$run.png" ] || "$program" sample "$dir/$run" --n 80 --output "$dir/$run.png" --quiet
done
case ,$beside, in
*,ddpm,*)
    # shellcheck disable=SC2086
    [ -f "$dir/compare/summary.json" ] ||
        "$program" compare --drift "$dir/drift" --ddpm "$dir/ddpm" --encoder "$judge" --battery "$judge" $few \
            $scored --planted-steps 0 --no-progress --output-dir "$dir/compare"
    ;;
esac
echo "$dir: done"
