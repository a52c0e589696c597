# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# leeway fid: every kind of set, its contract, and every refusal.

LW_CACHE=$PWD/cache
export LW_CACHE
"$make_model" encoder enc || fails 'make_model encoder'
"$make_model" clip clip || fails 'make_model clip'
"$make_model" plain net || fails 'make_model plain'

value() { # KEY: the first number of that name in $out
    sed -n "s/.*\"$1\": \([^,]*\),*$/\1/p" "$out" | head -n 1
}
# same TEXT: all numbers of the last call are those of this text
numbers() {
    grep -E '"(frechet|kid|kid_sd|precision|recall|sliced_wasserstein|inception_score)":' "$out"
}
all='--precision-recall --kid --sw --is --json'

# data against data, and the same value at any batch and number of threads
# shellcheck disable=SC2086
{
    expect 0 fid synth:16 synth:16 --split-a held-out --split-b train --num-images 100 --encoder enc $all --batch-size 1 --threads 1
    out_has '"name": "Frechet distance, leeway"'
    out_has '"encoder": "leeway"'
    out_has '"encoder_hash": "'
    out_has '"resize": "none"'
    out_has '"preparation": "byte / 127.5 - 1, pictures of 16x16"'
    out_has '"dtype": "f32"'
    out_has '"count_b": 100'
    numbers >want
    frechet=$(value frechet)
    [ "$(wc -l <want)" -eq 7 ] || fails "$(cat want): not seven numbers"
    for how in '--batch-size 64 --threads 2' '--batch-size 7 --threads 5'; do
        expect 0 fid synth:16 synth:16 --split-a held-out --split-b train --num-images 100 --encoder enc $all $how
        numbers | cmp -s - want || fails "$how: other numbers"
    done
}

# the same pictures as features of `leeway encode`, as statistics of both formats
for kind in npz npy safetensors; do
    expect 0 encode enc --data synth:16 --split held-out --num-images 100 --output "a.$kind"
    expect 0 encode enc --data synth:16 --split train --num-images 100 --output "b.$kind"
    expect 0 fid "a.$kind" "b.$kind" --precision-recall --kid --sw --json
    out_has '"name": "Frechet distance, leeway"'
    [ "$(value frechet)" = "$frechet" ] || fails "a.$kind: $(value frechet), not $frechet"
    out_has '"layer": "pooled"'
done
# subsets that are all of both sets are one subset; of more pictures they differ
expect 0 fid a.npy b.npy --kid
out_has 'note: KID: every subset is all 100 pictures of A and of B: it has no deviation'
grep '^KID' "$out" | grep -q deviation && fails 'a deviation of one subset'
expect 0 fid a.npy b.npy --kid --json
out_has '"kid_sd": null'
expect 0 encode enc --data synth:16 --split train --num-images 40 --output few.npy
expect 0 fid a.npy few.npy --kid
grep '^KID' "$out" | grep -q 'deviation .*(subsets of 40)' || fails 'no deviation of subsets that differ'
expect 0 fid a.npy synth:16 --split-b train --num-images 100 --encoder enc
out_has 'Frechet distance, leeway'
out_has 'contract resize: none'

# what pictures are measured in and against is looked at before hours of making them
soon() { # CODE WORDS..
    want=$1
    shift
    last="leeway fid $*"
    timeout 60 "$program" fid net "$@" --num-images 400000 --steps 1000 >"$out" 2>"$err"
    code=$?
    [ $code -eq "$want" ] || fails "$last: exit code $code"
}
soon 4 cifar10:nowhere --encoder enc
soon 2 synth:16 --encoder enc,nowhere
soon 2 synth:16 --split-b held-out --encoder clip
err_has '400000 pictures are to be drawn, but there are 10000'
soon 2 synth:16 --split-b held-out --encoder enc
err_has '400000 pictures are to be drawn, but there are 10000'
soon 2 synth:16 --probe nowhere
soon 4 cifar10:nowhere --battery enc
expect 2 fid net synth:16 --split-b held-out --num-images 10001 --encoder clip --dry-run
err_has '10001 pictures are to be drawn, but there are 10000'

# pictures of a generator: made here, in an array of floats, in files
expect 0 sample net --n 40 --steps 1 --seed 3 --output pictures
expect 0 sample net --n 40 --steps 1 --seed 3 --output pictures.npy
expect 0 fid net synth:16 --split-b held-out --num-images 40 --steps 1 --seed 3 --encoder clip --json
made=$(value frechet)
out_has '"kind": "generator"'
out_has '"resize": "pillow"'
expect 0 fid pictures.npy synth:16 --split-b held-out --num-images 40 --seed 3 --encoder clip --json
[ "$(value frechet)" = "$made" ] || fails "an array of the same samples: $(value frechet), not $made"
expect 0 fid pictures synth:16 --split-b held-out --num-images 40 --seed 3 --encoder clip --json
case $(value frechet) in
"${made%???}"*) ;; # the same rows in another order
*) fails "a folder of the same samples: $(value frechet), not $made" ;;
esac

