# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway quantize and --precision: ranges of every kind of model, the folder they make, what int8 and bf16 then give,
# and what is said when ranges are missing.

LW_CACHE=$PWD/cache
export LW_CACHE
net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --norm-groups 4 --dropout 0'
# shellcheck disable=SC2086
expect 0 train ddpm --data synth:16 --limit 64 $net --batch-size 4 --steps 1 --output-dir ddpm
# shellcheck disable=SC2086
expect 0 train drift --data synth:16 --limit 64 $net --groups 2 --negatives-per-group 2 --positives-per-group 4 \
    --noise-shape 2x2 --latent-dim 4 --steps 1 --precision bf16 --output-dir drift
grep -q '^precision: bf16' drift/config.yaml || fails 'config.yaml does not say bf16'
expect 0 train encoder --data synth:16 --limit 64 --width 8 --stages 2 --norm-groups 4 --batch-size 4 --steps 1 \
    --output-dir enc

expect 2 sample drift --precision int8 --output x.npy
err_has 'leeway quantize drift'
expect 2 train ddpm --data synth:16 --precision int8 --steps 1 --output-dir no
err_has 'precision'

expect 0 quantize drift --n 4 --batch-size 4 --json
out_has '"output_dir": "drift-int8"'
out_has '"inputs": "noise"'
[ -f drift-int8/quantization.json ] || fails 'no quantization.json'
[ -f drift-int8/config.json ] || fails 'no config.json'
expect 0 sample drift-int8 --n 5 --precision int8 --batch-size 5 --threads 1 --output a.npy --json
out_has '"precision": "int8"'
out_has '"weights": "ema"' # what was quantised
expect 0 quantize drift --weights model --n 4 --batch-size 4 --output-dir q-last
expect 0 sample q-last --n 1 --output x.npy --json
out_has '"weights": "model"'
expect 0 sample drift-int8 --n 5 --precision int8 --batch-size 2 --threads 3 --output b.npy
cmp -s a.npy b.npy || fails 'int8: another batch size gives other pictures'
expect 0 sample drift-int8 --n 5 --output c.npy
expect 0 sample drift --n 5 --output d.npy
cmp -s c.npy d.npy || fails 'f32 from the quantised folder differs from the run'
cmp -s a.npy c.npy && fails 'int8 gives the bits of f32'
expect 0 sample drift --n 5 --precision bf16 --batch-size 5 --threads 1 --output e.npy
expect 0 sample drift --n 5 --precision bf16 --batch-size 2 --threads 3 --output f.npy
cmp -s e.npy f.npy || fails 'bf16: another batch size gives other pictures'
cmp -s e.npy c.npy && fails 'bf16 gives the bits of f32'

for rule in mse percentile minmax; do
    expect 0 quantize ddpm --n 2 --batch-size 2 --steps 3 --range $rule --output-dir q-$rule
    out_has 'pictures on their way from noise'
done
cmp -s q-mse/quantization.json q-minmax/quantization.json && fails 'rules make no difference'
for conv in direct winograd; do
    expect 0 quantize ddpm --n 2 --batch-size 2 --steps 3 --conv $conv --output-dir q-$conv
done
cmp -s q-direct/quantization.json q-winograd/quantization.json && fails '--conv makes no difference'
expect 0 quantize ddpm --n 2 --batch-size 2 --steps 3 --calibration synth:16 --output-dir q-data
out_has 'noised pictures'
expect 0 sample q-data --n 2 --steps 3 --precision int8 --output g.npy

expect 2 quantize enc --output-dir q-enc
err_has '--calibration'
expect 0 quantize enc --calibration synth:16 --n 8 --output-dir q-enc
expect 0 run q-enc --input g.npy --precision int8 --output h.npy
# what its pictures go through is part of the model
"$make_model" encoder prepared || fails 'make_model encoder'
echo '{"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 20}, "resample": 3,
    "crop_size": {"height": 16, "width": 16}}' >prepared/preprocessor_config.json
expect 0 quantize prepared --calibration synth:32 --n 8 --output-dir q-prepared
expect 0 encode q-prepared --data synth:32 --limit 4 --precision int8 --output p.npy
out_has 'shortest edge 20x20, bicubic (pillow), centre 16x16'
expect 0 profile q-prepared --runs 1
expect 2 run enc --input g.npy --precision int8 --output i.npy
err_has 'leeway quantize'

# into a folder that holds something nothing is mixed, be it another model or another quantised one; said before the pictures are read
for full in enc/checkpoints/last q-last; do
    (cd $full && find . -type f -exec cksum {} +) >before.txt
    expect 2 quantize enc --calibration folder:nowhere --output-dir $full
    err_has "--output-dir $full: holds something already: choose another"
    (cd $full && find . -type f -exec cksum {} +) | cmp -s before.txt || fails "$full has other files"
done
expect 2 quantize drift --n 4
err_has '--output-dir drift-int8: holds something already'

