# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Training on the frames of a clip: what is learnt follows the condition and beats its input; the same
# bits for any number of threads and after resuming; every refusal.

expect 0 stream --input test:64x48@25 --num-frames 40 --every-frame --output clip.y4m
small='--data video:clip.y4m --image-size 16 --base-channels 8 --channel-mult 1,2 --num-res-blocks 1
    --attn-resolutions 8 --heads 2 --norm-groups 4 --dropout 0 --degrade noise:40 --lr 2e-3'
ddpm="$small --condition frame,previous:2 --batch-size 4 --ema-decay 0.9"

# shellcheck disable=SC2086
{
    expect 0 train ddpm $ddpm --steps 120 --save-every 60 --eval-every 120 --sample-every 60 --output-dir a --threads 2
    expect 0 train ddpm $ddpm --steps 60 --output-dir b --threads 1
    expect 0 train ddpm $ddpm --steps 120 --eval-every 120 --output-dir b --threads 1 --resume
}
for file in model.safetensors ema/model.safetensors; do
    cmp -s a/checkpoints/last/$file b/checkpoints/last/$file || fails "resumed and with one thread: $file differs"
done
test -s a/samples/step_0000120.png || fails 'no grid of restored frames'
grep -q 'Held-out PSNR' a/report.html || fails 'the page lacks the PSNR'
grep -q 'held-out frames: damaged, the network.*s answer, clean' a/report.html || fails 'the caption of the pictures'
grep -q '<img width="104" height="68"' a/report.html || fails 'the page has not a whole line of each grid'
psnr() { # RUN COLUMN: its last value
    sed -n "s/.*\"psnr$2\": *\([-0-9.]*\).*/\1/p" "$1/metrics.jsonl" | tail -n 1
}
above() { # A B: whether A > B
    awk "BEGIN { exit !($1 > $2) }"
}
above "$(psnr a '')" "$(psnr a _input)" || fails "restored frames ($(psnr a '') dB) are no better than damaged ones ($(psnr a _input))"
above "$(psnr a '')" "$(psnr a _swapped) + 5" || fails "answers to mirrored frames ($(psnr a _swapped) dB) are as good: the condition is ignored"
above "$(psnr a _best) + 0.001" "$(psnr a _input)" || fails 'the best filter is worse than none'
[ "$(psnr a '')" = "$(psnr b '')" ] || fails 'measures differ'

expect 0 inspect a/checkpoints/last
out_has 'leeway_condition'
expect 2 sample a --n 1 --output x.npy
err_has 'makes pictures from frames'

# before it has learnt anything a network does not see the noise, which would drown the frame
# shellcheck disable=SC2086
expect 0 train ddpm $ddpm --no-zero-init-output --lr 0 --steps 1 --output-dir blind
for seed in 1 2; do
    expect 0 stream --input clip.y4m --num-frames 2 --every-frame --model blind --seed $seed --output folder:blind$seed
done
cmp -s blind1/frame_000001.png blind2/frame_000001.png || fails 'the first answers depend on the noise'

# a folder of frames is a clip too; one step of the student
expect 0 stream --input clip.y4m --every-frame --output folder:frames
# shellcheck disable=SC2086
{
    drift="$small --condition frame,previous --groups 2 --negatives-per-group 2 --eval-every 40"
    expect 0 train drift ${drift%%video:*}folder:frames${drift#*clip.y4m} --steps 40 --output-dir d --threads 2
    expect 0 train drift ${drift%%video:*}folder:frames${drift#*clip.y4m} --steps 40 --output-dir e --threads 1
    cmp -s d/checkpoints/last/model.safetensors e/checkpoints/last/model.safetensors ||
        fails 'drift: another number of threads gave other bits'
    above "$(psnr d '')" "$(psnr d _swapped) + 3" || fails 'drift: the condition is ignored'

    expect 2 train ddpm $small --steps 1 --output-dir x
    err_has '--degrade makes pairs for --condition'
    expect 2 train ddpm ${ddpm%%--degrade*} --condition frame --steps 1 --output-dir x
    err_has 'say with --degrade'
    expect 2 train ddpm $ddpm --image-size 0 --steps 1 --output-dir x
    expect 2 train ddpm $ddpm --image-size 64 --attn-resolutions 32 --steps 1 --output-dir x
    err_has 'hold no crop of 64x64'
    expect 2 train ddpm $ddpm --data synth:16 --steps 1 --output-dir x
    err_has 'no frames in order'
    expect 2 train ddpm $small --condition frame,past --steps 1 --output-dir x
    err_has 'frame, previous[:K]'
    expect 2 train drift $drift --positives-per-group 3 --steps 1 --output-dir x
    err_has 'a group has one positive'
}
