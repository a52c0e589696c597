# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# A device with memory of its own: whoever follows one of its addresses faults, whoever does not fetch a result reads
# NaN. What jobs make on it is what they make on the CPU.

LW_CACHE=$PWD/cache
export LW_CACHE
LW_DEVICE=abacus
export LW_DEVICE
expect 6 train encoder --data synth:16 --limit 16 --steps 1 --output-dir none
err_has "no device 'abacus'"

net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --norm-groups 4 --dropout 0.1'
common='--data synth:16 --limit 64 --steps 2'
for LW_DEVICE in cpu cpu-discrete; do
    d=$LW_DEVICE
    # shellcheck disable=SC2086
    {
        expect 0 train encoder $common --objective classify --width 8 --stages 2 --blocks 1 --batch-size 8 \
            --output-dir "$d/encoder"
        expect 0 train drift $common $net --groups 2 --negatives-per-group 2 --positives-per-group 4 \
            --noise-shape 2x2 --latent-dim 4 --encoder "$d/encoder" --output-dir "$d/drift"
        expect 0 train ddpm $common $net --batch-size 4 --grad-accum-steps 3 --save-every 1 --output-dir "$d/ddpm"
        expect 0 train ddpm --resume-from "$d/ddpm/checkpoints/step_0000001" $common $net --batch-size 4 \
            --grad-accum-steps 3 --output-dir "$d/again"
    }
    expect 0 sample "$d/drift" --n 5 --batch-size 2 --output "$d/drift.npy"
    expect 0 sample "$d/ddpm" --n 3 --steps 3 --output "$d/ddpm.npy"
    expect 0 field --gen "$d/ddpm.npy" --pos "$d/ddpm.npy" --output "$d/field.npy"
    cmp -s "$d/ddpm/checkpoints/last/optimizer.safetensors" "$d/again/checkpoints/last/optimizer.safetensors" ||
        fails "$d: resumed, it goes another way"
done
for f in encoder/checkpoints/last/optimizer.safetensors drift/checkpoints/last/optimizer.safetensors \
    ddpm/checkpoints/last/optimizer.safetensors drift.npy ddpm.npy field.npy; do
    cmp -s "cpu/$f" "cpu-discrete/$f" || fails "$f differs"
done

# Bound to cores: the same bits.
LW_DEVICE=cpu
expect 0 sample cpu/ddpm --n 3 --steps 3 --bind cores --output bound.npy
cmp -s cpu/ddpm.npy bound.npy || fails '--bind cores changes bits'
