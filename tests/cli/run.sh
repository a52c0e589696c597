# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway run: forward passes of model folders, batch after batch, and every refusal.

"$make_model" unet net || fails 'make_model unet'
"$make_model" plain plain || fails 'make_model plain'
"$make_model" encoder enc || fails 'make_model encoder'
npy_noise x.npy '5, 3, 16, 16' 3840
npy t.npy '<f4' '5,' '\000\000\000\000' '\000\000\040\101' '\000\000\310\102' '\000\000\372\103' '\000\000\310\102'
npy c.npy '<i4' '5,' '\000\000\000\000' '\001\000\000\000' '\002\000\000\000' '\000\000\000\000' '\001\000\000\000'
npy one.npy '<i8' '' '\001\000\000\000\000\000\000\000'

# the same bits for any batch and thread count
expect 0 run net --input x.npy --t t.npy --class c.npy --output y.npy --threads 1 --batch-size 5
out_has 'UNet2DModel'
out_has '[5,3,16,16]'
for batch in 1 2 3 64; do
    expect 0 run net --input x.npy --t t.npy --class c.npy --output z.npy --threads 3 --batch-size $batch
    cmp -s y.npy z.npy || fails "batch $batch gave other bits"
done
expect 0 run net --input x.npy --t t.npy --class one.npy --output z.npy
cmp -s y.npy z.npy && fails 'the class changed nothing'
expect 0 run net --input x.npy --class c.npy --output z.npy
cmp -s y.npy z.npy && fails 'the time changed nothing'
expect 0 run plain --input x.npy --t t.npy --output y.npy --json
out_has '"shape": [5, 3, 16, 16]'
! grep -q 'no finite number' "$err" || fails 'a warning of numbers that are there'
# what is no number is written, and said
{ npy_head x.npy '<f4' '5, 3, 16, 16' && printf '\000\000\300\177' && tail -c 15356 x.npy; } >nan.npy
expect 0 run plain --input nan.npy --t t.npy --output z.npy
err_has "element 0 of 'y' is nan, the first that is no finite number"
npy large.npy '<i8' '' '\000\000\000\001\000\000\000\000'
expect 3 run net --input x.npy --class large.npy --output z.npy
err_has 'large.npy: element 0 is 16777216, must be an integer of less than 2^24'

mkdir pipe && cp -r plain pipe/unet && echo '{}' >pipe/model_index.json
expect 0 run pipe --input x.npy --t t.npy --output z.npy
cmp -s y.npy z.npy || fails "a pipeline's folder runs another network than its unet"

# frames behind the picture: the answer follows them
"$make_model" frames frames || fails 'make_model frames'
npy_noise frames.npy '5, 6, 16, 16' 7680
{ npy_head others.npy '<f4' '5, 6, 16, 16' && tail -c 30720 frames.npy | tr 'ab>' 'cde'; } >others.npy
expect 0 inspect frames
out_has 'leeway_condition'
expect 0 run frames --input x.npy --condition frames.npy --output y.npy --batch-size 2
expect 0 run frames --input x.npy --condition frames.npy --output z.npy --batch-size 5
cmp -s y.npy z.npy || fails 'a condition: another batch gave other bits'
expect 0 run frames --input x.npy --condition others.npy --output z.npy
cmp -s y.npy z.npy && fails 'the condition changed nothing'
expect 2 run frames --input x.npy --output z.npy
err_has "needs --condition: it has an input 'condition'"
expect 3 run frames --input x.npy --condition x.npy --output z.npy
expect 2 run plain --input x.npy --condition frames.npy --output z.npy
err_has "no input 'condition'"
cp -r frames odd && sed -i 's/"previous": 1/"previous": 3/' odd/config.json
expect 3 run odd --input x.npy --condition frames.npy --output z.npy
err_has '9 input channels are not 5 pictures'
expect 2 sample frames --n 2 --steps 2 --output s.npy
err_has 'makes pictures from frames'
expect 3 quantize frames --calibration noise --output-dir q
err_has 'its ranges depend on frames'

expect 0 run enc --input x.npy --output y.npy
out_has 'logits [5,5]'
expect 0 run enc --input x.npy --layer pooled --output y.npy
out_has 'pooled [5,32]'
expect 0 run enc --input x.npy --layer s1 --output y.npy
out_has 's1 [5,8,16,16]'