# weights in a file that is no .safetensors come along as one
cp -r prepared torch
mv torch/model.safetensors torch/pytorch_model.bin
expect 0 quantize torch --calibration synth:32 --n 8 --output-dir q-torch
expect 0 encode q-torch --data synth:32 --limit 4 --precision int8 --output q.npy
cmp -s p.npy q.npy || fails 'other features with the weights in another file'
[ -f q-torch/model.safetensors ] || fails 'no weights of the usual name'
# what can be no directory is said before the measuring
expect 4 quantize enc --calibration synth:16 --n 8 --output-dir /dev/null
err_has '--output-dir /dev/null: is a file, not a directory'
# what is asked for and not done is said
expect 2 quantize drift --calibration synth:16 --output-dir q-none
err_has 'drift is a drifting generator, which reads noise and no pictures: leave out --calibration'
expect 0 quantize drift --calibration noise --n 4 --batch-size 4 --output-dir q-noise
expect 2 quantize ddpm --percentile 99 --output-dir q-none
err_has '--percentile: only with --range percentile'
[ ! -e q-none ] || fails 'q-none was written'
expect 0 data export synth:16 --num-images 3 --output few
expect 0 quantize enc --calibration folder:few --n 8 --output-dir q-few
err_has 'folder:few: there are 3 pictures; 8 are asked for, so they repeat'
# the name of a folder that is not said by its name
(cd prepared && "$program" quantize ./ --calibration synth:32 --n 8) >"$out" 2>"$err" || fails 'quantize ./'
[ -f prepared-int8/quantization.json ] || fails 'quantize . writes elsewhere than quantize of the name'
echo '{"version": 1, "edges": {"x": {"scale": 0, "zero": 3}}}' > q-enc/quantization.json
expect 3 run q-enc --input g.npy --output i.npy
err_has "'scale' must be positive"
echo '{"version": 1, "edges": {"x": {"scale": 1, "zero": 3}}}' > q-enc/quantization.json
expect 3 run q-enc --input g.npy --precision int8 --output i.npy
err_has 'none of the 1 calibrated weights'

# ranges of the same network with other weights are refused in int8, by whatever reads them
expect 0 train encoder --data synth:16 --limit 64 --width 8 --stages 2 --norm-groups 4 --batch-size 4 --steps 2 \
    --output-dir enc2
expect 0 quantize enc2 --calibration synth:16 --n 8 --output-dir q-enc2
cp q-enc2/quantization.json q-enc # as measured for enc2
for reader in 'run q-enc --input g.npy --output i.npy' 'encode q-enc --data synth:16 --limit 4 --output i.npy' \
    'inspect q-enc --pass precision' 'mc synth:16 --models q-enc --num-images 4 --output-dir i' \
    'fid synth:16 synth:16 --encoder q-enc'; do
    # shellcheck disable=SC2086
    expect 3 $reader --precision int8
    err_has 'q-enc: quantization.json holds ranges of other weights. Measure those of these: leeway quantize q-enc'
done
expect 0 run q-enc --input g.npy --output i.npy
cp q-last/quantization.json q-noise
expect 3 sample q-noise --n 1 --precision int8 --output bad.npy
err_has 'q-noise: quantization.json holds ranges of other weights'
expect 0 sample q-noise --n 1 --output bad.npy

# ranges of an older version, of a part, broken ones
one='{"version": 1, "edges": {"up_blocks.0.upsamplers.0.conv.weight": '
cp drift-int8/quantization.json whole.json
for bad in '{"scale": 1e300, "zero": 3}' '{"scale": 1e-45, "zero": 3}' '{"scale": -1, "zero": 3}' '{"scale": 1}' \
    '{"zero": 3}' '{"scale": 1, "zero": 256}' '{"scale": "1", "zero": 3}' '{"scale": NaN, "zero": 3}' '[1, 3]' 'null'; do
    echo "$one$bad}}" >drift-int8/quantization.json
    expect 3 sample drift-int8 --n 1 --precision int8 --output bad.npy
    err_has 'quantization.json'
    [ "$(wc -l <"$err")" -eq 1 ] || fails "more than one line for $bad"
done
head -c 300 whole.json >drift-int8/quantization.json
expect 3 sample drift-int8 --n 1 --precision int8 --output bad.npy
err_has 'bad JSON'
awk '/down_blocks.1.resnets.0.conv_shortcut/ { skip = 7 } skip-- <= 0' whole.json >drift-int8/quantization.json
expect 0 sample drift-int8 --n 5 --precision int8 --output part.npy
err_has 'have no range'
err_has 'down_blocks.1.resnets.0.conv_shortcut.weight'
cmp -s a.npy part.npy && fails 'a missing range makes no difference'
expect 0 inspect drift-int8 --pass precision --precision int8 --conv direct
grep -q '= conv2d(%[0-9]*:bf16, .*; down_blocks.1.resnets.0.conv_shortcut' "$out" || fails 'without a range: not bf16'
[ "$(grep -cE '= (conv2d|matmul)(_dx)?\(%[0-9]*:u8, ' "$out")" -eq 30 ] || fails 'not all others are u8'
cp whole.json drift-int8/quantization.json
expect 0 inspect drift-int8 --pass precision --precision int8 --conv direct
grep -q '= conv2d_dx(%[0-9]*:u8, .*; up_blocks.0.upsamplers.0.conv' "$out" || fails 'upsampling does not read u8'

# weights at the end of what floats hold make infinities: no model to measure; nothing is written
cp -r drift-int8 inf
rm inf/quantization.json
weights=$(echo inf/*.safetensors)
head -c 4000 /dev/zero | tr '\0' '\177' |
    dd of="$weights" bs=1 seek=$(($(wc -c <"$weights") / 2)) conv=notrunc 2>/dev/null
expect 7 quantize inf --n 2 --batch-size 2 --output-dir q-inf
err_has 'not finite'
[ -e q-inf/quantization.json ] && fails 'ranges of infinities were written'
:
