# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# The drifting transformer: trained, resumed and replayed to the bit, sampled, run; refusals.

LW_CACHE=$PWD/cache
export LW_CACHE
net='--generator dit --hidden-dim 32 --depth 2 --num-heads 2 --patch-size 4 --register-tokens 3 --style-token-count 2 --style-vocab-size 5'
drift="train drift --data synth:16 --limit 64 --no-progress $net --groups 2 --negatives-per-group 4 --positives-per-group 8 --log-every 1"

same() {
    for file in model.safetensors ema/model.safetensors optimizer.safetensors config.json; do
        cmp -s "$1/$file" "$2/$file" || fails "$1 and $2 differ in $file"
    done
}

expect 2 $drift --steps 2 --output-dir none --num-heads 5
err_has 'heads'
expect 2 $drift --steps 2 --output-dir none --patch-size 3
err_has 'whole patches of 3'
expect 2 train drift --generator dit-b3 --data synth:16 --steps 1 --output-dir none
err_has 'dit-b2'
expect 2 $drift --steps 1 --output-dir none --base-channels 16
err_has '--base-channels: only the U-Net has it'
expect 2 train drift --data synth:16 --steps 1 --output-dir none --patch-size 4
err_has '--patch-size: only transformers have it'
[ ! -e none ] || fails 'none was made for a usage error'

expect 0 $drift --steps 4 --output-dir whole --threads 1
grep -q '"_class_name": "LeewayDiT"' whole/checkpoints/last/config.json || fails 'no LeewayDiT in config.json'
expect 0 $drift --steps 4 --output-dir threads --threads 3
same whole/checkpoints/last threads/checkpoints/last
expect 0 $drift --steps 2 --output-dir parts
expect 0 $drift --steps 4 --output-dir parts --resume
same whole/checkpoints/last parts/checkpoints/last
expect 0 train drift --config whole/config.yaml --output-dir replay
same whole/checkpoints/last replay/checkpoints/last

# samples have styles of their own, drawn from the seed; no time, no step
expect 0 sample whole --n 4 --output a.npy
expect 0 sample whole --n 4 --output b.npy --threads 2 --batch-size 3
cmp -s a.npy b.npy || fails 'samples depend on threads or batch'
expect 2 sample whole --n 4 --steps 2 --output c.npy
err_has 'one step'
expect 0 inspect whole/checkpoints/last
out_has 'LeewayDiT'
npy_noise x.npy '1, 3, 16, 16' 768
npy c.npy '<i4' '1,' '\001\000\000\000'
npy s.npy '<i4' '1, 2' '\001\000\000\000\004\000\000\000'
expect 2 run whole --input x.npy --class c.npy --output y.npy
err_has '--styles'
expect 0 run whole --input x.npy --class c.npy --styles s.npy --output y.npy
expect 2 run whole --input x.npy --class c.npy --styles s.npy --t c.npy --output y.npy
err_has "has no input 't'"