# statistics: saved, used again, refused where they are of something else
ref="synth:16 --split-b train --num-images 100"
for kind in npz safetensors; do
    # shellcheck disable=SC2086
    expect 0 fid a.npy $ref --encoder enc --save-stats "ref.$kind"
    out_has "ref.$kind: statistics of B"
    expect 0 fid synth:16 "ref.$kind" --split-a held-out --num-images 100 --encoder enc --json
    [ "$(value frechet)" = "$frechet" ] || fails "ref.$kind: $(value frechet), not $frechet"
    out_has '"count_b": 100'
done
expect 0 fid a.npy ref.npz
out_has 'Frechet distance, leeway'
expect 0 fid a.npy --save-stats a-stats.npz
expect 0 fid a-stats.npz ref.npz --json
[ "$(value frechet)" = "$frechet" ] || fails "statistics of both: $(value frechet), not $frechet"
expect 0 inspect ref.npz
out_has 'sigma'
"$make_model" encoder other || fails 'make_model encoder'
head -c 4 /dev/zero | dd of=other/model.safetensors bs=1 conv=notrunc \
    seek=$(($(wc -c <other/model.safetensors) - 4)) 2>/dev/null
expect 3 fid synth:16 ref.npz --num-images 100 --encoder other
err_has "encoder_hash differs: '"
err_has '--force'
expect 0 fid synth:16 ref.npz --num-images 100 --encoder other --force
[ "$(grep -c 'note: forced: encoder_hash differs' "$out")" -eq 1 ] || fails 'forced: not noted once'
expect 3 fid synth:16 ref.npz --num-images 100 --encoder enc --precision bf16
err_has "dtype differs: 'bf16' of the encoder, 'f32' of ref.npz"
expect 3 fid synth:16 ref.npz --num-images 100 --encoder clip
err_has 'widths differ'
expect 0 fid pictures --encoder clip --save-stats pictures.npz
expect 3 fid pictures pictures.npz --encoder clip --resize float-aa
err_has "resize differs: 'float-aa' of the encoder, 'pillow' of pictures.npz"
expect 2 fid pictures pictures.npz --encoder enc --resize pillow
err_has 'takes pictures as they are'

# files that do not say what made them
expect 0 fid "$corpus/moments/clean_fid.npz" "$corpus/moments/pytorch_fid.npz"
out_has 'clean_fid.npz does not say what made its features'
expect 3 fid "$corpus/moments/clean_fid.npz" ref.npz
err_has 'widths differ: '
expect 3 fid "$corpus/moments/two.safetensors" ref.npz
err_has 'name one of them: test, train'
expect 3 fid "$corpus/moments/two.safetensors#nothing" ref.npz
err_has 'there are test.cov [2,2], test.mu [2]'
expect 0 fid "$corpus/moments/two.safetensors#train" "$corpus/moments/clean_fid.npz"
expect 3 fid "$corpus/moments/nan.npz" "$corpus/moments/clean_fid.npz"

# measures that a set does not have
expect 2 fid a.npy ref.npz --kid
err_has '--kid needs the features of every picture, ref.npz has mean and covariance only'
expect 2 fid a.npy b.npy --is
err_has '--is: A (a.npy) has no pictures'
expect 2 fid synth:16 synth:16 --num-images 20 --encoder enc,enc
err_has '--encoder enc is there twice'
expect 2 fid synth:16 synth:16 --num-images 20 --encoder clip --is
err_has '--is: clip has no classes'

# few pictures, and pictures that are none
expect 0 fid synth:16 synth:16 --split-a held-out --num-images 20 --encoder enc --json
out_has 'has rank 19 of 32: the distance is exact for it'
expect 0 train drift --data synth:16 --limit 64 --base-channels 8 --channel-mult 1 --num-res-blocks 1 --norm-groups 4 \
    --attn-resolutions 16 --groups 2 --negatives-per-group 4 --positives-per-group 8 --unconditional-per-group 2 \
    --alpha-dist uniform --noise-shape 2x2 --latent-dim 4 --steps 4 --learning-rate 1e-2 --output-dir guided
