# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# --device auto: the GPU where there is one that computes all of it, else the CPU; which and why stands on stderr, in one
# line, and what is written down names the device. info --peak measures the GPU.

LW_CACHE=$PWD/cache
export LW_CACHE
gpu=$LW_EMULATED_GPU_DIR
net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --norm-groups 4 --dropout 0'
train="train ddpm --data synth:16 --limit 64 $net --batch-size 4 --steps 1"

told() { # told WORDS: the one line about auto has them
    [ "$(grep -c -e '--device auto is' "$err")" -eq 1 ] || fails "$last: not one line about the device"
    err_has "--device auto is $1"
}

if [ ! -e /dev/nvidia0 ]; then
    # shellcheck disable=SC2086
    expect 0 $train --output-dir ddpm --device auto
    told 'cpu: gradients are not computed on GPUs yet'
    expect 0 sample ddpm --n 1 --steps 2 --output none.npy --device auto
    told 'cpu: no NVIDIA driver is installed'
else # what holds without a GPU, as far as it goes
    # shellcheck disable=SC2086
    expect 0 $train --output-dir ddpm
fi
LD_LIBRARY_PATH=$gpu
export LD_LIBRARY_PATH
for way in 'old:too old' 'none:sees no GPU' 'stub:the toolkit'; do
    LW_EMULATED_GPU=${way%%:*} expect 0 sample ddpm --n 1 --steps 2 --output "${way%%:*}.npy" --device auto
    err_has '--device auto is cpu: '
    told_why=$(cat "$err")
    case $told_why in *"${way#*:}"*) ;; *) fails "$last: not why: $told_why" ;; esac
done
expect 0 sample ddpm --n 1 --steps 2 --output cpu.npy
cmp -s cpu.npy old.npy || fails 'a GPU that is too old changes bits'

# The GPU, as --device cuda has it.
"$make_model" encoder enc >/dev/null
npy_noise x.npy '1, 3, 16, 16' 768
npy_noise gen.npy '4, 8' 32
npy_noise pos.npy '5, 8' 40
for d in cuda auto; do
    on="--device $d"
    for what in sample run encode field; do
        # shellcheck disable=SC2086
        case $what in
        sample) expect 0 sample ddpm --n 1 --steps 2 --output $d.sample.npy $on ;;
        run) expect 0 run enc --input x.npy --output $d.run.npy $on ;;
        encode) expect 0 encode enc --data synth:16 --limit 16 --num-images 2 --no-progress --output $d.encode.npy $on ;;
        *) expect 0 field --gen gen.npy --pos pos.npy --output $d.field.npy $on ;;
        esac
        if [ $d = auto ]; then
            told 'cuda:0  emulated GPU'
        elif grep -q 'auto is' "$err"; then
            fails "$last: speaks of auto"
        fi
    done
done
for what in sample run encode field; do
    cmp -s cuda.$what.npy auto.$what.npy || fails "$what: auto and cuda differ"
done
expect 0 sample ddpm --n 1 --steps 2 --output quiet.npy --device auto --quiet
grep -q '^leeway' "$err" && fails 'speaks with --quiet'
expect 0 data list --device auto
told 'cuda:0'

# What GPUs do not compute: known before, or found where the plan is lowered.
# shellcheck disable=SC2086
expect 0 $train --output-dir again --device auto
told 'cpu: gradients are not computed on GPUs yet'
grep -q '^device: cpu$' again/config.yaml || fails 'config.yaml does not name the CPU'
cmp -s ddpm/checkpoints/last/optimizer.safetensors again/checkpoints/last/optimizer.safetensors || fails 'trained otherwise'
printf 'device: auto\n' >auto.yaml
expect 0 quantize ddpm --num-images 4 --steps 1 --output-dir int8 --config auto.yaml
told 'cpu: int8 is not computed on GPUs yet'
expect 0 sample int8 --precision int8 --n 1 --steps 2 --output int8.npy --device auto
told 'cpu: int8 is not computed on GPUs yet'
expect 0 field --gen gen.npy --pos pos.npy --precision f64 --output f64.npy --device auto
told 'cpu: f64 is not computed on GPUs'
expect 0 inspect ddpm --plan --train
cp "$out" plan
expect 0 inspect ddpm --plan --train --device auto
told "cpu: conv2d_dw (conv_out): 'conv2d_dw' is not computed on GPUs yet"
cmp -s plan "$out" || fails "$last: not the CPU's plan"

# A GPU that breaks is no reason: that is said, and nothing is made on the CPU instead.
LW_EMULATED_FAIL=200 expect 6 sample ddpm --n 1 --steps 2 --output no.npy --device auto
[ -e no.npy ] && fails 'pictures of a GPU that broke'
told 'cuda:0'

# Measured limits, by the driver's clock.
expect 0 info --peak --device cuda
for words in 'multiply        cuda:0' '10^12 operations/s, product of ' 'int8               -  not computed on GPUs yet' \
    'read and written' 'us for a kernel of a recorded graph'; do
    out_has "$words"
done
expect 0 info --peak --device auto --json
told 'cuda:0'
for words in '"device": "cuda:0"' '"int8": null' '"copy_gb_per_second": ' '"dispatch_us": ' '"product_side": '; do
    out_has "$words"
done
grep -Eq '"(f32|bf16|copy_gb_per_second|dispatch_us)": (0(\.0*)?|-.*|null),?$' "$out" && fails "$last: not measured"
LW_EMULATED_BYTES=20000 expect 5 info --peak --device cuda
err_has 'no room for'
LW_EMULATED_BYTES=800000 expect 0 info --peak --device cuda # what fits
out_has 'product of 64 x 64 x 64'
LW_EMULATED_REPORT=$PWD/report
export LW_EMULATED_REPORT
# How many calls there are is a matter of time; memory that is refused for a larger product ends nothing.
broken=0
for k in 1 2 3 5 7 9 10 12 20 40 80 100 131 150 200 237 300 411 536 700 900; do
    LW_EMULATED_FAIL=$k "$program" info --peak --device cuda >"$out" 2>"$err"
    got=$?
    last="info --peak: call $k fails"
    grep -q ' 0 blocks, 0 contexts, 0 streams, 0 modules, 0 graphs, 0 events left' report || fails "$last: left behind: $(cat report)"
    [ "$got" -ne 0 ] || continue
    broken=$((broken + 1))
    case $got in 5 | 6) ;; *) fails "$last: exit code $got" ;; esac
    [ -s "$out" ] && fails "$last: limits of a GPU that broke"
    [ "$(grep -vcE 'WARNING: ASan|^False positive error reports|google/sanitizers' "$err")" -eq 1 ] || fails "$last: not one line"
done
[ "$broken" -ge 15 ] || fails "only $broken calls failed"
