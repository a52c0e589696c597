# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway data: sources, a check, a sheet, damaged and missing data.

LW_CACHE=$PWD/cache
export LW_CACHE
expect 0 data list
out_has 'cifar10:PATH'
expect 0 data list --json
out_has '"name": "synth"'

expect 0 data check synth:16
out_has '50000 train pictures of 16x16, 10 classes'

# One byte of one picture in the cache is damaged: a check says so once and mends it.
printf '\125' | dd of="$(ls cache/synth-16-*.data)" bs=1 seek=9999 conv=notrunc 2>dd.log
expect 3 data check synth:16
out_has 'damaged data cache: pixels do not fit their hash'
expect 0 data check synth:16

expect 0 data check synth:16 --split held-out --json
out_has '"pictures": 10000'
out_has '"ok": true'

expect 0 data sheet synth:16 --lines 2 --columns 3 --zoom 1 --output sheet.png
out_has 'sheet.png: 56 x 38 pixels'
expect 4 data sheet synth:16 --output no/such/folder/sheet.png

expect 2 data check synht:16
err_has "synth"
expect 2 data check synth:17
expect 2 data check ''
err_has 'spec: is empty'
expect 2 data check :16
err_has 'a source must stand before the colon'
# What is cached, and away with it; links and other files stay.
expect 2 data cache list nonsense
expect 0 data cache list
out_has 'synth:16 train rows 0+50000, 50000 of 16x16'
out_has "files, "
echo precious >cache/notes
ln -s ../cache/notes cache/synth-16-0123456789abcdef.data
expect 0 data cache clear --older-than 1
out_has 'removed 0 files'
expect 2 data cache clear --dry-run
err_has 'has none; nothing was done'
expect 0 data cache clear --json
out_has '"data": "synth:16 train rows 0+50000"'
expect 0 data cache list --json
out_has '"bytes": 0'
[ "$(ls cache)" = "notes
synth-16-0123456789abcdef.data" ] || fails "cache clear: $(ls cache)"
# Nowhere to cache.
(LW_CACHE=$(printf '%5000d' 1 | tr ' ' x) && export LW_CACHE && expect 0 data sheet synth:16 --output sheet.png &&
    err_has 'not cached: the path of the cache is longer than a path can be' &&
    expect 2 data cache list && err_has 'there is no cache') || exit 1
(unset LW_CACHE HOME XDG_CACHE_HOME && expect 0 data sheet synth:16 --output sheet.png &&
    err_has 'not cached: there is no LW_CACHE') || exit 1

mkdir one
# Pictures of one size stay as they are.
expect 0 data sheet synth:16 --lines 1 --columns 1 --zoom 1 --output one/a.png
expect 0 data check folder:one
out_has 'pictures of 20x20'
expect 0 data sheet synth:16 --lines 2 --columns 2 --zoom 1 --output one/b.png
expect 0 data check folder:one --json
out_has '"image_size": 16'
out_has '"note": "pictures of several sizes'
out_has 'resized to 16x16'
[ -s "$err" ] && fails 'a check says its note twice'
# As a network wants them.
echo '{"image_processor_type": "ViTImageProcessor", "size": {"height": 12, "width": 20}}' >preprocessor_config.json
expect 0 data check folder:one --preparation . --json
out_has '"height": 12'
out_has '"width": 20'
expect 0 data sheet folder:one --preparation preprocessor_config.json --lines 1 --columns 1 --zoom 1 --output prepared.png
out_has '24 x 16 pixels'
expect 2 data check folder:one --preparation . --image-size 16
expect 4 data check folder:one --preparation nowhere
expect 0 data cache list
out_has 'prepared: squash 20x12, bilinear (pillow)'

mkdir pictures
printf 'not a picture' >pictures/a.png
expect 3 data check folder:pictures
out_is 'pictures/a.png: neither PNG, JPEG, BMP nor WebP'
expect 3 data check folder:pictures --on-error skip
cp pictures/a.png one/broken.png
expect 3 data check folder:one --split all
expect 0 data check folder:one --split all --on-error skip --json
out_has '"pictures": 2'
out_has '"skipped": 1'
err_has 'left out: one/broken.png: neither PNG, JPEG, BMP nor WebP'
rm one/broken.png
echo '{"num_images": 1, "paths": ["one/b.png"]}' >list.json
expect 0 data check manifest:list.json
out_has '1 train pictures of 38x38'
expect 0 data check synth:16 --num-images 7 --seed 3
out_has '7 train pictures'
expect 2 data check folder:one --num-images 2
# A training with a broken picture: ends, or goes on without it.
mkdir -p broken/x broken/y
cp one/a.png broken/x/1.png && cp one/a.png broken/x/2.png && cp one/a.png broken/y/1.png && cp one/a.png broken/y/2.png
printf 'not a picture' >broken/x/0.png
set -- train encoder --objective classify --data folder:broken --image-size 16 --steps 1 --batch-size 2
expect 3 "$@" --output-dir fails
err_has 'broken/x/0.png'
expect 0 "$@" --on-error skip --output-dir skips
err_has '1 picture cannot be read and is left out; the first: broken/x/0.png'
expect 4 data check cifar10:nowhere

# rows as arrays and pictures, and arrays as data
expect 0 data export synth:16 --num-images 30 --output export.npz
out_has '30 pictures of 16x16'
(
    trap '' XFSZ
    ulimit -f 8
    exec "$program" data export synth:16 --num-images 30 --output full.npz
) >"$out" 2>"$err"
[ $? -eq 4 ] || fails "a full disk: $(cat "$err")"
err_has 'full.npz: cannot write: File too large'
expect 0 data check tensor:export.npz --split all --json
out_has '"pictures": 30'
out_has '"labelled": true'
expect 0 data export tensor:export.npz --output export/dir --json
out_has '"pictures": 27'
expect 2 data export tensor:export.npz --output export/dir
err_has 'holds something already'
expect 0 data check folder:export/dir --split all
expect 0 data sheet tensor:export.npz --output sheet_of_array.png
expect 3 data export "tensor:$corpus/npy/f4_v1.npy" --output x.npy
err_has 'pictures are U8'
[ ! -e x.npy ] || fails 'a refused export wrote'
expect 4 data export tensor:none.npy --output x.npy
expect 2 data export synth:16
