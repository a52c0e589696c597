# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway convert: what is said and written, and every refusal. Values: tests/jobs/test_convert.c.

"$make_model" clip net || fails 'make_model clip'
"$make_model" encoder own || fails 'make_model encoder'

expect 0 convert net --to timm --output-dir timm --dry-run
out_has 'would go to timm'
[ ! -e timm ] || fails 'a dry run wrote'
expect 0 convert net --to timm --output-dir timm
out_has 'is in timm'
out_has 'model.safetensors'
grep -q '"architecture": "vit_base_patch32_clip_quickgelu_224"' timm/config.json || fails 'no architecture'
expect 0 convert timm --to hf --output-dir a/b/hf --json
out_has '"left_out": ["head.bias"]' # of zeros, which timm alone has
out_has '"notes": []'
out_has '"written": true'
out_has '"dtype": "F32"'
[ -f a/b/hf/preprocessor_config.json ] || fails 'no preparation'
ls -A a/b >names
[ "$(cat names)" = hf ] || fails 'something was left beside the folder'
cmp -s net/model.safetensors a/b/hf/model.safetensors || fails 'values came back as others'

# features of the copy are those of the original, to the bit
npy_noise x.npy '2, 3, 16, 16' 1536
expect 0 run net --input x.npy --layer pooled --output one.npy
expect 0 run timm --input x.npy --layer pooled --output two.npy
cmp -s one.npy two.npy || fails 'features differ'
expect 0 convert net --to hf --output-dir half --dtype bf16
out_has 'BF16'

expect 0 convert half --to open_clip --output-dir open
out_has 'note: open_clip builds a text tower too'
out_has 'BF16'
[ -f open/open_clip_config.json ] || fails 'no open_clip_config.json'

# refusals, after which nothing is there
expect 2 convert net --to timm --output-dir timm
err_has '--output-dir timm: holds something already'
expect 2 convert net --to keras --output-dir k
expect 2 convert net --to hf
expect 3 convert own --to hf --output-dir k
err_has 'is not converted; families that are: resnet, mobilenet_v2, efficientnet_lite, clip, siglip, dinov2'
expect 4 convert nowhere --to hf --output-dir k
expect 3 convert "$corpus/torch/runs.pth" --to hf --output-dir k
err_has 'nothing was run'
# what is hostile is refused with one line, and nothing of it runs
for f in "$corpus"/torch/hostile_*.pth; do
    expect 3 convert "$f" --to hf --output-dir k
    [ "$(wc -l <"$err")" -eq 1 ] || fails "$f: more or less than one line"
done
err_has 'hostile'
[ ! -e pwned ] || fails 'something ran'
[ ! -e k ] || fails 'a refused conversion wrote'

# ONNX: one file; types and options that it has no place for are refused (values: tools/onnx_check.py)
"$make_model" unet unet || fails 'make_model unet'
expect 0 convert unet --to onnx --output-dir unet-onnx --batch-size 2
out_has 'model.onnx'
[ -s unet-onnx/model.onnx ] || fails 'no model.onnx'
expect 0 convert net --to onnx --output-dir net-onnx --layer pooled --json --dry-run
[ ! -e net-onnx ] || fails 'a dry run wrote'
expect 2 convert net --to onnx --output-dir half-onnx --dtype f16
[ ! -e half-onnx ] || fails 'a refused conversion wrote'
