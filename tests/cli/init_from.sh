# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# leeway train ... --init-from: weights, average, records, resume to the bit, and what does not fit.

LW_CACHE=$PWD/cache
export LW_CACHE
data='--data synth:16 --limit 64 --no-progress'
net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --heads 2 --norm-groups 4'
ddpm="train ddpm $data $net --batch-size 4 --log-every 1"
weights=diffusion_pytorch_model.safetensors

same() { # A B
    cmp -s "$1" "$2" || fails "$1 and $2 differ"
}
expect 0 $ddpm --steps 3 --output-dir first

# With a learning rate of 0 a step changes nothing: what is saved is what it began with.
expect 0 $ddpm --steps 1 --learning-rate 0 --seed 5 --init-from first --output-dir still
err_has "starts from first/checkpoints/step_0000003/ema/$weights (weights "
same first/checkpoints/last/ema/$weights still/checkpoints/last/$weights
same first/checkpoints/last/ema/$weights still/checkpoints/last/ema/$weights
expect 0 $ddpm --steps 1 --learning-rate 0 --init-from first --init-weights model --output-dir last
same first/checkpoints/last/$weights last/checkpoints/last/$weights
same first/checkpoints/last/$weights last/checkpoints/last/ema/$weights
expect 0 $ddpm --steps 1 --learning-rate 0 --output-dir random
cmp -s random/checkpoints/last/$weights still/checkpoints/last/$weights && fails 'random weights are those of a run'

# every form of a model: checkpoint, folder, file, a pipeline of diffusers
cp -r first/checkpoints/last/ema folder
mkdir -p pipeline
cp -r folder pipeline/unet
echo '{"_class_name": "DDPMPipeline"}' >pipeline/model_index.json
for source in first/checkpoints/step_0000003 folder folder/$weights pipeline; do
    expect 0 $ddpm --steps 1 --learning-rate 0 --init-from $source --output-dir "of_$(echo $source | tr / _)"
    same first/checkpoints/last/ema/$weights "of_$(echo $source | tr / _)/checkpoints/last/$weights"
done

# the records, and 4 steps = 2 + 2 with the folder gone, in any number of threads
expect 0 $ddpm --steps 4 --init-from folder --output-dir whole --threads 1
grep -q '^init-from: folder$' whole/config.yaml || fails 'no init-from in config.yaml'
grep -q '^init-weights: ema$' whole/config.yaml || fails 'no init-weights in config.yaml'
grep -q "\"weights\": *\"folder/$weights\"" whole/checkpoints/last/state.json || fails 'no source in state.json'
expect 0 $ddpm --steps 2 --init-from folder --output-dir parts
mv folder gone
expect 0 $ddpm --steps 4 --init-from folder --output-dir parts --resume --threads 3
for file in $weights ema/$weights optimizer.safetensors; do
    same whole/checkpoints/last/$file parts/checkpoints/last/$file
done
grep -q '"hash"' parts/checkpoints/last/state.json || fails 'state.json forgot where the run began'
expect 2 $ddpm --steps 6 --output-dir parts --resume
err_has '--init-from none (was folder)'
expect 2 $ddpm --steps 6 --init-from first --output-dir parts --resume
err_has '--init-from first (was folder)'
expect 2 $ddpm --steps 6 --init-from folder --init-weights model --output-dir parts --resume
err_has '--init-weights model (was ema)'
expect 2 $ddpm --steps 6 --init-from folder --attn-resolutions '' --output-dir parts --resume
err_has "--attn-resolutions '' (was 8)"
mv gone folder

# a generator of the other kind, and the others
expect 0 train drift $data $net --groups 2 --negatives-per-group 4 --positives-per-group 4 --encoder none --steps 1 \
    --learning-rate 0 --latent-dim 0 --noise-shape full --init-from folder --output-dir drift
same first/checkpoints/last/ema/$weights drift/checkpoints/last/$weights
enc="train encoder $data --width 8 --norm-groups 4 --batch-size 8"
expect 0 $enc --steps 2 --output-dir encoder
expect 0 $enc --steps 1 --learning-rate 0 --weight-decay 0 --seed 3 --init-from encoder --output-dir encoder2
same encoder/checkpoints/last/ema/model.safetensors encoder2/checkpoints/last/model.safetensors
auto="train autoencoder $data --width 8 --blocks 1,1 --latent-channels 4 --batch-size 2"
expect 0 $auto --steps 2 --output-dir auto
expect 0 $auto --steps 1 --learning-rate 0 --seed 3 --init-from auto --output-dir auto2
same auto/checkpoints/last/ema/$weights auto2/checkpoints/last/$weights

# variants of published U-Nets that no option says come with the weights, and stay when the run goes on
cp -r folder variant
sed -i 's/"flip_sin_to_cos": *true/"flip_sin_to_cos": false/; s/"freq_shift": *0/"freq_shift": 1/' variant/config.json
cmp -s variant/config.json folder/config.json && fails 'the variant is none'
expect 0 $ddpm --steps 1 --init-from variant --output-dir variants
expect 0 $ddpm --steps 2 --init-from variant --output-dir variants --resume
grep -q '"freq_shift": *1' variants/checkpoints/last/config.json || fails 'freq_shift was lost'
grep -q '"flip_sin_to_cos": *false' variants/checkpoints/last/ema/config.json || fails 'flip_sin_to_cos was lost'

# what does not fit: one line, nothing written
refused() { # CODE TEXT ARG...
    refused_code=$1 refused_text=$2
    shift 2
    expect $refused_code "$@" --output-dir none
    err_has "$refused_text"
    [ "$(grep -c . "$err")" -eq 1 ] || fails 'more than one line'
    [ ! -e none ] || fails 'none was made'
}
wide='--base-channels 16 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --heads 2 --norm-groups 4'
refused 3 "'time_embedding.linear_1.weight' (file [32,8], model [64,16])" train ddpm $data $wide --steps 1 --init-from folder
refused 3 "unexpected key(s) (1): 'class_embedding.weight'" $ddpm --no-class-conditional --steps 1 --init-from folder
refused 3 "missing key(s) (2): 'latent_embedding.weight', 'latent_embedding.bias'" \
    train drift $data $net --encoder none --latent-dim 8 --steps 1 --init-from folder
refused 2 'norm_num_groups: 4, the network to train has 8' $ddpm --norm-groups 8 --steps 1 --init-from folder
refused 2 'its attention has 2 heads over 16 channels, here 4: say --heads' $ddpm --heads 4 --steps 1 --init-from folder
refused 3 "missing key(s) (33): 'conv1.weight'" $enc --steps 1 --init-from folder
refused 3 'optimizer.safetensors: not the tensors of this model' $ddpm --steps 1 \
    --init-from first/checkpoints/last/optimizer.safetensors
refused 4 'nowhere: no such run, checkpoint, model folder or file' $ddpm --steps 1 --init-from nowhere
mkdir empty broken
refused 3 'empty: neither a run directory' $ddpm --steps 1 --init-from empty
echo '{' >broken/config.json
refused 3 'broken/config.json:2:0: bad JSON' $ddpm --steps 1 --init-from broken
head -c 1000 folder/$weights >cut.safetensors
refused 3 'cut.safetensors' $ddpm --steps 1 --init-from cut.safetensors
refused 2 '--init-from: is empty' $ddpm --steps 1 --init-from ''
