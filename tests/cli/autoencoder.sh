# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Training an autoencoder: held-out pictures come back, the same bits for any number of threads and after
# resuming, the run opens where autoencoders are taken; every refusal.

expect 0 stream --input test:64x48@25 --num-frames 40 --every-frame --output clip.y4m
small='--data video:clip.y4m --image-size 48 --crop 16 --width 8 --latent-channels 8 --blocks 0,1
    --batch-size 4 --warmup-steps 0 --lr 5e-3 --gradient-weight 0.1 --ema-decay 0.9 --scheduler constant'

# shellcheck disable=SC2086
{
    expect 0 train autoencoder $small --steps 400 --save-every 200 --eval-every 200 --sample-every 200 \
        --output-dir a --threads 2
    err_has '256x256 there and back:'
    err_has 'latents of 128x128x8'
    expect 0 train autoencoder $small --steps 200 --output-dir b --threads 1
    expect 0 train autoencoder $small --steps 400 --eval-every 200 --output-dir b --threads 1 --resume
    expect 0 train autoencoder $small --steps 5 --output-dir none --dry-run
    [ ! -e none ] || fails '--dry-run wrote something'
    out_has 'decoder '
}
for file in diffusion_pytorch_model.safetensors ema/diffusion_pytorch_model.safetensors; do
    cmp -s a/checkpoints/last/$file b/checkpoints/last/$file || fails "resumed and with one thread: $file differs"
done
test -s a/samples/step_0000400.png || fails 'no grid of pictures that came back'
psnr() { # RUN STEP
    sed -n "s/.*\"step\": *$2,.*\"psnr\": *\([-0-9.]*\).*/\1/p" "$1/metrics.jsonl"
}
[ "$(psnr a 400)" = "$(psnr b 400)" ] || fails 'measures differ'
awk "BEGIN { exit !($(psnr a 400) > 14 && $(psnr a 400) > $(psnr a 200) + 0.5) }" ||
    fails "held-out pictures came back with $(psnr a 200), then $(psnr a 400) dB"
grep -q 'PSNR of held-out pictures' a/report.html || fails 'the page lacks the PSNR'
grep -q 'held-out pictures, each beside what comes back of it after as many' a/report.html || fails 'the caption of the pictures'
grep -q '<img width="393" height="100"' a/report.html || fails 'the page has not a whole line of each grid'
grep -q '"_class_name": *"AutoencoderTiny"' a/checkpoints/last/config.json || fails 'not of the class that diffusers opens'

# what is measured is what a stream shows: the held-out frames are the last four
expect 0 stream --input clip.y4m --every-frame --model a --size 48x48 --output folder:back
expect 0 stream --input clip.y4m --every-frame --model identity --size 48x48 --output folder:there
cmp -s back/frame_000039.png there/frame_000039.png && fails 'the frames did not go through the autoencoder'

# shellcheck disable=SC2086
{
    expect 2 train autoencoder $small --crop 17 --steps 1 --output-dir x
    err_has '--crop 17: no multiple of 2'
    expect 2 train autoencoder $small --crop 64 --steps 1 --output-dir x
    err_has 'pictures of 48x48 hold none'
    expect 2 train autoencoder $small --image-size 43 --steps 1 --output-dir x
    err_has '--image-size 43: no multiple of 2'
    expect 2 train autoencoder $small --blocks 1 --steps 1 --output-dir x
    err_has 'at least 2 levels'
    expect 2 train autoencoder $small --channels 1 --steps 1 --output-dir x
    err_has 'wants 3'
}
