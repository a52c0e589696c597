# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# Generators in latents: encoded once and kept, trained and resumed to the bit, samples decoded; every refusal.

LW_CACHE=$PWD/cache
export LW_CACHE
"$make_model" autoencoder vae >/dev/null
base="--data synth:16 --limit 64 --no-progress --latents sd-vae:vae --log-every 1"
ddpm="train ddpm $base --base-channels 8 --channel-mult 1,2 --attn-resolutions 4 --norm-groups 4 --num-res-blocks 1 --batch-size 8 --timesteps 50"
drift="train drift $base --generator dit --hidden-dim 32 --depth 1 --num-heads 2 --groups 2 --negatives-per-group 4 --positives-per-group 8"

same() {
    for file in config.json optimizer.safetensors; do
        cmp -s "$1/checkpoints/last/$file" "$2/checkpoints/last/$file" || fails "$1 and $2 differ in $file"
    done
}
stamp() {
    ls -i cache/latents-*.data
}

# a dry run encodes nothing, and counts the autoencoder
expect 0 $ddpm --steps 2 --output-dir none --dry-run
err_has 'latents of 8x8x4: 64.0 KiB, of 64 pictures'
err_has 'to be made'
out_has 'of frozen networks'
grep -q features "$out" && fails 'latents on disk are called features, or memory'
ls cache/latents-*.data 2>/dev/null && fails 'a dry run encoded pictures'

expect 0 $ddpm --steps 4 --sample-every 4 --eval-every 4 --eval-samples 16 --ddim-steps 2 --output-dir whole --threads 1
grep -q '"leeway_latents"' whole/checkpoints/last/config.json || fails 'config.json says nothing of latents'
[ -e whole/checkpoints/last/model_index.json ] && fails 'a pipeline of diffusers that would not decode'
stamp >first
expect 0 $ddpm --steps 2 --output-dir parts --threads 3
expect 0 $ddpm --steps 4 --output-dir parts --resume
same whole parts
stamp | cmp -s - first || fails 'latents were encoded again'
expect 0 train ddpm --config whole/config.yaml --output-dir again
same whole again

# frames go through the latents that it was trained in, named or not
for more in '' '--latents sd-vae:vae' --pipeline; do
    expect 0 stream --input test:64x32@10 --num-frames 3 --every-frame --model whole --steps 2 --output md5 $more
    sed -n 's/^md5 //p' "$out" >>streamed
done
[ "$(sort -u streamed | wc -l)" -eq 1 ] || fails 'stream: other latents than those of the training'

# samples are pictures, the same in any batch
expect 0 sample whole --n 5 --steps 3 --output a.npy
expect 0 sample whole --n 5 --steps 3 --batch-size 2 --threads 3 --output b.npy
cmp -s a.npy b.npy || fails 'samples depend on the batch'
head -c 128 a.npy | grep -q '(5, 3, 16, 16)' || fails 'samples are not RGB of 16x16'
expect 0 sample whole --n 5 --steps 3 --sampler dpm-solver --output grid.png

expect 0 $drift --steps 4 --sample-every 4 --output-dir one --threads 1
expect 0 $drift --steps 2 --output-dir two
expect 0 $drift --steps 4 --output-dir two --resume --threads 3
same one two
expect 0 sample one --n 2 --output c.npy
head -c 128 c.npy | grep -q '(2, 3, 16, 16)' || fails 'samples of drift are not RGB of 16x16'
"$make_model" encoder encoder >/dev/null
expect 0 fid whole one --num-images 16 --encoder encoder
expect 0 compare --drift one --ddpm whole --output-dir page --n-fid 50 --encoder encoder --ddim-steps 2 --score-steps 2 --ancestral-steps= --latency-seconds 0.05
expect 0 data cache list
out_has 'latents of synth:16 train pictures of 16x16 by sd-vae:'

# a damaged file is encoded again, to the same bits
file=$(ls cache/latents-*.data)
cp "$file" sound
printf 'x' | dd of="$file" bs=1 seek=5000 conv=notrunc 2>/dev/null
expect 0 $drift --steps 4 --output-dir healed
err_has 'damaged'
same one healed
# killed while it encodes: nothing half done is believed
rm "$file"
cp sound "$file.tmp"
expect 0 $drift --steps 4 --output-dir killed
same one killed
# mirrored pictures have latents of their own
mkdir -p set/x set/y
expect 0 sample whole --n 12 --steps 2 --output folder
mv folder/00000[0-5].png set/x
mv folder/0000*.png set/y
mirrored="$(echo "$drift" | sed 's/synth:16 --limit 64/folder:set/')"
expect 0 $mirrored --steps 2 --output-dir mirrored
err_has 'and their mirror images'
expect 0 $mirrored --steps 2 --no-flip --output-dir straight
[ "$(stamp | wc -l)" = 3 ] || fails 'latents with and without mirror images are not two files'

