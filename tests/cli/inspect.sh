# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway inspect: every kind of file, folders, graphs and plans.

"$make_model" plain net || fails 'make_model plain'

expect 0 inspect "$corpus/safetensors/good.safetensors"
out_has 'kind: safetensors'
out_has 'b.weight'
out_has '[2,3]'
expect 0 inspect "$corpus/safetensors/good.safetensors" --stats --json
out_has '"rms"'
out_has '"not_finite": 0'
expect 0 inspect "$corpus/npy/f4_v1.npy"
out_has 'kind: npy'
expect 0 inspect "$corpus/npz/stats.npz" --json
out_has '"kind": "npz"'
expect 0 inspect "$corpus/png/rgb_text.png"
out_has 'seed: 7'
expect 0 inspect "$corpus/jpeg/c420.jpg"
out_has 'kind: jpeg'

expect 0 inspect net
out_has 'kind: model'
out_has 'UNet2DModel'
out_has 'time_embedding.linear_1.weight'
expect 0 inspect net --json
out_has '"block_out_channels": [16, 32]'
expect 0 inspect net --graph
out_has '-- graph'
out_has 'conv2d'
expect 0 inspect net --pass fuse --batch-size 3
out_has '-- fuse'
out_has 'f32[3,16,16,3]'
expect 0 inspect net --pass all --opt 0
out_has '-- pack'
expect 0 inspect net --plan
out_has 'group_norm'
expect 2 inspect net --pass fusion
err_has 'fuse, join, precision, pack, chain, slices, outputs, recompute, all'
expect 0 inspect net --pass precision --precision bf16
out_has '-- precision'
out_has 'bf16['
expect 0 inspect net --pass all
! grep -q -e '-- precision' -e '-- recompute' "$out" || fails 'passes that did not run are listed'
expect 2 inspect net --pass precision
err_has 'runs with --precision bf16 or int8 only'
expect 2 inspect net --pass fuse --opt 0
err_has 'runs with --opt 1 only'
expect 2 inspect net --pass precision --precision int8
err_has 'leeway quantize'
expect 0 inspect net --pass outputs --train
cp "$out" stored
expect 0 inspect net --pass recompute --recompute
out_has '-- recompute'
out_has 'conv2d_dw'
[ "$(wc -l <"$out")" -gt "$(wc -l <stored)" ] || fails 'nothing is made again'
expect 0 inspect net --pass all --recompute --precision bf16
out_has '-- precision'
out_has '-- recompute'
expect 2 inspect net --pass recompute
err_has 'runs with --recompute only'

expect 2 inspect
expect 4 inspect none
expect 3 inspect "$corpus/safetensors/overlap.safetensors"
expect 3 inspect "$corpus/png/bad_crc.png"
expect 3 inspect "$corpus/npy/truncated.npy"
printf 'hello\n' >words.txt
expect 3 inspect words.txt
err_has 'neither safetensors, torch (.pth, .pt, .bin), npy, npz nor a picture'
: >empty
expect 3 inspect empty
mkdir bare
expect 3 inspect bare
