# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# leeway train: run directories, resuming and threads to the bit, replay of config.yaml, dry runs, refusals.

LW_CACHE=$PWD/cache
export LW_CACHE
data='--data synth:16 --limit 64 --no-progress'
net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --heads 2 --norm-groups 4'
ddpm="train ddpm $data $net --batch-size 4 --log-every 1"

# The same checkpoint, file by file; state.json holds times, which differ.
same() {
    for file in diffusion_pytorch_model.safetensors ema/diffusion_pytorch_model.safetensors optimizer.safetensors config.json; do
        cmp -s "$1/$file" "$2/$file" || fails "$1 and $2 differ in $file"
    done
}

# what only a drifting generator has
expect 2 $ddpm --steps 4 --output-dir none --latent-dim 2
err_has '--latent-dim 2: a DDPM has no latent vector'
expect 2 $ddpm --steps 4 --output-dir none --noise-shape 2x2
err_has "--noise-shape 2x2: a DDPM's noise is of full size"
[ ! -e none ] || fails 'none was made for a usage error'

expect 0 $ddpm --steps 4 --output-dir whole --threads 1
for file in config.yaml command.txt env.json metrics.jsonl loss_log.csv summary.json report.html checkpoints/last/state.json; do
    [ -s "whole/$file" ] || fails "whole/$file is missing"
done
ls whole/tb/events.out.tfevents.* >ls.txt || fails 'no TensorBoard events'
[ "$(head -n 1 whole/loss_log.csv)" = 'step,loss,time_s,images_per_sec' ] || fails 'columns of loss_log.csv'
[ "$(wc -l <whole/loss_log.csv)" -eq 5 ] || fails 'rows of loss_log.csv'
grep -q '"grad_norm"' whole/metrics.jsonl || fails 'no gradient norm in metrics.jsonl'
grep -q 'gradient norm' whole/report.html || fails 'no curves in report.html'

for tag in train/loss train/grad_norm config.yaml _hparams_/session_start_info; do
    grep -aq "$tag" whole/tb/events.out.tfevents.* || fails "no $tag for TensorBoard"
done

# another thread count; 2 + 2 steps; a replay of the written config: the same bits
expect 0 $ddpm --steps 4 --output-dir threads --threads 3
same whole/checkpoints/last threads/checkpoints/last
expect 0 $ddpm --steps 2 --output-dir parts
expect 0 $ddpm --steps 4 --output-dir parts --resume
same whole/checkpoints/last parts/checkpoints/last
[ "$(wc -l <parts/loss_log.csv)" -eq 5 ] || fails 'a resumed log lacks rows or has them twice'
# a config.yaml that was cut at a line reads as one of defaults
for cut in '1,20!d' '1,$d' '$a widht: 9' 's/^seed:.*/seed: x/' '$a - {'; do
    cp parts/config.yaml kept.yaml
    sed -i "$cut" parts/config.yaml
    expect 3 $ddpm --steps 6 --reschedule --output-dir parts --resume
    err_has 'leeway: parts/config.yaml'
    err_has ': not as the run wrote it: put a copy back, or remove the file and name all options of the run'
    mv kept.yaml parts/config.yaml
done
expect 2 train flow --data synth:16 --steps 6 --output-dir parts --resume
err_has 'is a config of `leeway train ddpm`, not of `leeway train flow`'
expect 0 $ddpm --steps 4 --output-dir elsewhere --resume-from parts/checkpoints/step_0000002
same whole/checkpoints/last elsewhere/checkpoints/last
expect 0 train ddpm --config whole/config.yaml --output-dir replay
same whole/checkpoints/last replay/checkpoints/last
expect 0 $ddpm --steps 4 --output-dir seed --seed 1
cmp -s whole/checkpoints/last/optimizer.safetensors seed/checkpoints/last/optimizer.safetensors && fails 'another seed gave the same bits'

# what others do with a run
expect 0 inspect whole
out_has 'kind: run'
out_has 'step_0000004'
expect 0 inspect whole/checkpoints/last
out_has 'kind: checkpoint'
npy_noise x.npy '2, 3, 16, 16' 1536
npy c.npy '<i4' '1,' '\001\000\000\000'
expect 0 run whole --input x.npy --class c.npy --output ema.npy
expect 0 run whole --weights model --input x.npy --class c.npy --output model.npy
cmp -s ema.npy model.npy && fails 'averaged and last weights are the same'
expect 0 run whole/checkpoints/step_0000004/ema --input x.npy --class c.npy --output folder.npy
cmp -s ema.npy folder.npy || fails 'a run and its newest averaged weights differ'

# a pipeline of diffusers, whose schedule is that of the run
for dir in whole/checkpoints/last whole/checkpoints/last/ema; do
    grep -q '"DDPMPipeline"' $dir/model_index.json || fails "no model_index.json in $dir"
    grep -q '"clip_sample": true' $dir/scheduler_config.json || fails "no scheduler_config.json in $dir"
done
expect 0 sample whole --n 2 --steps 3 --output run.npy
cp -r whole/checkpoints/last/ema alone
expect 0 sample alone --n 2 --steps 3 --output alone.npy
cmp -s run.npy alone.npy || fails 'a folder taken out of a run samples otherwise'
rm alone/scheduler_config.json alone/model_index.json # as before they were written
expect 0 sample alone --n 2 --steps 3 --output before.npy
cmp -s run.npy before.npy || fails 'DDIM depends on the files of the pipeline'

