#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# recipe_cifar10.sh PROGRAM CIFAR10 DIR JUDGES [options]: docs/recipes/cifar10.md from beginning to end. Trains the encoder
# of the loss, a drifting generator for what is left of the time, and measures its pictures in JUDGES, networks that are no
# kin of the encoder (MobileNetV2 of ImageNet; with commas between, distances are of the first, probes of all). CIFAR10 is
# the folder of the binary batches. Killed or stopped, the same words go on where it ended: what is there is not done again.
#
#   --recipe FILE    what is trained (docs/recipes/cifar10-60min.yaml)
#   --minutes M      for encoder and drift together (60)
#   --alpha A        strength of guidance of drift's pictures that are measured, as of sample (1)
#   --guidance-scale S  the same of ddpm and flow (1)
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
    sed -n '3,22s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[ $# -ge 4 ] || usage
program=$1
data=cifar10:$2
dir=$3
judges=$4 judge=${4%%,*}
shift 4
recipe=$(dirname "$0")/../docs/recipes/cifar10-60min.yaml
minutes=60 alpha='' scale='' given='' beside='' seed=0 trial=no steps_to='' steps_from='' lever=''
while [ $# -gt 0 ]; do
    case $1 in
    --recipe | --minutes | --alpha | --guidance-scale | --encoder | --beside | --seed | --drift | --steps-to | --steps-from)
        [ $# -ge 2 ] || usage
        case $1 in
        --recipe) recipe=$2 ;;
        --minutes) minutes=$2 ;;
        --alpha) alpha="--alpha $2" ;;
        --guidance-scale) scale="--guidance-scale $2" ;;
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

# What a folder was begun with stays; steps and the recipe's sum are written out, as their files may change.
if [ -z "$steps_to" ]; then
    length="minutes $minutes"
    [ -z "$steps_from" ] || length="steps $(tr '\n' ' ' <"$steps_from")"
    printf '%s\n' "$length encoder ${given:-own} seed $seed trial $trial${lever:+ drift $lever}${alpha:+ $alpha}${scale:+ $scale}" \
        "recipe $(basename "$recipe") $(cksum <"$recipe")" >"$dir/begun.new"
    if [ -f "$dir/begun" ] && ! cmp -s "$dir/begun" "$dir/begun.new"; then
        echo "$dir was begun with: $(cat "$dir/begun")" >&2
        exit 2
    fi
    mv "$dir/begun.new" "$dir/begun"
fi

train() { # NAME options..: a section of the recipe
    name=$1
    shift
    [ -f "$dir/$name/summary.json" ] && return
    resume=''
    [ -d "$dir/$name" ] && resume=--resume
    # shellcheck disable=SC2086 # no word or one
    "$program" train "$name" --config "$recipe#$name" --data "$data" --seed "$seed" --no-progress \
        --output-dir "$dir/$name" "$@" $resume
}

number_in() { # KEY FILE
    sed -n "s/^ *\"$1\": \([0-9.]*\),*\$/\1/p" "$2" | head -n 1
}

minutes_of() { # NAME; of the recipe
    sed -n "/^$1:/,/^[a-z]/s/^ *minutes: *\([0-9.]*\).*/\1/p" "$recipe"
}

# Of the time, the encoder's share by the recipe.
encoder=$given encoder_minutes=0
if [ -z "$given" ]; then
    encoder=$dir/encoder
    encoder_minutes=$(awk -v all="$minutes" -v e="$(minutes_of encoder)" -v g="$(minutes_of generator)" \
        'BEGIN { printf "%.3f\n", all * e / (e + g) }')
fi

train_drift() {
    # shellcheck disable=SC2086 # a list of words
    train drift --encoder "$encoder" $lever "$@"
}
beside() { # NAME: was it asked for?
    case ,$beside, in *,$1,*) ;; *) return 1 ;; esac
}

