#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bits.sh PROGRAM [DATASETS]: prints hashes of what PROGRAM makes: five short trainings like those of `leeway demo`,
# sampling, the drift field, a quantised network and, where DATASETS (a folder with countries_s3 and family) is given,
# proofs. Two programs that print the same lines compute the same bits on this machine; run it before and after a
# change that should change none. Takes about two minutes; STEPS=20 makes it shorter.
set -eu
leeway=$(realpath "$1")
kg=${2:+$(realpath "$2")}
steps=${STEPS:-200}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

quiet() {
    "$leeway" "$@" >out.txt 2>err.txt || {
        cat err.txt >&2
        exit 1
    }
}
# hash NAME FILES: one line.
hash() {
    name=$1
    shift
    printf '%-24s %s\n' "$name" "$(cat "$@" | sha256sum | cut -c1-16)"
}
weights() {
    hash "$1" "$1"/checkpoints/last/*.safetensors
}

common="--data synth:16 --limit 4096 --batch-size 128 --steps $steps --scheduler cosine --lr-floor 0.05 --ema-decay 0.995 --seed 0"
net="--base-channels 16 --channel-mult 1,2,4 --num-res-blocks 1 --norm-groups 8 --dropout 0 --class-conditional yes"
# shellcheck disable=SC2086
{
    quiet train encoder $common --objective mae --width 16 --stages 3 --blocks 1 --lr 3e-3 --output-dir encoder
    quiet train encoder $common --objective judge --width 24 --stages 3 --blocks 1 --lr 3e-3 --input-noise 0.15 --output-dir judge
    quiet train encoder $common --objective classify --width 24 --stages 3 --blocks 1 --lr 3e-3 --output-dir reader
    quiet train drift $common $net --noise-shape 2x2 --latent-dim 16 --encoder encoder --feature-keys col --groups 8 \
        --negatives-per-group 16 --positives-per-group 64 --lr 1e-3 --output-dir drift
    quiet train ddpm $common $net --lr 1e-3 --zero-init-output --output-dir ddpm
}
for run in encoder judge reader drift ddpm; do
    weights $run
done
quiet sample drift --n 64 --output drift.npy
hash 'sample drift' drift.npy
quiet sample ddpm --n 16 --sampler ancestral --steps 1000 --output ancestral.npy
hash 'sample ancestral' ancestral.npy
quiet sample ddpm --n 16 --sampler ddim --steps 10 --precision bf16 --output ddim.npy
hash 'sample ddim bf16' ddim.npy
quiet field --gen ancestral.npy --pos ancestral.npy --temperatures 0.05,0.2 --output field.npy
hash field field.npy
quiet quantize drift --output-dir int8
hash quantize int8/*.json
quiet sample int8 --precision int8 --n 16 --output int8.npy
hash 'sample int8' int8.npy
if [ -n "$kg" ]; then
    quiet prove train "$kg/countries_s3" --steps 3 --n-envs 32 --n-steps 32 --eval-every 0 --output-dir ppo
    weights ppo
    quiet prove kge "$kg/countries_s3" --steps 40 --output-dir kge
    weights kge
    quiet prove eval "$kg/family" --rules rules.txt --policy formula --temperature 30 --no-deterministic \
        --n-queries 2 --query-order first --save-scores scores.csv
    hash 'prove eval' scores.csv
fi