expect 0 fid guided synth:16 --num-images 20 --encoder enc --weights model --alpha 3
out_has 'strength of guidance 3'
expect 0 fid guided synth:16 --num-images 20 --encoder enc --weights model --alpha 3 --json
out_has '"alpha": 3'
strong=$(value frechet)
expect 0 fid guided synth:16 --num-images 20 --encoder enc --weights model --json
[ "$strong" != "$(value frechet)" ] || fails 'the strength of guidance changes nothing'
expect 2 fid guided synth:16 --num-images 20 --encoder enc --alpha 5
err_has 'strengths of guidance from 1 to 4'
expect 2 fid synth:16 synth:16 --num-images 20 --encoder enc --alpha 2
err_has 'no set is a generator'
expect 0 train flow --data synth:16 --limit 64 --base-channels 8 --channel-mult 1 --num-res-blocks 1 --norm-groups 4 \
    --attn-resolutions 16 --batch-size 8 --class-dropout-prob 0.2 --steps 4 --learning-rate 1e-2 --output-dir told
few='--num-images 20 --encoder enc --weights model --steps 2'
expect 0 fid told synth:16 $few --guidance-scale 3
out_has 'guidance scale 3'
expect 0 fid told synth:16 $few --guidance-scale 3 --json
out_has '"guidance_scale": 3'
strong=$(value frechet)
expect 0 fid told synth:16 $few --json
grep -q guidance_scale "$out" && fails 'a guidance scale that nobody asked for'
[ "$strong" != "$(value frechet)" ] || fails 'the guidance scale changes nothing'
expect 2 fid guided synth:16 $few --guidance-scale 2
err_has 'say --alpha'
expect 2 fid synth:16 synth:16 $few --guidance-scale 2
err_has '--guidance-scale 2: no set is a generator'
expect 2 fid synth:16 synth:16 --num-images 1 --encoder enc
err_has 'A: synth:16 is one picture: a covariance needs two at least'
nan='\000\000\300\177'
one='\000\000\200\077'
zero='\000\000\000\000'
npy nan.npy '<f4' '2, 3, 1, 1' $zero $zero $zero $one $nan $one
expect 3 fid nan.npy nan.npy --encoder clip
err_has 'A: nan.npy: picture 1 has a number that is nan'
npy far.npy '<f4' '2, 3, 1, 1' $zero $zero $zero $one '\000\000\177\103' $one
expect 3 fid far.npy far.npy --encoder clip
err_has 'picture 1 has a 255: pictures of floats are in [-1,1]'
npy two.npy '|u1' '2, 1, 1, 3' abc xyz
expect 0 fid two.npy two.npy --encoder clip
out_has 'Frechet distance, clip                   0'
npy gray.npy '|u1' '2, 1, 1, 1' ab
expect 0 fid gray.npy two.npy --encoder clip
out_has 'its pictures are gray: clip, a network of RGB, sees the channel three times'
npy five.npy '|u1' '1, 2, 2, 5' abcdefghijklmnopqrst
expect 3 fid five.npy two.npy --encoder clip
err_has 'five.npy: arr_0 of U8 [1,2,2,5] are no pictures'
npy nan.npy '<f4' '2, 2' $zero $zero $one $nan
expect 3 fid nan.npy nan.npy
err_has 'nan.npy: feature 1 of row 1 is nan'

