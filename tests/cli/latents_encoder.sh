# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# Encoders of latents: trained on the rows that generators are, by every objective but judge, and only shown those.

LW_CACHE=$PWD/cache
export LW_CACHE
"$make_model" autoencoder vae >/dev/null
"$make_model" encoder teacher >/dev/null
base="--data synth:16 --limit 48 --no-progress --log-every 1"
encoder="train encoder $base --latents sd-vae:vae --batch-size 8"
mae="$encoder --objective mae --arch resnet34-unet --width 4"
classify="$encoder --objective classify --width 8 --stages 2 --norm-type batch --scheduler constant"
drift="train drift $base --latents sd-vae:vae --generator dit --hidden-dim 16 --depth 1 --num-heads 2 --groups 2 --negatives-per-group 4 --positives-per-group 4"

same() {
    for file in config.json optimizer.safetensors; do
        cmp -s "$1/checkpoints/last/$file" "$2/checkpoints/last/$file" || fails "$1 and $2 differ in $file"
    done
}

expect 0 $mae --steps 2 --dry-run --output-dir none
err_has 'latents of 8x8x4'
out_has 'of frozen networks'
expect 0 $mae --steps 3 --cls-ft-steps 2 --output-dir mae --export-encoder-path frozen --threads 1
grep -q '"in_channels": 4' mae/checkpoints/last/config.json || fails 'the encoder is not of 4 channels'
for at in mae/checkpoints/last frozen; do
    grep -q '"leeway_latents"' $at/config.json || fails "$at does not say of which latents it is"
done
ls -i cache/latents-*.data >first
expect 0 $mae --steps 3 --cls-ft-steps 2 --output-dir short --threads 3
same mae short
ls -i cache/latents-*.data | cmp -s - first || fails 'latents were encoded again'

# the classifier, measured on latents of held-out pictures, and the student of a network that sees the pictures
expect 0 $classify --steps 4 --eval-every 2 --output-dir whole --threads 1
grep -q heldout_accuracy whole/metrics.jsonl || fails 'no held-out accuracy'
expect 0 $classify --steps 2 --eval-every 2 --output-dir two
expect 0 $classify --steps 4 --eval-every 2 --output-dir two --resume --threads 3
same whole two
expect 0 $encoder --objective distill --teacher teacher --width 4 --stages 2 --steps 2 --eval-every 2 --output-dir student
grep -q heldout_knn student/metrics.jsonl || fails 'no held-out measures of the student'

# a generator in the same latents
expect 0 $drift --encoder mae --steps 2 --output-dir one --threads 1
expect 0 $drift --encoder frozen --steps 2 --output-dir two_of_it --threads 3
cmp -s one/checkpoints/last/optimizer.safetensors two_of_it/checkpoints/last/optimizer.safetensors ||
    fails 'the exported encoder is another one'
grep -q 'scale/layer1_std_2' one/metrics.jsonl || fails 'not the keys of the published encoder'
expect 0 $drift --encoder student,whole --feature-keys s1.mean,pooled --steps 1 --output-dir three
expect 0 $drift --encoder whole,teacher --feature-space both --feature-keys pooled --steps 1 --output-dir four

# never pictures, never other latents
expect 2 train drift $base --encoder mae --steps 1 --output-dir none
err_has 'mae: an encoder of latents of sd-vae:'
err_has 'what it would see here are pictures'
expect 2 $drift --encoder whole --feature-space pixel --steps 1 --output-dir none
err_has 'what it would see here are pictures'
expect 2 $drift --eval-every 1 --eval-encoder whole --steps 1 --output-dir measured
err_has 'what it would see here are pictures'
expect 2 fid one one --num-images 16 --encoder whole
err_has 'what it would see here are pictures'
expect 2 train encoder $base --objective distill --teacher whole --steps 1 --output-dir none
err_has 'what it would see here are pictures'
cp -r vae other
size=$(wc -c <other/diffusion_pytorch_model.safetensors)
printf 'x' | dd of=other/diffusion_pytorch_model.safetensors bs=1 seek=$((size - 3)) conv=notrunc 2>/dev/null
expect 2 $drift --latents other --encoder mae --steps 1 --output-dir none
err_has 'mae: an encoder of latents of sd-vae:'
err_has 'and these are those of'
expect 2 $classify --latents other --steps 6 --output-dir two --resume
mv vae moved
mv other vae
expect 2 $drift --encoder frozen --steps 1 --output-dir none
err_has 'which had other weights at its training'
expect 2 $classify --steps 6 --output-dir two --resume
err_has 'other weights than when this run began'
expect 2 $encoder --objective judge --steps 1 --output-dir none
err_has 'judge tells pictures from junk'
expect 2 $mae --crop-padding 2 --steps 1 --output-dir none
err_has 'not to be had with --latents'
sed 's/"hash": "[0-9a-f]*"/"hash": 3/' frozen/config.json >config && cp config frozen/config.json
expect 3 $drift --encoder frozen --steps 1 --output-dir none
err_has 'names no autoencoder and no hash'
[ ! -e none ] || fails 'none was made for a usage error'
