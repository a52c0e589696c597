# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# leeway sample: the same picture whatever the batch, the number and the threads; bad requests.

LW_CACHE=$PWD/cache
export LW_CACHE
net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --norm-groups 4 --dropout 0'
expect 0 train ddpm --data synth:16 --limit 64 $net --batch-size 4 --steps 1 --output-dir ddpm
expect 0 train drift --data synth:16 --limit 64 $net --groups 2 --negatives-per-group 2 --positives-per-group 4 \
    --noise-shape 2x2 --latent-dim 4 --steps 1 --output-dir drift

expect 0 sample drift --n 5 --batch-size 5 --threads 1 --output a.npy --json
out_has '"sampler": "one-step"'
out_has '"evaluations": 1'
expect 0 sample drift --n 5 --batch-size 2 --threads 3 --output b.npy
cmp -s a.npy b.npy || fails 'another batch size gives other pictures'
expect 0 sample drift --n 5 --seed 1 --output c.npy
cmp -s a.npy c.npy && fails 'another seed gives the same pictures'

# Weights so large that sums overflow: no picture, in no file.
cp -r drift/checkpoints/step_0000001/ema overflow
bytes=$(od -An -t u8 -N 8 overflow/model.safetensors | tr -d ' ')
size=$(($(wc -c <overflow/model.safetensors) - 8 - bytes))
head -c $((8 + bytes)) drift/checkpoints/step_0000001/ema/model.safetensors >overflow/model.safetensors
head -c "$size" /dev/zero | tr '\0' '\177' >>overflow/model.safetensors
for to in no.png no.npy no.npz no; do
    expect 7 sample overflow --n 2 --output $to
    err_has 'overflow: picture 0 has a number that is'
    [ -e $to ] && fails "wrote $to"
done

expect 0 sample ddpm --n 3 --steps 4 --output d.npy --json
out_has '"evaluations": 4'
expect 0 sample ddpm --n 3 --steps 4 --batch-size 1 --output e.npy
cmp -s d.npy e.npy || fails 'another batch size gives other pictures'

# The number of evaluations asked for is the number made, by every sampler of a DDPM.
expect 0 sample ddpm --n 2 --sampler ancestral --steps 5 --output anc5.npy --json
out_has '"evaluations": 5'
expect 0 sample ddpm --n 2 --sampler ancestral --steps 10 --output anc10.npy
out_has '10 evaluations each'
cmp -s anc5.npy anc10.npy && fails 'ancestral sampling ignores --steps'
expect 2 sample ddpm --sampler ancestral --steps 1001 --output x.png
err_has 'steps 1001: this model'
expect 0 sample ddpm --n 2 --steps 10 --output clipped.npy
expect 0 sample ddpm --n 2 --steps 10 --no-use-clipped-model-output --output kept.npy
cmp -s clipped.npy kept.npy && fails '--no-use-clipped-model-output changes nothing'

expect 0 sample ddpm --n 2 --steps 10 --timestep-spacing trailing --output trailing.npy
cmp -s clipped.npy trailing.npy && fails '--timestep-spacing changes nothing'

