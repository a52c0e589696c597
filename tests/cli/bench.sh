# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway bench: the smallest cases, their files, comparison with a faster and a slower past, another machine.

quick='--seconds 0.05 --samples 3 --warm-up 1 --no-progress'
one="--filter field_16x64x128x192 $quick"

# shellcheck disable=SC2086
expect 0 bench field $one --save a.json --csv a.csv
out_has 'field_16x64x128x192'
out_has 'of peak'
out_has 'error'
grep -q '"samples_ms"' a.json || fails 'a.json lacks its samples'
grep -q '"conv": "auto"' a.json || fails 'a.json does not say how 3x3 convolutions were computed'
grep -q '"commit"' a.json || fails 'a.json does not say what was built'
grep -q '^method,batch_size,mean_ms,p50_ms,p95_ms,p99_ms,std_ms,per_image_ms,throughput_imgs,' a.csv ||
    fails 'a.csv lacks its columns'
[ "$(wc -l <a.csv)" -eq 2 ] || fails 'a.csv: one row per case and a header'
# shellcheck disable=SC2086
expect 0 bench field $one --json --profile
out_has '"median_ms"'
out_has '"peak_share"'
out_has '"against": "ref"'
out_has '"op": "drift_field"'
# shellcheck disable=SC2086
expect 0 bench field --filter field_shared_distances_xnorm $quick --no-reference
out_has 'one call per temperature'
out_has 'speed-up'
# Every key of the published benches, beside our own.
for keys in '_no_xnorm vectorized_ms legacy_ms speedup_x max_abs_diff normalize_over_x shape temperatures scale_temperature_by_sqrt_channels legacy_loop_ms distance_reuse_ms compile_backend compile_mode compile_dynamic compile_fullgraph eager_ms compiled_first_call_ms compiled_steady_ms speedup' \
    'queue.queue_10_steps mean_step_time_s queue_underflow_totals queue_covered_classes' \
    'table8_groups4_each16 mean_step_time_s mean_generated_images_per_sec max_peak_cuda_mem_mb' \
    'parity.parity_drift_step eager_first_step_ms compiled_first_call_ms max_abs_diff_by_statistic'; do
    # shellcheck disable=SC2086
    set -- $keys
    expect 0 bench --filter "$1" --iterations 1 --warmup 0 --json --no-reference
    shift
    for key in device "$@"; do
        out_has "\"$key\""
    done
done
# shellcheck disable=SC2086
expect 0 bench kernels --filter norm_silu_256@16_b1 $quick
out_has 'memory'
# shellcheck disable=SC2086
expect 0 bench kernels --filter resample_pillow_bicubic_32x32_224x224 $quick
out_has 'resample_pillow_bicubic_32x32_224x224'

# shellcheck disable=SC2086
expect 0 bench prove --filter walk_512_uniform $quick
out_has 'walk_512_uniform'
# shellcheck disable=SC2086
expect 0 bench prove --filter walk_512_bf16 $quick --json
out_has '"against": "ref"'

# a suite whose cases have a type of their own
expect 2 bench train --precision bf16 --list
expect 2 bench resolution --precision bf16 --list # it measured f32
err_has 'bench resolution: --precision is of stream, sampling and, with --latents, resolution'
err_has '--filter bf16'
expect 2 bench sampling --model model --list # it measured networks of its own
err_has 'bench sampling: --model is of startup and stream'

# files whose samples are known: as they were, slower, faster
for times in 'base 10, 10.1, 9.9' 'slow 12, 12.1, 11.9' 'fast 1e-3, 1e-3, 1e-3' 'same 10.2, 10.1, 10'; do
    sed "s/\"samples_ms\": \[.*\]/\"samples_ms\": [${times#* }]/" a.json >"${times%% *}.json"
done
expect 1 bench --compare base.json,slow.json
out_has 'regression'
err_has '1 case is slower'
expect 0 bench --compare base.json,fast.json
out_has 'better'
expect 0 bench --compare base.json,same.json --json
out_has '"verdict": "noise"'
# nothing is run, so that nothing would be in these files, and every case is compared
for other in '--save none.json' '--csv none.csv' '--filter field' '--list'; do
    # shellcheck disable=SC2086
    expect 2 bench --compare base.json,same.json $other
    err_has "--compare of two files runs nothing and compares all that is in both; it does not go with ${other%% *}"
