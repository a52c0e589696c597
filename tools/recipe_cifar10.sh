#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# recipe_cifar10.sh PROGRAM CIFAR10 DIR JUDGE [options]: docs/recipes/cifar10.md from beginning to end. Trains the encoder
# of the loss (10 epochs), a drifting generator for what is left of the time, and measures its pictures in JUDGE, a network
# that is no kin of the encoder (MobileNetV2 of ImageNet). CIFAR10 is the folder of the binary batches. Killed or stopped,
# the same words go on where it ended: what is there is not done again.
#
#   --minutes M      for encoder and drift together (60)
#   --encoder SPEC   a published encoder instead of one trained here: drift gets all minutes
#   --beside LIST    ddpm, flow or ddpm,flow: the same U-Net for as many minutes as drift, and `leeway compare` of all
#   --seed N         of every training (0)
#   --drift WORDS    more options of drift, after those of the recipe: one lever of docs/drifting.md at equal time
#   --steps-to FILE  trains nothing for long: writes how many steps --minutes hold on this machine, 40 of each training
#                    timed now (one to three minutes; nothing else should run) and the time of real features counted
#   --steps-from FILE  so many steps instead of --minutes: the same bits however busy the machine is. Lines of a name and a
#                    number: encoder, drift, ddpm, flow
#   --trial          some steps of everything: does it run?
set -eu
usage() {
    sed -n '3,19s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[ $# -ge 4 ] || usage
program=$1
data=cifar10:$2
dir=$3
judge=$4
shift 4
minutes=60 given='' beside='' seed=0 trial=no steps_to='' steps_from='' lever=''
while [ $# -gt 0 ]; do
    case $1 in
    --minutes | --encoder | --beside | --seed | --drift | --steps-to | --steps-from)
        [ $# -ge 2 ] || usage
        case $1 in
        --minutes) minutes=$2 ;;
        --encoder) given=$2 ;;
        --beside) beside=$2 ;;
        --seed) seed=$2 ;;
        --drift) lever=$2 ;;
        --steps-to) steps_to=$2 ;;
        --steps-from) steps_from=$2 ;;
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

steps_of() { # NAME; of --steps-from
    n=$(awk -v name="$1" '$1 == name { print $2 }' "$steps_from")
    case $n in
    '' | *[!0-9]*)
        echo "$steps_from: no line \"$1 N\" (steps)" >&2
        exit 2
        ;;
    esac
    echo "$n"
}

# What a folder was begun with stays; steps are written out, as their file may change.
if [ -z "$steps_to" ]; then
    length="minutes $minutes"
    [ -z "$steps_from" ] || length="steps $(tr '\n' ' ' <"$steps_from")"
    printf '%s\n' "$length encoder ${given:-own} seed $seed trial $trial${lever:+ drift $lever}" >"$dir/begun.new"
    if [ -f "$dir/begun" ] && ! cmp -s "$dir/begun" "$dir/begun.new"; then
        echo "$dir was begun with: $(cat "$dir/begun")" >&2
        exit 2
    fi
    mv "$dir/begun.new" "$dir/begun"
fi

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

net='--base-channels 16 --channel-mult 1,2,4,4 --num-res-blocks 1 --attn-resolutions 8 --norm-groups 8 --dropout 0'
rate='--learning-rate 1e-3 --scheduler cosine --lr-floor 0.05 --warmup-steps 20 --ema-decay 0.995'
kept='--save-every 200 --keep-last-k-checkpoints 2 --sample-every 500'
encoder=$given
[ -n "$given" ] || encoder=$dir/encoder

# Each training, with LENGTH.. as it is asked for.
train_encoder() {
    train encoder encoder --objective classify --stages 3 --blocks 3 --width 16 --norm-type batch --crop-padding 4 \
        --weight-decay 0.05 --learning-rate 2e-3 --scheduler cosine --warmup-steps 100 --batch-size 128 \
        --precision bf16 --save-every 500 --keep-last-k-checkpoints 2 "$@"
}
# shellcheck disable=SC2086 # lists of words
train_drift() {
    train drift drift --encoder "$encoder" $net $rate $kept --noise-shape full --latent-dim 64 --feature-keys all \
        --feature-type bf16 --feature-cache 12000 --no-flip --groups 2 --negatives-per-group 64 --positives-per-group 256 \
        --adam-beta2 0.95 $lever "$@"
}
# shellcheck disable=SC2086
train_other() { # ddpm or flow
    other=$1 own=''
    shift
    [ "$other" != ddpm ] || own='--beta-schedule cosine --prediction v_prediction --snr-gamma 5'
    train "$other" "$other" $net $rate $kept $own --batch-size 128 "$@"
}
beside() { # NAME: was it asked for?
    case ,$beside, in *,$1,*) ;; *) return 1 ;; esac
}

# Seconds a step of DIR/NAME takes: of its steps 11 to 40, which were logged one by one.
pace() { # NAME
    awk -F, '$1 == 10 { a = $3 } $1 == 40 { printf "%.4f\n", ($3 - a) / 30 }' "$dir/$1/loss_log.csv"
}

