# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway mc: the same scores for any batch, threads and call; trials that were interrupted; refusals.

LW_CACHE=$PWD/cache
export LW_CACHE
"$make_model" encoder enc || fails 'make_model encoder'
"$make_model" clip clip || fails 'make_model clip'
"$make_model" plain net || fails 'make_model plain'
common='synth:16 --num-images 11 --dropout 0.1 --seed 3'
clip='mc synth:32 --num-images 5 --models c=clip --dropout 0.1 --passes 2,6 --trials 2'
trials=exp0_nested_mc/enc

# shellcheck disable=SC2086
{
    expect 0 mc $common --models enc --passes 3,8 --trials 3 --only exp0,exp0b,exp4 --output-dir a --threads 1
    out_has 'sites blocks: 3, 3 live, 0 dead; scored: pooled of'
    out_has 'T=8    pre  mean 0.'
    for f in exp0_nested_mc/exp0_overall_summary.json $trials/exp0_summary.json $trials/exp0_trials_T3.npz \
        $trials/exp0_trials_T8.npz exp0b_norm_geometry/enc/exp0b_geometry_trials.npz \
        exp0b_norm_geometry/enc/exp0b_summary.json exp4_subset_recipe/exp4_subset_enc_trials.npz \
        exp4_subset_recipe/exp4_subset_enc_summary.json $trials/exp0_run.json $trials/exp0_pictures.npz report.html; do
        [ -s a/$f ] || fails "a/$f is not there"
    done
    [ "$(find a -type f | wc -l)" -eq 11 ] || fails "left behind: $(find a -type f)"
    grep -q '"live_modules": \["layer1.0", ' a/$trials/exp0_summary.json || fails 'sites are not named'

    # any batch, any threads; T = 3 of 8 as T = 3 alone; a directory on the disk for what is kept
    for how in '--threads 2 --batch-size 1' '--threads 5 --batch-size 7 --passes 8' \
        '--batch-size 64 --passes 3 --memory-limit 1'; do
        expect 0 mc $common --models enc --passes 3,8 --trials 3 $how --output-dir b
        for t in 3 8; do
            [ ! -e b/$trials/exp0_trials_T$t.npz ] ||
                cmp -s a/$trials/exp0_trials_T$t.npz b/$trials/exp0_trials_T$t.npz ||
                fails "$how: other scores at T=$t"
        done
        rm -r b
    done

    # another seed: other masks
    expect 0 mc synth:16 --dropout 0.1 --seed 4 --num-images 11 --models enc --passes 3 --trials 3 --output-dir b
    if cmp -s a/$trials/exp0_trials_T3.npz b/$trials/exp0_trials_T3.npz; then fails 'a seed changes nothing'; fi
    rm -r b

    # killed at some moment, and gone on with: the same bytes
    more='--passes 3,32 --trials 16 --num-images 40'
    expect 0 mc $common $more --models enc --only exp0,exp0b --output-dir whole
    for signal in KILL INT; do
        "$program" mc $common $more --models enc --only exp0,exp0b --output-dir cut >"$out" 2>"$err" &
        pid=$!
        i=0
        while [ ! -e cut/$trials/exp0_trials_T32_partial.npz ] && kill -0 $pid 2>/dev/null && [ $i -lt 600 ]; do
            sleep 0.05
            i=$((i + 1))
        done
        kill -$signal $pid 2>/dev/null || fails "it ended by itself: $(cat "$err")"
        wait $pid
        code=$?
        [ $signal = KILL ] || [ $code -eq 130 ] || fails "SIGINT: exit code $code"
        expect 2 mc $common $more --models enc --only exp0,exp0b --output-dir cut
        err_has '--resume goes on with them'
        expect 2 mc $common $more --models enc --only exp0,exp0b --output-dir cut --resume --dropout 0.2
        err_has 'its dropout is 0.1, now it is 0.2'
        expect 2 mc $common $more --models enc --only exp0,exp0b --output-dir cut --resume --passes 3,32,33
        err_has 'its passes is [3,32], now it is [3,32,33]'
        expect 0 mc $common $more --models enc --only exp0,exp0b --output-dir cut --resume --batch-size 5
        for f in $trials/exp0_trials_T3.npz $trials/exp0_trials_T32.npz exp0b_norm_geometry/enc/exp0b_geometry_trials.npz; do
            cmp -s whole/$f cut/$f || fails "SIG$signal: $f has other bytes"
        done
        [ -z "$(find cut -name '*_partial*')" ] || fails 'partial files stay'
        rm -r cut
    done

    # a published family: lists of sites, kinds of noise
    expect 0 $clip --output-dir d --json
    out_has '"sites": "hf"'
    expect 0 $clip --sites open_clip-2.24,mlp --perturb gaussian --output-dir e
    out_has 'sites open_clip-2.24,mlp:'
    expect 0 $clip --sites depth --perturb depth --output-dir f
    expect 0 $clip --sites last:1 --output-dir g --dry-run
    out_has 'would take about'
    [ ! -e g/exp0_nested_mc ] || fails 'a dry run wrote something'

    # one pass beside them: of any batch, threads and of a resumed call the same bytes
    one="mc $common --models enc --passes 3 --trials 2 --one-pass laplace"
    scores=one_pass/enc/laplace.npz
    expect 0 $one --output-dir h --threads 1
    out_has 'one pass: fc.weight 5x'
    out_has 'laplace_mutual_information'
    tr -d ' \n' <h/${scores%.npz}_summary.json | grep -q '"spearman_with_mc":{"laplace_logit_var":{"trace_pre":{"T=3":' ||
        fails 'nothing beside the many passes'
    expect 0 $one --output-dir i --threads 3 --batch-size 5
    cmp -s h/$scores i/$scores || fails 'threads change one pass'
    expect 0 $one --output-dir j --calibration synth:16,seed=9 --calibration-images 20 --json
    out_has '"calibration_images": 20'
    if cmp -s h/$scores j/$scores; then fails 'calibration changes nothing'; fi
    expect 0 $one --output-dir k --prior-precision 2.5
    out_has 'prior precision 2.5, 11 calibration pictures'
    expect 2 $one --output-dir x --prior-precision -1
    expect 2 $clip --one-pass laplace --output-dir x
    err_has 'has no classifier'
    [ ! -e x ] || fails 'a refusal wrote something'

    # refusals
    expect 2 $clip --sites mlp-dwn --output-dir x
    err_has "did you mean 'mlp-down'"
    expect 2 $clip --sites depth,attention --output-dir x
    expect 2 $clip --perturb depth --output-dir x
    err_has '--sites depth'
    expect 2 $clip --layer s0 --output-dir x
    err_has "no live site lies before 's0'"
    expect 2 $clip --layer nothing --output-dir x
    err_has "has no output 'nothing'"
    expect 2 $clip --passes 6,2 --output-dir x
    err_has 'rising'
    expect 2 $clip --dropout 1 --output-dir x
    expect 2 $clip --only exp7 --output-dir x
    expect 2 mc $common --models enc,enc --passes 2 --trials 1 --output-dir x
    err_has 'two are called enc'
    expect 3 mc $common --models net --output-dir x
    err_has 'no encoder of pictures'
    expect 4 mc $common --models none --output-dir x
}
