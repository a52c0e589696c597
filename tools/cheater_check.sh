#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cheater_check.sh PROGRAM DIR [STEPS]: are planted cheaters exposed, and nobody else accused? Trains five networks for
# a battery, an encoder, a DDPM and five drifting generators of other seeds on drawn digits (STEPS each, 150), into DIR,
# and gives the verdict on each generator. Prints a line for every row; fails when a generator's row is suspected or a
# planted one is not. About half an hour on two cores; what is there already is not trained again.
set -eu
program=$1
dir=$2
steps=${3:-150}
data='--data synth:16 --limit 8192 --quiet'
mkdir -p "$dir/battery"

train() { # NAME what options..
    name=$1
    shift
    [ -f "$dir/$name/summary.json" ] || "$program" train "$@" --output-dir "$dir/$name" >/dev/null
}

# shellcheck disable=SC2086 # lists of words
{
    i=10
    for net in 'classify 12 2' 'classify 20 3' 'judge 16 2' 'classify 16 4' 'judge 12 3'; do
        i=$((i + 1))
        set -- $net
        train "battery/net$i" encoder $data --objective "$1" --width "$2" --stages "$3" --batch-size 64 --steps 250 \
            --seed $i
    done
    train encoder encoder $data --objective mae --batch-size 64 --steps 300
    small='--base-channels 16 --channel-mult 1,2,4 --num-res-blocks 1 --norm-groups 8'
    train ddpm ddpm $data $small --batch-size 64 --steps "$steps" --learning-rate 1e-3 --ema-decay 0.98
    for seed in 0 1 2 3 4; do
        train "drift$seed" drift $data $small --encoder "$dir/encoder" --noise-shape 2x2 --latent-dim 16 --groups 8 \
            --negatives-per-group 16 --positives-per-group 64 --adam-beta2 0.95 --learning-rate 1e-3 --warmup-steps 20 \
            --ema-decay 0.98 --steps "$steps" --seed "$seed"
        [ -f "$dir/compare$seed/summary.json" ] || "$program" compare --drift "$dir/drift$seed" --ddpm "$dir/ddpm" \
            --reader "$dir/battery/net11" --battery "$dir/battery" --num-images 500 --ddim-steps 10 --score-steps 20 \
            --ancestral-steps= --latency-seconds 0.05 --seed "$seed" --quiet --output-dir "$dir/compare$seed" >/dev/null
    done
}

python3 - "$dir" <<'END'
import json, sys
wrong = made = planted = 0
for seed in range(5):
    summary = json.load(open("%s/compare%d/summary.json" % (sys.argv[1], seed)))
    verdict, won = summary["verdict"], summary["planted"][0]
    print("seed %d, limit %.2f; %s: %.2f of real pictures' Frechet distance there" %
          (seed, verdict["rule"]["limit"], won["name"], won["frechet_over_real"]))
    wrong += won["frechet_over_real"] >= 1
    for row in verdict["rows"]:
        suspect = row["suspect"] or row["copies"]["suspect"]
        print("  %-8s %-24s %6.2f times real, shortfall %5.2f, copies %3.0f %% %s" % (
            row["part"], row["name"], row["times_real"][0], row["shortfall"], 100 * row["copies"]["share"][0],
            "suspect" if suspect else ""))
        made += row["part"] == "made"
        planted += row["part"] == "planted"
        wrong += suspect != (row["part"] == "planted")
print("%d generators' rows, %d planted: %d decided wrongly" % (made, planted, wrong))
sys.exit(1 if wrong else 0)
END