epochs=3900 # steps of 128 pictures: ten epochs of 50,000
if [ -n "$steps_to" ]; then
    pictures=2048 encoder_pace=0 encoder_steps=0
    short="--steps 40 --log-every 1 --limit $pictures"
    dir=$dir/timed
    rm -rf "$dir"
    mkdir -p "$dir"
    export LW_CACHE="$dir/cache" # features are made, not found
    # shellcheck disable=SC2086
    if [ -z "$given" ]; then
        encoder=$dir/encoder
        train_encoder $short
        encoder_pace=$(pace encoder) encoder_steps=$epochs
    fi
    begun=$(date +%s.%N)
    # shellcheck disable=SC2086
    train_drift $short
    ended=$(date +%s.%N)
    for other in ddpm flow; do
        # shellcheck disable=SC2086
        train_other $other $short
    done
    # What is not a step of drift is making the features of real pictures, here of a few; of the rest a twentieth goes
    # to checkpoints and grids.
    features=$(awk -v a="$begun" -v b="$ended" -v steps="$(number_in seconds "$dir/drift/summary.json")" -v n=$pictures \
        'BEGIN { printf "%.0f\n", (b - a - steps) * 50000 / n }')
    awk -v minutes="$minutes" -v n="$encoder_steps" -v encoder="$encoder_pace" -v features="$features" \
        -v drift="$(pace drift)" -v ddpm="$(pace ddpm)" -v flow="$(pace flow)" 'BEGIN {
            left = minutes * 60 / 1.05 - n * encoder
            if (left < features + drift) { print "the encoder leaves drift no time" >"/dev/stderr"; exit 2 }
            if (n) printf "encoder %d\n", n
            printf "drift %d\nddpm %d\nflow %d\n", (left - features) / drift, left / ddpm, left / flow
            printf "# %g minutes. Seconds a step: encoder %g, drift %g, ddpm %g, flow %g; real features: %d s\n", minutes,
                encoder, drift, ddpm, flow, features
        }' >"$steps_to.new"
    rm -rf "$dir"
    mv "$steps_to.new" "$steps_to"
    cat "$steps_to"
    exit
fi

few='--num-images 2000' probed='' scored='--n-ddpm 1000'
[ $trial = no ] || few='--num-images 100' probed='--probe-images 200' scored='--score-steps 1 --ancestral-steps= --ddim-steps 2 --flow-steps 1,2'

# How long NAME trains, else OTHERWISE; a trial some steps.
length_of() { # NAME OTHERWISE
    limit=''
    [ $trial = no ] || limit='--limit 512'
    if [ -n "$steps_from" ]; then
        n=$(steps_of "$1")
        echo "--steps $n $limit"
    elif [ $trial = yes ]; then
        echo "--steps 4 $limit"
    else
        echo "$2"
    fi
}

if [ -z "$given" ]; then
    length=$(length_of encoder "--steps $epochs")
    # shellcheck disable=SC2086
    train_encoder $length
fi

# The time that is left, told once: a run that goes on has the steps it began with.
if [ ! -f "$dir/drift_minutes" ]; then
    spent=0
    [ -n "$given" ] || spent=$(number_in seconds "$dir/encoder/summary.json")
    awk -v all="$minutes" -v spent="$spent" 'BEGIN { m = all - spent / 60; printf "%.2f\n", (m > 0.1 ? m : 0.1) }' \
        >"$dir/drift_minutes.new"
    mv "$dir/drift_minutes.new" "$dir/drift_minutes"
fi

for run in drift ddpm flow; do
    [ $run = drift ] || beside $run || continue
    length=$(length_of $run "--minutes $(cat "$dir/drift_minutes")")
    # shellcheck disable=SC2086
    if [ $run = drift ]; then
        echo "drift: $length"
        train_drift $length
    else
        train_other $run $length
    fi
done

# shellcheck disable=SC2086
for run in drift ddpm flow; do
    [ -d "$dir/$run" ] || continue
    [ -f "$dir/fid_$run.json" ] || {
        "$program" fid "$dir/$run" "$data" --split-b held-out $few --encoder "$judge" --json >"$dir/fid_$run.new"
        mv "$dir/fid_$run.new" "$dir/fid_$run.json"
    }
    [ -f "$dir/probe_$run.json" ] || {
        "$program" fid "$dir/$run" "$data" $few --probe "$judge" $probed --json >"$dir/probe_$run.new"
        mv "$dir/probe_$run.new" "$dir/probe_$run.json"
    }
    echo "$run: Frechet distance in $judge: $(number_in frechet "$dir/fid_$run.json")"
    echo "$run: shows the class asked for: $(number_in share "$dir/probe_$run.json") (by a probe on $judge)"
    [ -f "$dir/$run.png" ] || "$program" sample "$dir/$run" --n 80 --output "$dir/$run.png" --quiet
done
set --
for run in ddpm flow; do
    ! beside $run || set -- "$@" "--$run" "$dir/$run"
done
# shellcheck disable=SC2086
[ $# -eq 0 ] || [ -f "$dir/compare/summary.json" ] ||
    "$program" compare --drift "$dir/drift" "$@" --encoder "$judge" --battery "$judge" $few $scored --planted-steps 0 \
        --no-progress --output-dir "$dir/compare"
echo "$dir: done"