expect 2 $ddpm --latents vae --channels 1 --steps 1 --output-dir none
err_has 'encodes RGB'
expect 2 $mirrored --image-size 17 --steps 1 --output-dir none
err_has 'must be multiples of 2'
expect 4 $ddpm --latents sd-vae:missing --steps 1 --output-dir none
err_has 'missing'
expect 3 $ddpm --latents encoder --steps 1 --output-dir none
err_has 'makes no latents'
expect 2 $ddpm --condition previous --image-size 16 --steps 1 --output-dir none
err_has 'one of the two'
[ ! -e none ] || fails 'none was made for a usage error'

# the autoencoder is needed later, and has to be the same
mv vae moved
expect 4 sample whole --n 1 --steps 2 --output d.npy
err_has 'which is not there'
cp -r moved vae
size=$(wc -c <vae/diffusion_pytorch_model.safetensors)
printf 'x' | dd of=vae/diffusion_pytorch_model.safetensors bs=1 seek=$((size - 3)) conv=notrunc 2>/dev/null
expect 3 sample whole --n 1 --steps 2 --output d.npy
err_has 'other weights than when this was trained'
for named in '' '--latents vae'; do
    expect 3 stream --input test:64x32 --num-frames 1 --model whole $named
    err_has 'other weights than when this was trained'
done
expect 0 stream --input test:64x32 --num-frames 1 --model whole --latents moved
expect 2 stream --input test:64x32 --num-frames 1 --model identity --latents moved
err_has 'latents are for generators'
expect 2 $ddpm --steps 6 --output-dir parts --resume
err_has 'other weights than when this run began'
cp -rL whole/checkpoints/last/ema hostile
for value in '3' '{}' '{"autoencoder": 3}' '{"autoencoder": "moved", "shrink": 1e9}' '{"autoencoder": "moved", "shrink": -2}'; do
    awk -v v="$value" '/"leeway_latents"/ { print "  \"leeway_latents\": " v ","; skip = 1 } !skip { print } /}/ { skip = 0 }' \
        whole/checkpoints/last/config.json >hostile/config.json
    expect 3 sample hostile --n 1 --steps 2 --output d.npy
done
mv vae broken
mv moved vae

# features of decoded pictures, gradients through the decoder: other bits, the same however it is cut and resumed
pixel="$drift --feature-space pixel --encoder encoder --feature-keys pix,s0.mean"
expect 0 $pixel --steps 3 --output-dir p1 --threads 1
expect 0 $pixel --steps 1 --output-dir p2
expect 0 $pixel --steps 3 --output-dir p2 --resume --threads 3
same p1 p2
expect 0 $pixel --steps 3 --output-dir p3 --dry-run
out_has 'of frozen networks'
# both: keys of latents and of decoded pictures in one step, each as it is alone
both="$drift --feature-space both --encoder none,encoder --feature-keys 1.pix,2.pix,2.s0.mean --log-every 1"
expect 0 $both --steps 3 --output-dir b1 --threads 1
expect 0 $both --steps 1 --output-dir b2
expect 0 $both --steps 3 --output-dir b2 --resume --threads 3
same b1 b2
expect 0 $drift --encoder none --feature-keys pix --log-every 1 --steps 1 --output-dir b3
expect 0 $pixel --log-every 1 --steps 1 --output-dir b4
first() { # RUN KEY
    sed -n "1s|.*\"$2\": *\([-0-9.e]*\).*|\1|p" "$1/metrics.jsonl"
}
[ "$(first b1 scale/1.pix)" = "$(first b3 scale/pix)" ] || fails 'keys of latents are others beside those of pictures'
[ "$(first b1 scale/2.s0.mean)" = "$(first b4 scale/s0.mean)" ] || fails 'keys of pictures are others beside those of latents'
awk "BEGIN { d = $(first b3 loss) + $(first b4 loss) - $(first b1 loss); exit !(d * d < 1e-8) }" ||
    fails 'the loss of both is not their sum'
expect 2 $drift --feature-space both --encoder encoder --steps 1 --output-dir none
err_has 'takes two encoders or more'
expect 2 train drift --data synth:16 --feature-space pixel --steps 1 --output-dir none
err_has 'only with --latents'
