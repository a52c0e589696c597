# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# Every command that runs a network, on the emulated GPU and on the CPU: a transformer, an encoder, latents, frames of
# video, a policy. Same seed, same inputs: what comes out differs by rounding.

LW_CACHE=$PWD/cache
export LW_CACHE
data='--data synth:16 --limit 16 --no-progress'
"$make_model" autoencoder vae >/dev/null
"$make_model" encoder enc >/dev/null
"$make_model" dinov2 vit >/dev/null
expect 0 train drift $data --generator dit --hidden-dim 32 --depth 1 --num-heads 2 --patch-size 8 --register-tokens 3 \
    --groups 1 --negatives-per-group 2 --positives-per-group 2 --steps 1 --output-dir dit
expect 0 train ddpm $data --latents sd-vae:vae --base-channels 8 --channel-mult 1,2 --attn-resolutions 4 --norm-groups 4 \
    --num-res-blocks 1 --batch-size 4 --steps 1 --output-dir latents
npy_noise x.npy '1, 3, 16, 16' 768
mkdir land
{
    printf 'in(rome,italy).\nin(nice,france).\nin(bonn,germany).\nin(paris,france).\n'
    printf 'near(rome,nice).\nnear(bonn,paris).\nof(bonn,germany).\n'
} >land/train.txt
printf 'city rome nice bonn paris\nland italy france germany\n' >land/domain2constants.txt
printf 'r0:1:in(x,y) -> of(x,y)\n' >land/rules.txt
printf 'of(rome,italy).\nof(nice,france).\n' >land/test.txt
expect 0 prove train land --output-dir run --steps 1 --eval-every 0 --n-envs 4 --n-steps 4 --n-epochs 1 --batch-size 16

LD_LIBRARY_PATH=$LW_EMULATED_GPU_DIR
export LD_LIBRARY_PATH
near() { # near A B LIMIT: numbers of two .npy files of f32, at most LIMIT apart
    for f in "$1" "$2"; do
        tail -c +129 "$f" | od -An -v -t f4 -w4 >"$f.txt"
    done
    paste "$1.txt" "$2.txt" | awk -v limit="$3" '{d = $1 - $2; if (d < 0) d = -d; if (!(d <= limit)) bad++; n++}
        END {exit !(n > 0 && bad == 0)}' || fails "$1 and $2 differ by more than $3"
}

levels() { # levels A B: bytes of two files of frames, at most one level apart
    [ "$(wc -c <"$1")" -eq "$(wc -c <"$2")" ] || fails "$1 and $2 differ in size"
    for f in "$1" "$2"; do
        od -An -v -t u1 -w1 "$f" >"$f.txt"
    done
    paste "$1.txt" "$2.txt" | awk '{d = $1 - $2; if (d > 1 || d < -1) bad++} END {exit bad != 0}' ||
        fails "$1 and $2 differ by more than a level"
}

for d in cpu cuda; do
    on="--device $d"
    expect 0 sample dit --n 2 --output $d.dit.npy $on
    expect 0 sample latents --n 1 --steps 2 --output $d.latents.npy $on
    expect 0 run enc --input x.npy --output $d.run.npy $on
    expect 0 prove eval land --policy run --n-corruptions all --save-scores $d.csv $on
    expect 0 encode enc $data --num-images 2 --output $d.enc.npy $on
    expect 0 run vit --input x.npy --precision bf16 --output $d.vit.npy $on
    expect 0 fid synth:16 synth:16 --split-a held-out --split-b train --num-images 4 --encoder enc $on
    expect 0 stream --input test:64x32@25 --num-frames 2 --every-frame --model vae --output $d.vae.y4m $on
    expect 0 stream --input test:64x32@25 --num-frames 2 --every-frame --model latents --latents sd-vae:vae --size 32x16 \
        --output $d.net.y4m $on
done
near cpu.dit.npy cuda.dit.npy 1e-4
near cpu.latents.npy cuda.latents.npy 1e-3
near cpu.run.npy cuda.run.npy 1e-4
near cpu.enc.npy cuda.enc.npy 1e-4
near cpu.vit.npy cuda.vit.npy 2e-2
paste -d, cpu.csv cuda.csv | awk -F, 'NR > 1 {d = $7 - $16; if (d < 0) d = -d; if (!(d <= 1e-5)) bad++; n++}
    END {exit !(n > 0 && bad == 0)}' || fails 'a policy ranks otherwise'
