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
expect 0 data check synth:16 --split held-out --json
out_has '"pictures": 10000'
out_has '"ok": true'

expect 0 data sheet synth:16 --lines 2 --columns 3 --zoom 1 --output sheet.png
out_has 'sheet.png: 56 x 38 pixels'
expect 4 data sheet synth:16 --output no/such/folder/sheet.png

expect 2 data check synht:16
err_has "synth"
expect 2 data check synth:17
mkdir one
# Pictures of one size stay as they are.
expect 0 data sheet synth:16 --lines 1 --columns 1 --zoom 1 --output one/a.png
expect 0 data check folder:one
out_has 'pictures of 20x20'
expect 0 data sheet synth:16 --lines 2 --columns 2 --zoom 1 --output one/b.png
expect 0 data check folder:one --json
out_has '"image_size": 16'
out_has '"note": "pictures of several sizes'
err_has 'resized to 16x16'

mkdir pictures
printf 'not a picture' >pictures/a.png
expect 3 data check folder:pictures
out_has 'a.png'
expect 4 data check cifar10:nowhere
