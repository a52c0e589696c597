# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Gray pictures from data to samples and distances, and pictures of five channels.

LW_CACHE=$PWD/cache
export LW_CACHE
net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions= --norm-groups 4 --dropout 0'
few='--data synth:16 --limit 64 --batch-size 8 --steps 2'

expect 0 data check synth:16 --num-images 20 --channels 1
out_has '20 train pictures of 16x16 of 1 channel, 10 classes'
expect 0 data check synth:16 --num-images 20 --channels 1 --json
out_has '"channels": 1'
expect 3 data check synth:16 --num-images 20 --channels 5
err_has 'pictures of 3 channels, and such of 5 are wanted: gray (1) becomes RGB'
expect 2 data check synth:16 --channels 65
expect 0 data export synth:16 --num-images 12 --channels 1 --output gray.npy
out_has 'gray.npy: 12 pictures of 16x16 of 1 channel'
expect 0 data export tensor:gray.npy --split all --channels 1 --output gray
expect 0 data check folder:gray --split all --channels 1
expect 0 data sheet tensor:gray.npy --channels 1 --lines 1 --columns 2 --output sheet.png

# An encoder of gray pictures, and one of RGB.
# shellcheck disable=SC2086
expect 0 train encoder $few --channels 1 --objective classify --width 4 --output-dir runs/one
# shellcheck disable=SC2086
expect 0 train encoder $few --objective classify --width 4 --output-dir runs/rgb
# shellcheck disable=SC2086
expect 0 train encoder $few --channels 1 --width 4 --output-dir runs/mae
grep -q '"in_channels": *1' runs/one/checkpoints/last/config.json || fails 'config.json of a gray encoder'
expect 0 encode --model runs/one --data synth:16 --num-images 5 --output one.npy
expect 0 encode --model runs/rgb --data tensor:gray.npy --output rgb.npy

# Generators, through either encoder; going on gives the same run.
# shellcheck disable=SC2086
expect 0 train drift $few --channels 1 $net --encoder runs/one --groups 2 --negatives-per-group 4 \
    --positives-per-group 4 --sample-every 2 --eval-every 2 --eval-samples 16 --eval-encoder runs/rgb \
    --output-dir runs/drift
# shellcheck disable=SC2086
expect 0 train drift $few --channels 1 $net --encoder runs/rgb --groups 2 --negatives-per-group 4 \
    --positives-per-group 4 --output-dir runs/drift2
# shellcheck disable=SC2086
expect 0 train ddpm $few --channels 1 $net --timesteps 20 --output-dir runs/ddpm
# shellcheck disable=SC2086
expect 0 train ddpm $few --channels 1 $net --timesteps 20 --steps 3 --resume --output-dir runs/ddpm
expect 0 inspect runs/ddpm
expect 0 sample runs/drift --num-images 10 --output grid.png
expect 0 sample runs/drift --num-images 10 --output drift.npy
expect 0 inspect drift.npy
out_has '[10,1,16,16]'
expect 0 sample runs/ddpm --num-images 10 --steps 2 --output made
expect 0 data check folder:made --split all --channels 1
out_has '10 all pictures of 16x16 of 1 channel'

# Distances: of a gray generator through a network of gray, and through one of RGB, which is said.
expect 0 fid runs/drift synth:16 --num-images 20 --encoder runs/one
expect 0 fid runs/drift synth:16 --num-images 20 --encoder runs/rgb
out_has 'its pictures are gray'
expect 0 fid drift.npy tensor:gray.npy --encoder runs/rgb
out_has 'its pictures are gray'