# Guidance: two evaluations a step, of networks that were told of no class at times; the null class is never a picture's.
for how in 'ddpm ddim' 'ddpm ancestral' 'ddpm dpm-solver' 'flow euler' 'flow heun'; do
    method=${how% *} sampler=${how#* }
    [ -d told_$method ] || expect 0 train $method --data synth:16 --limit 64 $net --batch-size 4 --steps 3 --ema-decay 0 \
        --class-dropout-prob 0.2 --output-dir told_$method
    expect 0 sample told_$method --n 12 --sampler $sampler --steps 4 --output none.npy
    out_has '4 evaluations each'
    expect 0 sample told_$method --n 12 --sampler $sampler --steps 4 --guidance-scale 1 --output one.npy
    cmp none.npy one.npy || fails "$sampler: scale 1 is not none"
    expect 0 sample told_$method --n 12 --sampler $sampler --steps 4 --guidance-scale 3 --output three.npy --json
    out_has '"evaluations": 8'
    cmp -s none.npy three.npy && fails "$sampler: --guidance-scale changes nothing"
    expect 0 sample told_$method --n 12 --sampler $sampler --steps 4 --guidance-scale 3 --batch-size 5 --threads 3 --output same.npy
    cmp three.npy same.npy || fails "$sampler, guided: another batch size gives other pictures"
done
expect 0 sample told_ddpm --n 12 --steps 2 --output classes.npz
expect 0 sample told_ddpm --n 12 --steps 2 --classes 0,1,2,3,4,5,6,7,8,9 --output asked.npz
cmp classes.npz asked.npz || fails 'in turn the null class is one of the classes'
expect 2 sample told_ddpm --classes 10 --output x.png
err_has 'numbers are 0 .. 9'
expect 2 sample told_ddpm --alpha 2 --output x.png
err_has 'say --guidance-scale'
expect 2 sample ddpm --guidance-scale 2 --output x.png
err_has 'no null class'
expect 2 sample drift --guidance-scale 2 --output x.png
err_has 'say --alpha'
expect 2 sample told_ddpm --guidance-scale 0.5 --output x.png
npy_noise x.npy '1, 3, 16, 16' 768
npy t.npy '<f4' '1,' '\000\000\310\102' # 100
npy c.npy '<i4' '1,' '\012\000\000\000' # the null class, 10
expect 0 run told_ddpm --input x.npy --t t.npy --class c.npy --output y.npy
npy c.npy '<i4' '1,' '\013\000\000\000'
expect 3 run told_ddpm --input x.npy --t t.npy --class c.npy --output y.npy

# A folder that training did not make: no step; what its config.json says is computed or refused.
"$make_model" plain plain || fails 'make_model plain'
expect 0 sample plain --n 2 --steps 3 --output plain.npy
out_has 'model weights, f32'
expect 0 sample plain --n 2 --steps 3 --output plain.png --json
grep -q '"step"' "$out" && fails "a step of a model that has none: $(cat "$out")"
grep -aq 'step' plain.png && fails 'plain.png notes a step of a model that has none'
sed -i 's/"mid_block_scale_factor": 1/"mid_block_scale_factor": 2/' plain/config.json
expect 0 sample plain --n 2 --steps 3 --output halved.npy
cmp -s plain.npy halved.npy && fails 'mid_block_scale_factor is passed over'
sed -i 's/"mid_block_scale_factor": 2/"mid_block_scale_factor": "abc"/' plain/config.json
expect 3 sample plain --output x.png
err_has "'mid_block_scale_factor' must be a number, is a string"

# The noise schedule of a pipeline's folder is computed or refused, never replaced by ours.
mkdir -p pipe/scheduler
"$make_model" plain pipe/unet || fails 'make_model plain'
echo '{}' >pipe/model_index.json
expect 0 sample pipe --n 2 --steps 3 --output ours.npy
cmp -s plain.npy ours.npy || fails 'a pipeline without a schedule is not sampled with ours'
echo '{"_class_name": "DDIMScheduler", "beta_schedule": "squaredcos_cap_v2"}' \
    >pipe/scheduler/scheduler_config.json
expect 0 sample pipe --n 2 --steps 3 --output cosine.npy
cmp -s ours.npy cosine.npy && fails 'the scheduler of a pipeline is passed over'
expect 0 sample pipe/unet --n 2 --steps 3 --output same.npy
cmp -s same.npy cosine.npy || fails 'the network of a pipeline is sampled otherwise than the pipeline'
echo '{"_class_name": "DDIMScheduler", "thresholding": true}' >pipe/scheduler/scheduler_config.json
expect 3 sample pipe --output x.png
err_has "'thresholding' is true"

"$make_model" four four || fails 'make_model four'
expect 0 sample four --n 2 --steps 2 --output four.npy
expect 0 inspect four.npy
out_has '[2,4,16,16]'
"$make_model" encoder enc || fails 'make_model encoder'
expect 3 sample enc --n 1 --output enc.npy
err_has 'enc: this is no generator but leeway, which makes no pictures'
expect 3 sample plain/diffusion_pytorch_model.safetensors --n 1 --output enc.npy
err_has 'no config.json says what it is'

expect 0 sample drift --n 12 --classes 3,7 --output grid.png
grep -q model_hash grid.png || fails 'the grid does not name its model'
grep -aq 'guidance_scale\|use_clipped\|window\|alpha' grid.png && fails 'notes of options that nobody gave'
# what decided the pictures stands in their notes and in the result
expect 0 sample told_ddpm --n 2 --steps 2 --guidance-scale 2.5 --timestep-spacing trailing --no-use-clipped-model-output \
    --window 4 --output how.png --json
for word in '"guidance_scale": 2.5' '"timestep_spacing": "trailing"' '"use_clipped_model_output": false' '"window": 4'; do
    out_has "$word"
done
tr '\0' '=' <how.png >how.txt
for word in guidance_scale=2.5 timestep_spacing=trailing use_clipped_model_output=false window=4; do
    grep -aq "$word" how.txt || fails "how.png does not note $word"
done
expect 0 sample drift --n 2 --output x.npy --json
grep -q 'use_clipped\|spacing\|window\|alpha\|classes' "$out" && fails "options that nobody gave: $(cat "$out")"
expect 0 sample drift --n 2 --classes 3,7 --output folder
[ -f folder/000001.png ] || fails 'no picture in the folder'
[ "$(tail -n 1 folder/labels.csv)" = '000001.png,7' ] || fails 'labels.csv'

expect 2 sample drift --classes 11 --output x.png
err_has "no class '11'"
expect 2 sample drift --sampler ddim --output x.png
expect 2 sample ddpm --sampler one-step --output x.png
expect 4 sample nowhere --output x.png
expect 3 sample cache --output x.png
expect 2 sample drift
err_has '--output'
[ ! -f x.png ] || fails 'a failed request left a file'

# To stdout and to pipes; as ADM's evaluator wants it.
expect 0 sample drift --n 2 --output file.npy
expect 0 sample drift --n 2 --output -
cmp -s "$out" file.npy || fails 'stdout does not carry the array'
[ ! -e - ] || fails 'a folder named - was made'
expect 0 sample drift --n 2 --output /dev/stdout
cmp -s "$out" file.npy || fails '/dev/stdout does not carry the array'
"$program" sample drift --n 2 --output - 2>"$err" | cmp -s - file.npy || fails 'a pipe does not carry the array'
mkfifo fifo
cat fifo >through.npy &
expect 0 sample drift --n 2 --output fifo
wait
cmp -s through.npy file.npy || fails 'a named pipe does not carry the array'
expect 2 sample drift --n 2 --output - --json
err_has '--json: stdout carries the pictures'
expect 4 sample drift --n 2 --output /dev/full
expect 0 sample drift --n 3 --output adm.npz
expect 0 inspect adm.npz
out_has 'arr_0'
out_has '[3,16,16,3]'
out_has 'arr_1'

# Attention over 1,024 places in windows: other pictures, but for a window as large as they are.
expect 0 train ddpm --data synth:32 --limit 32 --batch-size 4 --steps 2 --base-channels 8 --channel-mult 1,2 \
    --num-res-blocks 1 --attn-resolutions 32 --norm-groups 4 --timesteps 20 --output-dir runs/places
few='--num-images 1 --steps 2 --weights model'
expect 0 sample runs/places $few --output full.npy
expect 0 sample runs/places $few --window 8 --output windows.npy
expect 0 sample runs/places $few --window 32 --output whole.npy
! cmp -s full.npy windows.npy || fails '--window 8 changed nothing'
cmp full.npy whole.npy || fails '--window 32 of 32x32 pictures'
expect 0 stream --input test:64x32@10 --num-frames 2 --every-frame --model runs/places --window 8


# what has no --dry-run refuses it and does nothing
expect 2 sample runs/places --num-images 1 --steps 2 --weights model --output dry.npy --dry-run
err_has 'has none; nothing was done'
[ ! -e dry.npy ] || fails 'a dry run wrote'