"$make_model" clip clip || fails 'make_model clip'
expect 0 run clip --input x.npy --output y.npy
out_has 'pooled [5,12]'
expect 0 run clip --input x.npy --layer tokens --output y.npy --batch-size 2
out_has 'tokens [5,5,16]'
expect 0 run clip --input x.npy --layer tokens --output z.npy --batch-size 5
cmp -s y.npy z.npy || fails 'tokens: another batch gave other bits'
expect 0 run clip --input x.npy --layer cls --output y.npy
out_has 'cls [5,16]'
expect 0 run clip --input x.npy --layer s1 --output y.npy
out_has 's1 [5,16,2,2]'

expect 2 run net --input x.npy --t t.npy --output y.npy
err_has 'needs --class'
expect 2 run plain --input x.npy --class c.npy --output y.npy
err_has "no input 'class'"
expect 2 run enc --input x.npy --t t.npy --output y.npy
expect 2 run enc --input x.npy --layer s9 --output y.npy
err_has "no output 's9': there are logits, pooled, s0, s1, s2, s3"
for several in pooled,s1 '*'; do
    expect 2 run enc --input x.npy --layer "$several" --output y.npy
    err_has 'an .npy holds one output'
done
expect 2 run net --input x.npy
err_has '--output'
expect 2 run net --input x.npy --output y.npy --batch-size 0
npy big.npy '<i4' '5,' '\003\000\000\000' '\000\000\000\000' '\000\000\000\000' '\000\000\000\000' '\000\000\000\000'
expect 3 run net --input x.npy --class big.npy --output y.npy
err_has 'class 3 is not in 0 .. 2'
npy frac.npy '<f4' '1,' '\000\000\000\077'
expect 3 run net --input x.npy --class frac.npy --output y.npy
err_has 'must be an integer'
npy never.npy '<f4' '1,' '\000\000\300\177'
expect 3 run plain --input x.npy --t never.npy --output never_y.npy
err_has 'never.npy: element 0 is nan, must be a finite number'
npy ever.npy '<f4' '5,' '\000\000\000\000' '\000\000\200\177' '\000\000\000\000' '\000\000\000\000' '\000\000\000\000'
expect 3 run plain --input x.npy --t ever.npy --output never_y.npy
err_has 'ever.npy: element 1 is inf, must be a finite number'
[ -e never_y.npy ] && fails 'wrote a result of times that are no numbers'
npy three.npy '<f4' '3,' '\000\000\000\077' '\000\000\000\077' '\000\000\000\077'
expect 3 run plain --input x.npy --t three.npy --output y.npy
err_has 'three.npy is [3]'
npy_noise x8.npy '1, 3, 8, 8' 192
expect 3 run plain --input x8.npy --output y.npy
err_has '8x8'
npy_noise x4.npy '1, 4, 16, 16' 1024
expect 3 run plain --input x4.npy --output y.npy
err_has 'takes 3 channels'
npy_noise flat.npy '3, 256' 768
expect 3 run plain --input flat.npy --output y.npy
npy empty.npy '<f4' '0, 3, 16, 16'
expect 3 run plain --input empty.npy --output y.npy
expect 4 run plain --input none.npy --output y.npy
expect 4 run none --input x.npy --output y.npy
expect 4 run plain --input x.npy --output no/such/y.npy

# damaged model folders
mkdir bare && expect 3 run bare --input x.npy --output y.npy
cp -r plain cut && head -c 5000 plain/diffusion_pytorch_model.safetensors >cut/diffusion_pytorch_model.safetensors
expect 3 run cut --input x.npy --output y.npy
cp -r plain other && cp enc/model.safetensors other/diffusion_pytorch_model.safetensors
expect 3 run other --input x.npy --output y.npy
cp -r plain noweights && rm noweights/diffusion_pytorch_model.safetensors
expect 3 run noweights --input x.npy --output y.npy
cp -r plain words && printf 'no json' >words/config.json
expect 3 run words --input x.npy --output y.npy
cp -r plain foreign && printf '{"_class_name": "VQModel"}' >foreign/config.json
expect 3 run foreign --input x.npy --output y.npy
err_has 'VQModel'