# Seconds a step of DIR/NAME takes: of its steps 11 to 40, which were logged one by one.
pace() { # NAME
    awk -F, '$1 == 10 { a = $3 } $1 == 40 { printf "%.4f\n", ($3 - a) / 30 }' "$dir/$1/loss_log.csv"
}

if [ -n "$steps_to" ]; then
    pictures=2048 encoder_pace=0
    short="--minutes 0 --steps 40 --log-every 1 --limit $pictures"
    dir=$dir/timed
    rm -rf "$dir"
    mkdir -p "$dir"
    export LW_CACHE="$dir/cache" # features are made, not found
    # shellcheck disable=SC2086
    if [ -z "$given" ]; then
        encoder=$dir/encoder
        train encoder $short
        encoder_pace=$(pace encoder)
    fi
    begun=$(date +%s.%N)
    # shellcheck disable=SC2086
    train_drift $short
    ended=$(date +%s.%N)
    for other in ddpm flow; do
        # shellcheck disable=SC2086
        train "$other" $short
    done
    # What is not a step of drift is making the features of real pictures, here of a few; of the rest a twentieth goes
    # to checkpoints and grids.
    features=$(awk -v a="$begun" -v b="$ended" -v steps="$(number_in seconds "$dir/drift/summary.json")" -v n=$pictures \
        'BEGIN { printf "%.0f\n", (b - a - steps) * 50000 / n }')
    awk -v minutes="$minutes" -v own="$encoder_minutes" -v encoder="$encoder_pace" -v features="$features" \
        -v drift="$(pace drift)" -v ddpm="$(pace ddpm)" -v flow="$(pace flow)" 'BEGIN {
            left = (minutes - own) * 60 / 1.05
            if (left < features + drift) { print "features leave drift no time" >"/dev/stderr"; exit 2 }
            if (own) printf "encoder %d\n", own * 60 / 1.05 / encoder
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
        echo "--minutes 0 --steps $n $limit"
    elif [ $trial = yes ]; then
        echo "--minutes 0 --steps 4 $limit"
    else
        echo "$2"
    fi
}

if [ -z "$given" ]; then
    length=$(length_of encoder "--minutes $encoder_minutes")
    # shellcheck disable=SC2086
    train encoder $length
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
        train $run $length
    fi
done

# shellcheck disable=SC2086
for run in drift ddpm flow; do
    [ -d "$dir/$run" ] || continue
    told=$scale
    [ $run != drift ] || told=$alpha
    [ -f "$dir/fid_$run.json" ] || {
        "$program" fid "$dir/$run" "$data" --split-b held-out $few $told --encoder "$judge" --json >"$dir/fid_$run.new"
        mv "$dir/fid_$run.new" "$dir/fid_$run.json"
    }
    [ -f "$dir/probe_$run.json" ] || {
        "$program" fid "$dir/$run" "$data" $few $told --probe "$judges" $probed --json >"$dir/probe_$run.new"
        mv "$dir/probe_$run.new" "$dir/probe_$run.json"
    }
    echo "$run: Frechet distance in $judge: $(number_in frechet "$dir/fid_$run.json")"
    named=$(sed -n '/"named":/,$p' "$dir/probe_$run.json" | number_in share -)
    echo "$run: shows the class asked for: $named (by more than half of probes on $judges)"
    [ -f "$dir/$run.png" ] || "$program" sample "$dir/$run" --n 80 $told --output "$dir/$run.png" --quiet
done
set --
for run in ddpm flow; do
    ! beside $run || set -- "$@" "--$run" "$dir/$run"
done
# shellcheck disable=SC2086
[ $# -eq 0 ] || [ -f "$dir/compare/summary.json" ] ||
    "$program" compare --drift "$dir/drift" "$@" $alpha $scale --encoder "$judge" --battery "$judge" $few $scored \
        --planted-steps 0 --no-progress --output-dir "$dir/compare"
echo "$dir: done"