# a folder of several sizes: resized one by one, as bytes or in floats; not where they stay as they are
mkdir mixed
cp pictures/*.png mixed
cp "$corpus"/png/*.png mixed 2>/dev/null
expect 0 fid pictures mixed --on-error skip --encoder clip
# what resizes in floats gets the pictures themselves, whole and at their size, from any source
npy wide.npy '|u1' '20, 24, 48, 3'
tail -c 69120 pictures.npy >>wide.npy
expect 0 fid wide.npy wide.npy --encoder clip --resize float-aa --json
same=$(value frechet)
expect 0 fid wide.npy tensor:wide.npy --split-b all --encoder clip --resize float-aa --json
awk "BEGIN { exit !($(value frechet) < 1e-9 && $same < 1e-9) }" || fails "tensor: $(value frechet), not $same"
expect 0 data export tensor:wide.npy --split all --output squares
tar cf squares.tar squares
expect 0 fid squares webdataset:squares.tar --split-b all --encoder clip --resize float-aa --json
awk "BEGIN { exit !($(value frechet) < 1e-9) }" || fails "webdataset: $(value frechet) of the same pictures"
expect 0 fid pictures mixed --on-error skip --encoder clip --resize float-aa --json
out_has '"resize": "float-aa"'

# two networks of one name
expect 0 fid synth:16 synth:16 --split-b train --num-images 20 --encoder enc,other
grep -q 'Frechet distance, leeway [0-9a-f]' "$out" || fails 'two rows have one name'

# what is asked for
expect 2 fid pictures
err_has 'one set has no distance'
expect 2 fid pictures synth:16
err_has '--encoder SPEC'
expect 2 fid net synth:16 --encoder enc
err_has 'A: net is a generator: --num-images N'
expect 4 fid nothing synth:16 --encoder enc
err_has 'A: nothing: no such file or folder, and no data spec'
expect 2 fid enc/config.json synth:16 --encoder enc
err_has 'a set is a folder, a data spec, a run, or a file of arrays'
expect 2 fid pictures --encoder enc,clip --save-stats x.npz
err_has 'one encoder, 2 are named'
expect 2 fid pictures --encoder enc --save-stats x.txt
err_has 'ends in .npz or .safetensors'
expect 3 fid enc/model.safetensors synth:16 --encoder enc
err_has 'neither pictures'
head -c 300 ref.npz >cut.npz
expect 3 fid cut.npz synth:16 --encoder enc
expect 0 fid net synth:16 --num-images 50 --encoder enc,clip --dry-run
out_has 'A  net: 50 pictures of 16x16, to be made'
out_has 'about '
expect 0 fid net synth:16 --num-images 50 --encoder enc,clip --dry-run --json
out_has '"predicted_seconds": '

# a battery's verdict instead of one network's distance
expect 0 fid synth:16 synth:16 --split-a train --split-b held-out --num-images 120 --battery enc
out_has 'no verdict on cheating: 1 network, 3 are needed'
both='--split-a train --split-b held-out --num-images 120 --battery enc,other,clip'
# shellcheck disable=SC2086
{
    expect 0 fid synth:16 synth:16 $both --threads 2
    out_has 'verdict of 3 networks of 2 families'
    cp "$out" first
    expect 0 fid synth:16 synth:16 $both --threads 1
    cmp -s first "$out" || fails 'another verdict by one thread'
    expect 0 fid synth:16 synth:16 $both --encoder enc --json
    out_has '"verdict": {'
    out_has '"frechet": '
    expect 0 fid pictures.npy synth:16 --split-b held-out --battery enc,other,clip
    expect 0 fid synth:16 synth:16 $both --dry-run
    out_has 'verdict: about'
    expect 2 fid a.npz synth:16 --split-b held-out --battery enc,other,clip
    err_has 'has no pictures that networks could look at'
    expect 2 fid synth:16 --battery enc,other,clip --save-stats x.npz
    err_has 'name B'
    expect 2 fid synth:16 pictures.npy --battery enc,other,clip
    err_has 'B must be data'
}

# linear probes name the classes asked for: of data, of a generator; what has no classes is refused
probe='--num-images 60 --probe enc,other,clip --probe-images 200'
net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --heads 2 --norm-groups 4'
# shellcheck disable=SC2086
{
    expect 0 fid synth:16 synth:16 --split-a held-out $probe --threads 2
    out_has 'fitted on 200 real pictures; 60 pictures of A, 60 real held-out ones'
    out_has 'at least 2 of 3'
    # both columns are of the same pictures: A is what real pictures are drawn from
    sed -n 's/^\(enc\|other\|clip\) .* \([0-9.]*\) % (.*real *\([0-9.]*\) %$/\2 \3/p' "$out" >shares
    [ "$(wc -l <shares)" -ge 2 ] || fails 'no shares'
    while read -r made real; do [ "$made" = "$real" ] || fails "$made of A, $real of the same pictures"; done <shares
    cp "$out" first
    expect 0 fid synth:16 synth:16 --split-a held-out $probe --threads 1
    cmp -s first "$out" || fails 'another share by one thread'
    expect 0 train ddpm --data synth:16 --limit 64 --no-progress $net --batch-size 4 --steps 1 --output-dir made
    expect 0 fid made synth:16 $probe --steps 2 --json
    out_has '"named_real": {'
    out_has '"needed": 2'
    expect 0 fid made synth:16 $probe --steps 2 --dry-run
    # kin of an encoder that A was trained with is named
    expect 0 train drift --data synth:16 --limit 64 --no-progress $net --groups 2 --negatives-per-group 4 \
        --positives-per-group 8 --noise-shape 2x2 --latent-dim 4 --encoder enc --steps 1 --output-dir taught
    expect 0 fid taught synth:16 $probe
    out_has '  left out: enc: it has the weights of enc; A was trained with enc'
    expect 0 fid taught synth:16 $probe --json
    out_has '"left_out": ['
    out_has '"why": "it has the weights of enc'
    expect 2 fid pictures.npy synth:16 --probe enc
    err_has 'nobody knows what classes'
    expect 2 fid synth:16 pictures.npy --probe enc
    err_has 'B must be labelled data'
    expect 2 fid synth:16 --probe enc --save-stats x.npz
    err_has 'name B'
}