# encoder and drift
expect 0 train encoder $data --width 4 --stages 2 --batch-size 4 --steps 2 --output-dir enc --json
out_has '"steps": 2'
expect 0 train drift $data $net --encoder enc --groups 2 --negatives-per-group 2 --positives-per-group 3 --steps 2 \
    --log-every 1 --output-dir drift
[ -s drift/checkpoints/last/ema/diffusion_pytorch_model.safetensors ] || fails 'a drift run has no weights'
[ ! -e drift/checkpoints/last/model_index.json ] || fails 'a drifting generator calls itself a DDPMPipeline'
expect 0 train drift $data $net --encoder none --groups 2 --negatives-per-group 2 --positives-per-group 3 --steps 2 \
    --latent-dim 3 --output-dir latent
[ ! -e latent/checkpoints/last/ema/diffusion_pytorch_model.safetensors ] || fails 'diffusers opens a network with a latent vector'
expect 0 sample latent --n 2 --output latent.npy
expect 0 train drift $data $net --encoder none --groups 2 --negatives-per-group 2 --positives-per-group 3 --steps 3 \
    --latent-dim 3 --output-dir latent --resume
grep -q 'raw_drift' drift/metrics.jsonl || fails 'no raw drift in metrics.jsonl'
expect 0 run enc --input x.npy --layer pooled --output f.npy
out_has 'pooled [2,8]'

# what killed processes left half written goes when the run goes on
cp -r whole left
mkdir -p left/samples
: >left/.tmp_report.html.0123456789abcdef
: >left/samples/.tmp_step_0000004.png.0123456789abcdef
: >left/.tmp_mine
expect 0 $ddpm --steps 5 --output-dir left --resume
[ "$(find left -name '.tmp_*')" = left/.tmp_mine ] || fails "half files stay: $(find left -name '.tmp_*')"
rm -r left

# a dry run touches nothing
expect 0 $ddpm --steps 4 --output-dir dry --dry-run
out_has 'parameters'
[ ! -e dry ] || fails 'a dry run wrote something'

expect 2 $ddpm --steps 4 --output-dir whole
err_has '--resume'
expect 2 train ddpm --output-dir x --steps 1
err_has '--data'
(
    flock 9
    expect 2 $ddpm --steps 6 --output-dir whole --resume
    err_has 'another process is writing into it'
) 9<whole || exit 1
expect 2 $ddpm --output-dir x
expect 2 $ddpm --steps 1 --output-dir x --batch-szie 3
err_has 'did you mean --batch-size?'
expect 2 $ddpm --steps 1 --output-dir x --norm-groups 3
expect 2 $ddpm --steps 1 --output-dir x --attn-resolutions 5
expect 2 $ddpm --steps 1 --output-dir x --learning-rate -1
expect 2 $ddpm --steps 1 --output-dir x --scheduler linear
expect 2 $ddpm --steps 1 --output-dir x --precision int8
expect 2 train ddpm --data sinth --steps 1 --output-dir x
err_has "did you mean 'synth"
expect 2 $ddpm --steps 1 --minutes 1 --output-dir x
err_has '--steps, --minutes: say only one'
# what is typed counts against the file's
expect 0 train ddpm --config whole/config.yaml --minutes 0.001 --output-dir short
grep -q '^# asked: minutes: 0.001' short/config.yaml || fails 'the steps of a config file beat --minutes'
printf 'steps: 4\nminutes: 1\n' >both.yaml
expect 2 $ddpm --config both.yaml --output-dir x
err_has '--steps, --minutes: say only one'
expect 0 $ddpm --config both.yaml --steps 1 --output-dir one
grep -q '^minutes: 0' one/config.yaml || fails 'minutes of the file stayed'
expect 0 help train ddpm
grep -q -e '--noise-shape' "$out" && fails 'help of train ddpm names what it refuses'
expect 4 train ddpm --data cifar10:/no/such/folder --steps 1 --output-dir x
expect 2 train drift $data $net --encoder nosuch --steps 1 --output-dir x
printf 'x' >file
expect 4 $ddpm --steps 1 --output-dir file/run
# what does not fit the size that is asked for is said before pictures are decoded
LW_CACHE=$PWD/nothing
for recipe in ddpm flow drift; do
    expect 2 train $recipe --data synth:16 --image-size 16 --attn-resolutions 7 --steps 1 --output-dir x
    err_has '16x16 images have levels of 16, 8'
    [ ! -e nothing ] || fails 'pictures were decoded first'
done
LW_CACHE=$PWD/cache
expect 4 $ddpm --steps 1 --output-dir x --resume-from nowhere
cp -r whole/checkpoints/step_0000004 lone
expect 3 $ddpm --base-channels 16 --steps 5 --output-dir x --resume-from lone
cp -r whole cut
head -c 3000 whole/checkpoints/last/optimizer.safetensors >cut/checkpoints/step_0000004/optimizer.safetensors
expect 3 $ddpm --steps 5 --output-dir x --resume-from cut/checkpoints/step_0000004
cp -r whole flipped
moments=flipped/checkpoints/step_0000004/optimizer.safetensors
byte=$(od -An -tu1 -j200000 -N1 $moments) # which may be any: another one is written
printf "\\$(printf '%o' $((byte ^ 255)))" | dd of=$moments bs=1 seek=200000 conv=notrunc 2>dd.txt
expect 3 $ddpm --steps 5 --output-dir x --resume-from flipped/checkpoints/step_0000004
[ ! -e x/checkpoints ] || fails 'a refused run wrote a checkpoint'