done
expect 2 bench field --compare base.json,same.json
err_has 'it does not go with a suite'
# run again, against a past that was a thousand times faster
# shellcheck disable=SC2086
expect 1 bench field $one --samples 1 --compare fast.json --save again.json
out_has 'regression'
grep -q '"samples_ms"' again.json || fails 'a regression must not lose its samples'

# times of another machine say nothing, unless that is wanted
sed 's/"threads": [0-9]*/"threads": 77/' a.json >other.json
expect 2 bench --compare a.json,other.json
err_has 'not the same machine: threads'
expect 0 bench --compare a.json,other.json --force
sed 's/"machine": {/"machine": {"device": "cuda:0", /' a.json >gpu.json
grep -q cuda:0 gpu.json || fails 'a.json has no machine'
expect 2 bench --compare a.json,gpu.json
err_has 'not the same device: was cpu and is cuda:0'

# too large a case is a row, not an end
# shellcheck disable=SC2086
expect 0 bench resolution --image-size 64 --memory-limit 102.4MiB $quick --json
out_has '"skipped": "out of memory: needs'
# shellcheck disable=SC2086
expect 0 bench resolution --image-size 64 --memory-limit 1e-12 $quick --json # less than a byte was no limit
out_has '"skipped": "out of memory: needs'
expect 2 bench sampling --memory-limit 0.1XiB
err_has "--memory-limit '0.1XiB': must be a number of GiB, or a size like 512MiB"
# shellcheck disable=SC2086
expect 0 bench sampling --memory-limit 0.1 $quick --json
[ "$(grep -c '"skipped": "out of memory: needs' "$out")" -eq 2 ] || fails 'sampling: one step and DDIM fit in any memory'
# shellcheck disable=SC2086
TMPDIR=$PWD/nowhere expect 4 bench startup $quick
err_has "$PWD/nowhere"

# DDIM beside one step of the same network: two cases, and what one takes in terms of the other
expect 0 bench sampling --seconds 0.05 --samples 1 --no-reference --no-progress
out_has 'ms/evaluation'
out_has 'one_step_b1'
# shellcheck disable=SC2086
expect 0 bench sampling --filter one_step $quick --no-reference --json
out_has '"evaluations": 1'
out_has '"outside_ms"'
! grep -q '"ratio"' "$out" || fails 'one step has nothing to be a multiple of'

# frames of live video: one evaluation and five, their targets, the fields of mirage-hello's own files
# shellcheck disable=SC2086
expect 0 bench stream --model gpu-intensive-lsd:8 $quick --duration 0.02 --save frames.json
out_has 'ms outside it'
out_has 'needs TFLOP/s'
out_has 'gpu-intensive-lsd:8_5x'
grep -q '"frame_time_p99"' frames.json || fails 'frames.json lacks the times of frames'
grep -q '"vs_mirage_next_gen"' frames.json || fails 'frames.json lacks its targets'
# shellcheck disable=SC2086
expect 0 bench stream --model simple-optimized-unet:16 --precision bf16 $quick --json
out_has '"simple-optimized-unet:16_bf16_1x"'
out_has '"parameters": 237843'
# shellcheck disable=SC2086
expect 0 bench stream --model gpu-intensive-lsd:8 --window 8 --filter 1x $quick --json
out_has '"against": "full attention"'
! grep -q '"error": 0[,.]0*$' "$out" || fails 'windows gave what attention over all places gives'
# shellcheck disable=SC2086
expect 0 bench stream --model gpu-intensive-lsd:8 --window 64 --filter 1x $quick --json
out_has '"error": 0'
# shellcheck disable=SC2086
expect 0 bench stream --model identity --image-size 32,48 $quick
out_has 'live_pixels32'
out_has 'needs TFLOP/s'
# what `stream --model` takes: five evaluations a frame where the network makes its picture in several
for kind in autoencoder four; do
    "$make_model" $kind $kind || fails "make_model $kind"
done
# shellcheck disable=SC2086
expect 0 bench stream --model four --latents autoencoder --image-size 32 $quick --json
out_has '"live_pixels32"'
out_has '"live_pixels32_5x"'
gflop=$(sed -n 's/.*"gflop": \([0-9.]*\).*/\1/p' "$out" | tr '\n' ' ')
echo "$gflop" | awk '{ exit !(NF == 2 && $2 > 1.5 * $1 && $2 < 5 * $1) }' || fails "five evaluations and one way there and back: $gflop"
expect 0 bench stream --model autoencoder --image-size 32 --list
out_is 'stream.live_pixels32'
# pictures of noise through latents in one plan, beside its halves
expect 0 bench resolution --latents autoencoder --image-size 64 --list
for tag in '' _network _decoder _previous _flight2 _flight4; do
    grep -qx "resolution.latents[0-9]*_pixels64$tag" "$out" || fails "no case of$tag"
done
# shellcheck disable=SC2086
expect 0 bench resolution --latents autoencoder --image-size 64 --filter _previous $quick --samples 1 --json
out_has '"batch_size": 1'
# shellcheck disable=SC2086
expect 0 bench resolution --latents autoencoder --image-size 64 --filter _decoder --precision bf16 $quick
out_has '_pixels64_bf16_decoder'
expect 2 bench resolution --latents autoencoder --image-size 30
err_has 'it is a multiple of'
expect 0 bench stream --scale 92,96 --list
out_has 'gpu-intensive-lsd:92_1x'
out_has 'gpu-stress:96_5x'
! grep -q 'gpu-stress:92' "$out" || fails 'gpu-stress takes multiples of 16'
expect 2 bench stream --model tiny
err_has 'lightweight, medium, heavy'
# shellcheck disable=SC2086
expect 0 bench stream --model heavy --memory-limit 0.1 $quick --json
out_has '"skipped": "out of memory: needs'

# fresh processes, with bits as here
"$make_model" unet model || fails 'make_model'
# shellcheck disable=SC2086
expect 0 bench startup --model model $quick --json
out_has '"name": "startup_total"'
out_has '"error": 0'
expect 2 bench startup --child 0
expect 0 bench startup --model model --child 0 --conv direct
grep '"hash"' "$out" >direct
expect 0 bench startup --model model --child 0 --conv winograd
grep '"hash"' "$out" >winograd
cmp -s direct winograd && fails 'startup: --conv makes no difference'

# the ladder: every rung runs, decodes are counted, f32 rungs give one score
"$make_model" clip clip || fails 'make_model clip'
expect 0 bench mc --ladder --models c=clip --num-images 3 --passes 2
for rung in 'decode each pass +6 +6 ' 'pixels kept +6 +3 ' 'bf16 +6 +3 ' 'larger batch +6 +3 ' 'prefix once +6 +3 ' \
    'passes folded +6 +3 ' 'unfused +6 +3 '; do
    grep -Eq "$rung" "$out" || fails "no rung '$rung'"
done
out_has 'Drawn pictures: times are real, scores are not'
out_has 'a prediction checked: 24 rows'
expect 0 bench mc --ladder --models c=clip --num-images 3 --passes 2 --sites last:1 --save ladder.json --json
[ "$(grep -c '"mean_trace_pre"' ladder.json)" -eq 7 ] || fails 'not every rung ran'
[ "$(grep '"mean_trace_pre"' ladder.json | head -2 | sort -u | wc -l)" -eq 1 ] || fails 'rungs compute different scores'
expect 2 bench unet --ladder
expect 4 bench mc --ladder --models c=clip --data nowhere
expect 2 bench mc --ladder --csv rungs.csv
err_has '--ladder has no rows for --csv: --save FILE keeps all of it'
expect 2 bench mc --ladder --compare base.json
err_has '--ladder has no rows for --compare'

expect 0 bench --list --filter unet.
out_has 'unet.forward_b128'
expect 2 bench kernel
expect 2 bench field --filter nothing
err_has 'no case'
expect 2 bench unet --batch-size 0
expect 4 bench --compare none.json,a.json
printf '{"results": []}' >empty.json
expect 3 bench --compare empty.json,a.json
err_has "'machine'"
# the machine is what a comparison checks first: a file without it is no bench, not a crash
printf '{"machine": {}, "n_warmup": 0, "n_iters": 1, "results": []}' >bare.json
expect 3 bench --compare bare.json,bare.json
err_has "bare.json: machine: 'cpu' is missing"
