# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway profile: a small model folder, its tables, page and JSON.

"$make_model" unet model || fails 'make_model'
expect 0 profile model --layers --runs 2 --output page.html --no-progress
out_has 'by op'
out_has 'by layer'
out_has 'down_blocks.0.resnets.0'
out_has 'slowest steps'
out_has 'values alive'
out_has 'f32-unfused'
grep -q '<svg' page.html || fails 'page.html has no plots'
grep -q 'Memory of values' page.html || fails 'page.html lacks the memory plot'
expect 0 profile model --layers --runs 1 --batch-size 3 --json --no-progress
out_has '"live_bytes"'
out_has '"peak_live_bytes"'
out_has '"layers"'
out_has '"gbytes_per_second"'
expect 0 profile model --precision f32-unfused --runs 1 --top 0 --no-compare-precisions --no-progress
out_has 'steps in order'

expect 0 profile model --threads 1 --threads-model 1,2,64 --runs 2 --no-compare-precisions --no-progress
out_has 'more threads, as a model'
out_has 'at 64'
grep -q '^ *1 .* 1.00x  *100 %' "$out" || fails 'one thread is not one thread'
expect 0 profile model --threads 1 --threads-model 2,64 --runs 2 --no-compare-precisions --json --no-progress
out_has '"threads_model"'
out_has '"speed_up"'
grep -q '"expected_ms": [0-9]' "$out" || fails 'nothing is expected of two threads'
expect 2 profile model --threads-model 2,64,02
err_has '--threads-model 02 is there twice'
expect 2 profile model --threads-model 0

expect 2 profile
expect 2 profile model --precision f17
err_has 'f17'
expect 2 profile model --train
err_has 'presets'
expect 4 profile nowhere