levels cpu.vae.y4m cuda.vae.y4m
levels cpu.net.y4m cuda.net.y4m

# the same bits in any batch, of products with split-K, too
LD_LIBRARY_PATH='' expect 0 train ddpm $data --base-channels 96 --channel-mult 1 --attn-resolutions 16 \
    --norm-groups 8 --num-res-blocks 1 --batch-size 1 --steps 1 --output-dir deep
for precision in f32 bf16; do
    for run in dit 'deep --steps 1'; do
        for b in 1 3; do
            expect 0 sample $run --n 3 --batch-size $b --precision $precision --output "$precision.$b.npy" $on
        done
        cmp -s "$precision.1.npy" "$precision.3.npy" || fails "$run in $precision has other bits in another batch"
    done
done

# trials that the CPU began, killed as soon as some are there, are a GPU's to go on with where that is said
trials="mc synth:16 --num-images 2 --dropout 0.1 --models enc --passes 2,3 --no-progress --output-dir"
kept=cut/exp0_nested_mc/enc/exp0_trials_T3
"$program" $trials cut --trials 100000 >"$out" 2>"$err" &
pid=$!
i=0
while [ ! -e ${kept}_partial.npz ] && kill -0 $pid 2>/dev/null && [ $i -lt 600 ]; do
    sleep 0.05
    i=$((i + 1))
done
kill -KILL $pid 2>/dev/null || fails "it ended by itself: $(cat "$err")"
wait $pid
expect 2 $trials cut --trials 3 --resume $on
err_has 'was begun on cpu, now cuda: last bits would differ; go on there, or here with --device-change'
# nothing is taken over where the trials of one T are missing
cp -r cut none && rm none/exp0_nested_mc/enc/exp0_trials_T2_partial.npz
expect 0 $trials none --trials 3 --resume $on
grep -aq '"device": "cuda"' none/exp0_nested_mc/enc/*.json || fails 'trials of one device say otherwise'
expect 0 $trials cut --trials 3 --resume --device-change $on
grep -aq '"device": "cpu, cuda"' cut/exp0_nested_mc/enc/*.json || fails 'the trials do not say by which devices'

# what is said for the CPU is the CPU's, whatever the environment says
LW_DEVICE=cuda expect 0 run enc --input x.npy --output said.npy --device cpu --json
out_has '"device": "cpu"'
cmp -s said.npy cpu.run.npy || fails '--device cpu under LW_DEVICE=cuda is not the CPU'

# a GPU that breaks is no policy that answers with what is no number
LW_EMULATED_REPORT=$PWD/report expect 0 prove eval land --policy run --n-corruptions all --json $on
out_has '"device": "cuda:0"'
for back in 40 20 10; do
    LW_EMULATED_FAIL=$(($(sed 's/ .*//' report) - back)) expect 6 prove eval land --policy run --n-corruptions all $on
    err_has 'cuda:0: '
done

# memory that was refused, and done without, is no reason of what fails later; of batches that are tried the largest that fits does
"$make_model" clip clip >/dev/null
LW_EMULATED_BYTES=800000 "$program" info --peak $on >/dev/full 2>"$err"
[ $? -eq 4 ] || fails 'a full disk behind memory that was refused is another error'
LW_EMULATED_BYTES=150000 expect 0 mc synth:16 --models clip --num-images 4 --passes 2,16 --trials 1 --output-dir small --no-progress $on

# Ctrl-C is heard between steps
"$program" sample deep --steps 1000 --n 4 --batch-size 4 --output cut.npy --no-progress $on >"$out" 2>"$err" &
pid=$!
sleep 2
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fails "an interrupt on a GPU: $(cat "$err")"
[ ! -e cut.npy ] || fails 'wrote what was interrupted'

# rows of the next batch are made while one is computed: the same bits in any
for b in 2 7; do
    expect 0 encode enc $data --num-images 7 --batch-size $b --output $b.npy $on
done
cmp -s 2.npy 7.npy || fails 'encode: other bits in another batch'
npy_noise many.npy '7, 3, 16, 16' 5376
for b in 3 7; do
    expect 0 run enc --input many.npy --batch-size $b --output $b.run.npy $on
done
cmp -s 3.run.npy 7.run.npy || fails 'run: other bits in another batch'
