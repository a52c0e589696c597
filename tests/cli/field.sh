# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway field: arrays written by hand (no Python needed), shapes, weights and every refusal.

zero='\000\000\000\000'
one='\000\000\200\077'
two='\000\000\000\100'
three='\000\000\100\100'
nan='\000\000\300\177'

npy x.npy '<f4' '2, 2' "$zero" "$one" "$one" "$zero"
npy p.npy '<f4' '3, 2' "$two" "$three" "$three" "$two" "$two" "$two"
npy u.npy '<f4' '1, 2' "$three" "$zero"
npy w.npy '<f4' '1,' "$two"
npy w3.npy '<f4' '3,' "$two" "$two" "$two"

expect 0 field --gen x.npy --pos p.npy --temperatures 0.2 --output F.npy --json --threads 1
out_has '"S": 1.928'
out_has '"loss": 1.0'
out_has '"raw_mean_v2": ['
grep -v work_bytes "$out" >first # memory grows with the threads, nothing else may
expect 0 inspect F.npy
out_has '[2,2]'
# the same words however they are spelt, on any number of threads
expect 0 field --gen x.npy --pos=p.npy --temps 0.2 --output F2.npy --json --threads 3
grep -v work_bytes "$out" | cmp -s - first || fails 'another thread count gave other numbers'
cmp -s F.npy F2.npy || fails 'another thread count gave another field'
expect 0 field --gen x.npy --pos p.npy --disable-normalize-over-x --temps 0.2 --json
cmp -s "$out" first && fails 'rows only changed nothing'
expect 0 field --gen x.npy --pos p.npy --no-normalize-over-x --temps 0.2 --json
cmp -s "$out" first && fails 'rows only changed nothing'
expect 0 field --gen x.npy --pos p.npy --drift-variant plain
out_has 'S      1'
expect 0 field --gen x.npy --pos p.npy --drift-variant tau-times-dim
err_has 'parity'
expect 0 field --gen x.npy --pos p.npy --temps 0.2 --field-precision bf16
expect 2 field --gen x.npy --pos p.npy --temps 0.2 --field-precision bf16 --precision f64
err_has 'exclude each other'

# two slots, the second with everything doubled: with a scale of its own each has the same field
four='\000\000\200\100'
six='\000\000\300\100'
npy x4.npy '<f4' '1, 2, 2, 2' "$zero" "$one" "$zero" "$two" "$one" "$zero" "$two" "$zero"
npy p4.npy '<f4' '1, 2, 2, 2' "$two" "$three" "$four" "$six" "$three" "$two" "$six" "$four"
for scale in key slot; do
    own=''
    [ $scale = key ] || own=--disable-shared-location-normalization
    # shellcheck disable=SC2086
    expect 0 field --gen x4.npy --pos p4.npy --temps 0.2 $own --output F4.npy
    od -A n -v -t f4 -w16 -j 128 F4.npy |
        awk '{ for (c = 1; c < 3; c++) { d = $c - $(c + 2); if (d * d > 1e-4 * $c * $c) far = 1 } } END { print far + 0 }' \
            >"far_$scale"
done
[ "$(cat far_key far_slot | tr -d '\n')" = 10 ] || fails 'a scale of each slot is not that of the slot alone'
expect 2 field --gen x4.npy --pos p4.npy --drift-variant plain --disable-shared-location-normalization
err_has 'no scale of its own'

# weights: a number, an array, none
expect 0 field --gen x.npy --pos p.npy --uncond u.npy --uncond-weight 2 --json
cp "$out" number
expect 0 field --gen x.npy --pos p.npy --uncond u.npy --uncond-weight w.npy --json
cmp -s "$out" number || fails 'weight 2 and an array of 2 differ'
expect 0 field --gen x.npy --pos p.npy --uncond u.npy --json
cmp -s "$out" number && fails 'weight 0 and weight 2 agree'
expect 0 field --gen x.npy --pos p.npy --precision f64 --output D.npy
expect 0 inspect D.npy
out_has 'F64'

# numbers whose distances leave f32: refused, and computed in f64
huge='\312\362\111\161' # 1e30
npy h.npy '<f4' '2, 2' "$huge" "$one" "$one" "$zero"
expect 3 field --gen h.npy --pos p.npy --temps 0.2
err_has '--precision f64'
expect 3 field --gen x.npy --pos p.npy --uncond h.npy --temps 0.2
expect 0 field --gen h.npy --pos p.npy --temps 0.2 --precision f64

expect 2 field --gen x.npy
err_has '--pos'
expect 2 field --gen x.npy --pos p.npy --temperatures 0
expect 2 field --gen x.npy --pos p.npy --temperatures 1,2,3,4,5,6,7,8,9
expect 2 field --gen x.npy --pos p.npy --drift-variant oficial
expect 2 field --gen x.npy --pos p.npy --uncond-weight 1
err_has 'without --uncond'
expect 2 field --gen x.npy --pos p.npy --uncond u.npy --uncond-weight none.npy
err_has 'neither a number nor a file'
expect 2 field --gen x.npy --pos p.npy --uncond u.npy --uncond-weight=-1
err_has 'must not be negative'
expect 3 field --gen x.npy --pos p.npy --uncond u.npy --uncond-weight w3.npy
err_has 'w3.npy is [3]'
expect 4 field --gen none.npy --pos p.npy
err_has 'none.npy'
npy wide.npy '<f4' '1, 3' "$one" "$one" "$one"
expect 3 field --gen x.npy --pos wide.npy
err_has 'wide.npy is [1,3], x.npy is [2,2]'
npy rank.npy '<f4' '1, 1, 2' "$one" "$one"
expect 3 field --gen x.npy --pos rank.npy
npy flat.npy '<f4' '2,' "$one" "$one"
expect 3 field --gen flat.npy --pos p.npy
npy empty.npy '<f4' '0, 2'
expect 3 field --gen x.npy --pos empty.npy
npy bad.npy '<f4' '1, 2' "$nan" "$one"
expect 3 field --gen x.npy --pos bad.npy
err_has 'bad.npy: element 0 is nan'
head -c 130 p.npy >cut.npy
expect 3 field --gen x.npy --pos cut.npy
expect 4 field --gen x.npy --pos p.npy --output no/such/F.npy

# more groups than the root of what 32 bits count
npy_noise many.npy '50000, 1, 1' 50000
expect 0 field --gen many.npy --pos many.npy --temperatures 0.2 --output many_f.npy --json
