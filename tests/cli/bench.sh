# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway bench: the smallest case, its JSON, comparison with itself and with a faster past.

expect 0 bench field --filter 16x64x128 --seconds 0 --min-samples 2 --save a.json --csv a.csv --no-progress
out_has 'field_16x64x128x192'
out_has 'median ms'
grep -q '"samples_ms"' a.json || fails 'a.json lacks its samples'
[ "$(wc -l <a.csv)" -eq 3 ] || fails 'a.csv: one row per sample and a header'
expect 0 bench field --filter 16x64x128 --seconds 0 --min-samples 1 --json --profile --no-progress
out_has '"median_ms"'
out_has '"op": "drift_field"'
out_has '"isa"'

# a past that was a million times faster is a regression; one that was slower is not
sed 's/"m\(edian\|in\|ad\)_ms": [0-9.e+-]*/"m\1_ms": 1e-6/' a.json >fast.json
expect 1 bench field --filter 16x64x128 --seconds 0 --min-samples 1 --compare fast.json --no-progress
out_has 'REGRESSION'
err_has '1 case is slower'
sed 's/"m\(edian\|in\)_ms": [0-9.e+-]*/"m\1_ms": 1e9/; s/"mad_ms": [0-9.e+-]*/"mad_ms": 0/' a.json >slow.json
expect 0 bench field --filter 16x64x128 --seconds 0 --min-samples 1 --compare slow.json --no-progress
out_has 'better'

expect 2 bench
expect 2 bench kernel
expect 2 bench field --filter nothing
err_has 'no case'
expect 2 bench unet --batch-size 0
expect 4 bench field --filter 16x64x128 --seconds 0 --min-samples 1 --compare none.json --no-progress
