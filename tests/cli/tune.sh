# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Measured ways of computing convolutions: written, used only when asked for, refused when they are another machine's.

expect 2 bench --tune t.json --filter nothing
err_has 'no convolution has such a name'
expect 0 bench --tune t.json --filter forward.16_16@32 --samples 3 --threads 1
out_has 'faster than as shipped'
grep -q '"tuned_version": 1' t.json || fails 't.json lacks its version'
for other in '--tuned t.json' unet '--save s.json' '--csv s.csv' '--compare t.json'; do
    # shellcheck disable=SC2086 # an option and its value
    expect 2 bench --tune u.json $other
    err_has 'give one of them'
done
expect 2 info --tuned t.json --conv direct
err_has 'give one of them'
for only in --dry-run --list; do
    expect 0 bench --tune u.json --filter 16_16@ $only
    out_has 'f32.forward.16_16@32'
    [ ! -e u.json ] || fails "--tune $only writes"
done
expect 0 bench --tune u.json --filter f32.forward.16_16@32 --samples 1 --threads 1 --json
out_has '"tuned_version": 1'
cmp -s "$out" u.json || fails '--tune --json prints another table than it writes'

# A table of choices that no rule makes: other bits, at any number of threads; without it the default's.
"$make_model" unet net || fails 'make_model'
npy_noise x.npy '2, 3, 16, 16' 1536
npy t.npy '<f4' '2,' '\000\000\040\101' '\000\000\310\102'
npy one.npy '<i8' '' '\001\000\000\000\000\000\000\000'
row() {
    printf '{"type": "f32", "pass": "forward", "in": %d, "out": %d, "height": %d, "width": %d, "tile": 2, "ms": 1, ' \
        "$1" "$2" "$3" "$3"
    printf '"shipped": 0, "shipped_ms": 2}'
}
{
    sed -n '/convolutions/q;p' t.json
    printf '"convolutions": ['
    comma=
    for in in 3 8 16 24 32 48 64; do for out_channels in 3 8 16 24 32 64; do for side in 4 8 16; do
        printf '%s' "$comma"
        row $in $out_channels $side
        comma=,
    done; done; done
    printf ']}'
} >made.json
expect 0 run net --input x.npy --t t.npy --class one.npy --output rule.npy
expect 0 run net --input x.npy --t t.npy --class one.npy --output made.npy --tuned made.json --verbose
err_has '126 convolutions, 126 of them otherwise than shipped'
# What is counted is what this program's rule would do otherwise, whatever the file says of another one's.
sed 's/"shipped": 0/"shipped": 2/g' made.json >older.json
expect 0 info --tuned older.json --verbose
err_has '126 convolutions, 126 of them otherwise than shipped'
cmp -s rule.npy made.npy && fails '--tuned changes nothing'
expect 0 run net --input x.npy --t t.npy --class one.npy --output again.npy --tuned made.json --threads 3
cmp -s made.npy again.npy || fails '--tuned: threads change bits'
expect 0 run net --input x.npy --t t.npy --class one.npy --output again.npy
cmp -s rule.npy again.npy || fails 'the default changed'
expect 0 profile net --runs 1 --no-compare-precisions --no-progress
out_has 'ways of computing 3x3 convolutions: as shipped'
expect 0 profile net --runs 1 --no-compare-precisions --no-progress --tuned made.json
out_has 'ways of computing 3x3 convolutions: made.json'
expect 0 profile net --runs 1 --no-compare-precisions --no-progress --tuned made.json --json
out_has '"tuned": "made.json"'
few='train encoder --data synth:16 --limit 16 --width 8 --stages 2 --blocks 1 --batch-size 8 --steps 1 --no-progress'
# shellcheck disable=SC2086
{
    expect 0 $few --output-dir shipped
    expect 0 $few --output-dir made --tuned made.json
}
grep -q '"tuned": null' shipped/env.json || fails 'a run as shipped names a file'
grep -q '"tuned": "made.json"' made/env.json || fails 'a run does not say by which file it was computed'

sed 's/"cpu": "[^"]*"/"cpu": "another"/' t.json >other.json
expect 6 info --tuned other.json
err_has 'was measured on another'
sed 's/"tile": [0-9]/"tile": 3/' t.json >three.json
expect 3 info --tuned three.json
err_has 'there are no tiles of 3'
sed 's/"tile"/"tiles"/' t.json >word.json
expect 3 info --tuned word.json
err_has 'tiles'
printf '{' >cut.json
expect 3 info --tuned cut.json
expect 4 info --tuned nothing.json
