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
    out_has '  T     score       mean        rho     snr      icc'
    out_has '  8     trace_pre   0.'
    out_has 'enc: its scores '
    for f in exp0_nested_mc/exp0_overall_summary.json $trials/exp0_summary.json $trials/exp0_trials_T3.npz \
        $trials/exp0_trials_T8.npz exp0b_norm_geometry/enc/exp0b_geometry_trials.npz \
        exp0b_norm_geometry/enc/exp0b_summary.json exp4_subset_recipe/exp4_subset_enc_trials.npz \
        exp4_subset_recipe/exp4_subset_enc_summary.json exp4_subset_recipe/exp4_subset_summary.json $trials/exp0_run.json $trials/exp0_pictures.npz report.html; do
        [ -s a/$f ] || fails "a/$f is not there"
    done
    for f in manifest_exp0.json manifest_exp0b.json manifest_exp4.json $trials/exp0_progress_T3.json \
        $trials/exp0_progress_T8.json; do
        [ -s a/$f ] || fails "a/$f is not there"
    done
    [ "$(find a -type f | wc -l)" -eq 17 ] || fails "left behind: $(find a -type f)"
    grep -q '"completed_trials": 3' a/$trials/exp0_progress_T3.json || fails 'no progress'
    # what programs of the method's authors read: arrays of files, keys of summaries
    has_all() { # FILE WORD..
        file=a/$1
        shift
        for word; do grep -aqF -- "$word" "$file" || fails "$file has no $word"; done
    }
    for t in 3 8; do
        has_all $trials/exp0_trials_T$t.npz paths.npy trial_pre.npy trial_post.npy
        has_all $trials/exp0_progress_T$t.json '"experiment"' '"model"' '"passes"' '"completed_trials"' '"total_trials"'
    done
    reliability='"num_trials" "num_images" "signal" "noise" "snr" "icc" "pairwise_spearman_median" "pairwise_spearman_iqr"
        "pairwise_spearman_q25" "pairwise_spearman_q75" "status"'
    has_all $trials/exp0_summary.json '"experiment"' '"model"' '"dropout"' '"trials"' '"passes"' '"num_images"' \
        '"injected_linear_dropout_wrappers"' '"nested_extraction"' '"T=3"' '"T=8"' '"pre_norm"' '"post_norm"' $reliability
    has_all exp0_nested_mc/exp0_overall_summary.json '"models"' '"results"' '"enc"' '"T=8"' $reliability
    has_all exp0b_norm_geometry/enc/exp0b_geometry_trials.npz paths.npy trace_pre.npy trace_post.npy angular_var.npy \
        offdiag_pre.npy offdiag_post.npy eigs_pre.npy eigs_post.npy
    has_all exp0b_norm_geometry/enc/exp0b_summary.json '"trace_per_dim"' '"offdiag_mass_ratio"' '"eigs_top10_mean"' \
        '"angular_var"' '"median"' '"p25"' '"p75"'
    has_all exp4_subset_recipe/exp4_subset_enc_trials.npz paths.npy trace_pre.npy angular_var.npy
    has_all exp4_subset_recipe/exp4_subset_summary.json '"models"' '"passes": 8' '"results"' '"trace_pre"' \
        '"angular_var"' '"trace_mean"' '"angular_mean"' $reliability
    has_all manifest_exp0.json '"num_images"'
    out_has "the network's own files say: no dropout"
    grep -q '"live_modules": \["layer1.0", ' a/$trials/exp0_summary.json || fails 'sites are not named'

    # any batch, any threads; T = 3 of 8 as T = 3 alone; a directory on the disk for what is kept
    for how in '--threads 2 --batch-size 1' '--threads 5 --batch-size 7 --passes 8' \
        '--batch-size 64 --passes 3 --memory-limit 1024KiB'; do
        expect 0 mc $common --models enc --passes 3,8 --trials 3 $how --output-dir b
        for t in 3 8; do
            [ ! -e b/$trials/exp0_trials_T$t.npz ] ||
                cmp -s a/$trials/exp0_trials_T$t.npz b/$trials/exp0_trials_T$t.npz ||
                fails "$how: other scores at T=$t"
        done
        rm -r b
    done

    # one process at a time: at the start where the directory is there
    mkdir taken
    (
        flock 9
        expect 2 mc $common --models enc --passes 3 --trials 3 --output-dir taken
        err_has 'taken: another process is writing into it: wait for it, stop it, or choose another --output-dir'
    ) 9<taken || exit 1
    rmdir taken || fails 'a second process wrote'

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
        for word in trial_pre.npy trial_post.npy completed_trials.npy total_trials.npy passes.npy; do
            grep -aq $word cut/$trials/exp0_trials_T32_partial.npz || fails "what is half done has no $word"
        done
        [ $signal = KILL ] || [ $code -eq 130 ] || fails "SIGINT: exit code $code"
        [ $signal = KILL ] || err_has 'of 16 trials of enc, which are kept: go on with --resume'
        # as many trials as are wanted are there already: that is said
        cp -r cut enough
        expect 0 mc $common --passes 3,32 --trials 1 --num-images 40 --models enc --only exp0,exp0b --output-dir enough --resume
        grep -q '"total_trials": 1,' enough/$trials/exp0_progress_T32.json || fails 'progress of another call stays'
        rm -r enough
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
    list=blocks
    for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do list=$list,layer1.0; done # longer than a line
    expect 0 mc $common --models enc --passes 2 --trials 2 --sites $list --output-dir long
    out_has "sites $list: 1, 1 live"
    grep -q "at 1 site (<code>$list</code>)" long/report.html || fails 'the page cuts a list of sites'
    expect 0 $clip --sites depth --perturb depth --output-dir f
    expect 0 $clip --sites last:1 --output-dir g --dry-run
    out_has 'would take about'
    [ ! -e g/exp0_nested_mc ] || fails 'a dry run wrote something'
    expect 0 $clip --models c=clip,d=clip --output-dir g --dry-run
    out_has 'all in turn: about'
    # a path that exists is no NAME=SOURCE
    cp -R clip lr=3
    expect 0 mc synth:32 --num-images 5 --models lr=3,n=lr=3 --dropout 0.1 --passes 2 --trials 1 --output-dir g --dry-run
    # pictures that several models want alike are decoded once
    rm -rf once && mkdir once
    expect 0 data export synth:32 --split train --n 6 --output alike
    LW_CACHE=$PWD/once LW_LOG=info "$program" mc alike --models c=clip,d=clip --passes 2 --trials 1 --output-dir g2 \
        >"$out" 2>"$err" || fails 'two models'
    [ "$(grep -c 'decoded into' "$err")" -eq 1 ] || fails "decoded $(grep -c 'decoded into' "$err") times, not once"

    # validity: by any threads and batch, and gone on with
    more='--passes 2,24 --trials 5 --num-images 12 --only validity'
    expect 0 mc $common $more --models enc --output-dir whole2 --threads 1
    for d in blur_r5 blur_r15 down_4x down_8x; do
        grep -q "\"$d\": {" whole2/validity/enc/validity_summary.json || fails "no $d"
    done
    grep -q '"passes": 24' whole2/validity/enc/validity_summary.json || fails 'which passes?'
    [ "$(grep -c '"rises"' whole2/validity/enc/validity_summary.json)" -eq 48 ] || fails '4 x 12 shares'
    "$program" mc $common $more --models enc --output-dir cut2 >"$out" 2>"$err" &
    pid=$!
    i=0
    while [ ! -e cut2/validity/enc/blur_r15_T24_partial.npz ] && kill -0 $pid 2>/dev/null && [ $i -lt 600 ]; do
        sleep 0.02
        i=$((i + 1))
    done
    kill -KILL $pid 2>/dev/null || fails "it ended by itself: $(cat "$err")"
    wait $pid
    expect 0 mc $common $more --models enc --output-dir cut2 --resume --batch-size 5 --threads 3
    for f in validity.npz validity_summary.json; do
        cmp -s whole2/validity/enc/$f cut2/validity/enc/$f || fails "validity/enc/$f has other bytes"
    done
    [ -z "$(find cut2 -name '*_partial.npz')" ] || fails 'partial files stay'

    # errors, and numbers from elsewhere
    printf '{"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "5": 0, "6": 1, "7": 2, "8": 3, "9": 4}\n' >map.json
    cp map.json five.json
    npy_noise ref.npy '11, 3' 33
    cp ref.npy three.npy
    few='--passes 3 --trials 2 --models enc'
    expect 0 mc $common $few --only errors --class-map map.json --reference ref.npy --output-dir h
    grep -q '"accuracy": 0\.' h/errors/enc/errors_summary.json || fails 'no accuracy'
    [ "$(grep -c '"shuffled"' h/errors/enc/errors_summary.json)" -eq 12 ] || fails 'an AUROC of each score'
    [ "$(grep -c '"spearman"' h/errors/enc/errors_summary.json)" -eq 12 ] || fails 'a correlation of each score'
    expect 2 mc $common $few --only errors --output-dir x
    err_has 'enc has 5 classes, synth:16 has 10: --class-map F says which is which'
    printf '{"0": 0, "1": 1}\n' >map.json
    expect 3 mc $common $few --only errors --class-map map.json --output-dir x
    err_has 'map.json: no entry for'
    npy_noise ref.npy '12' 12
    expect 3 mc $common $few --only errors --reference ref.npy --output-dir x
    err_has '12 rows of rank 1 for 11 pictures'
    expect 2 $clip --only errors --output-dir x
    err_has 'c has no classes'

    # ambiguity against texts
    npy_noise text.npy '2, 5, 12' 120
    expect 0 $clip --only exp0,exp5 --text-embeddings text.npy --output-dir k
    err_has 'no logit_scale in its file'
    exp5=exp5_subset_ambiguity/exp5_subset_c
    for f in manifest_exp5.json $exp5.npz ${exp5}_summary.json exp5_subset_ambiguity/exp5_subset_overall_summary.json; do
        [ -s k/$f ] || fails "k/$f is not there"
    done
    for key in rho_uncertainty_vs_negative_margin rho_uncertainty_vs_entropy auroc_low_margin auroc_high_entropy \
        rho_uncertainty_vs_prompt_sensitivity '"num_templates": 2' '"num_classes"' '"quantile"' '"thresholds"'; do
        grep -q "$key" k/${exp5}_summary.json || fails "no $key"
    done
    for word in paths uncertainty_trials uncertainty margin entropy prompt_sensitivity low_margin high_entropy; do
        grep -aq $word.npy k/$exp5.npz || fails "no array $word"
    done
    expect 0 $clip --only exp5 --text-embeddings text.npy --templates 1 --quantile 0.3 --output-dir l
    expect 0 $clip --only exp5 --text-embeddings text.npy --exp5-templates 'a {}|one {}' --output-dir m
    expect 2 $clip --only exp5 --text-embeddings text.npy --templates 3 --output-dir x
    err_has 'text.npy has 2'
    expect 2 $clip --only exp5 --output-dir x
    err_has '--text-embeddings F'
    # its own pictures, trials and passes, where none are given: all of a folder that has fewer
    expect 0 data export synth:32 --split train --n 3 --output few
    expect 0 mc few --models c=clip --dropout 0.1 --only exp5 --text-embeddings text.npy --output-dir own --json
    [ "$(grep -c '"passes": 64,' own/${exp5}_summary.json)" -eq 1 ] || fails 'exp5 has 64 passes'
    grep -q '"trials": 1,' own/${exp5}_summary.json || fails 'exp5 has one trial'
    grep -q '"num_images": 3' own/manifest_exp5.json || fails 'a folder with fewer pictures'
    grep -q '"paths": \[' own/manifest_exp5.json || fails 'a manifest without paths'
    expect 2 mc few --models c=clip --only exp5 --num-images 4 --text-embeddings text.npy --output-dir x
    err_has '4 pictures are to be drawn, but there are 3'
    npy_noise text.npy '5, 11' 55
    expect 3 $clip --only exp5 --text-embeddings text.npy --output-dir x
    err_has "embeddings of 11 numbers, 'pooled' of c has 12"
    [ ! -e x ] || fails 'refusals leave files'

    # an experiment with settings of its own; words of other programs
    expect 0 $clip --only exp0,exp0b,exp4 --exp0b-trials 3 --exp0b-num-images 4 --exp0b-passes 5 --exp4-num-images 5 \
        --exp0b-model d=clip --output-dir n --batch-size auto --num-workers 4 --no-half
    err_has '--num-workers has no effect'
    grep -q '"trials": 3' n/exp0b_norm_geometry/d/exp0b_summary.json || fails 'trials of exp0b'
    grep -q '"num_images": 4' n/manifest_exp0b.json || fails 'pictures of exp0b'
    grep -q '"num_images": 5' n/manifest_exp4.json || fails 'pictures of exp4'
    [ ! -e n/exp0_nested_mc/d ] || fails 'exp0 ran with a model of exp0b'
    cmp -s d/exp0_nested_mc/c/exp0_trials_T6.npz n/exp0_nested_mc/c/exp0_trials_T6.npz || fails 'exp0 changed'

    # one pass beside them: of any batch, threads and of a resumed call the same bytes
    one="mc $common --models enc --passes 3 --trials 2 --one-pass laplace"
    scores=one_pass/enc/laplace.npz
    expect 0 $one --output-dir o1 --threads 1
    out_has 'one pass: fc.weight 5x'
    out_has 'laplace_mutual_information'
    tr -d ' \n' <o1/${scores%.npz}_summary.json | grep -q '"spearman_with_mc":{"laplace_logit_var":{"trace_pre":{"T=3":' ||
        fails 'nothing beside the many passes'
    expect 0 $one --output-dir o2 --threads 3 --batch-size 5
    cmp -s o1/$scores o2/$scores || fails 'threads change one pass'
    expect 0 $one --output-dir o3 --calibration synth:16,seed=9 --calibration-images 20 --json
    out_has '"calibration_images": 20'
    if cmp -s o1/$scores o3/$scores; then fails 'calibration changes nothing'; fi
    expect 0 $one --output-dir o4 --prior-precision 2.5 --training-images 1000
    out_has 'prior precision 2.5, 11 calibration pictures'
    grep -q '"stands_for": 1000' o4/${scores%.npz}_summary.json || fails 'what do they stand for?'
    expect 2 $one --output-dir x --prior-precision -1
    # its scores stand in every table, spoilt pictures' included; against texts
    expect 0 $one --only errors,validity --reference three.npy --class-map five.json --output-dir o5
    [ "$(grep -c '"rises"' o5/validity/enc/validity_summary.json)" -eq 68 ] || fails '4 x (12 + 5) shares'
    for f in errors validity; do
        grep -q '"laplace_entropy"' o5/$f/enc/${f}_summary.json || fails "one pass is not in $f"
    done
    npy_noise text.npy '2, 5, 12' 120
    expect 0 $clip --one-pass laplace --only exp0,exp5 --text-embeddings text.npy --output-dir o6
    out_has 'one pass: visual_projection.weight 12x16, prior'
    grep -q '"num_classes": 5' o6/one_pass/c/laplace_summary.json || fails 'texts are not counted'
    grep -q '"least_confidence"' o6/${exp5}_summary.json || fails 'one pass is not in exp5'
    expect 2 $clip --one-pass laplace --output-dir x
    err_has 'has no classifier: --text-embeddings F says'
    npy_noise text.npy '5, 11' 55
    expect 3 $clip --one-pass laplace --text-embeddings text.npy --output-dir x
    [ ! -e x ] || fails 'a refusal wrote something'

    # what does not fit is said before any pass is made, with its size
    (
        # shellcheck disable=SC3045
        ulimit -v 600000 || exit 99
        exec "$program" $clip --trials 90000 --passes 2,3,4,5,6,7,8,9 --num-images 11 --batch-size 8 --output-dir huge
    ) >"$out" 2>"$err"
    code=$?
    # the sanitizers' own address space is larger than any limit
    if [ $code -ne 5 ] && ! grep -q Sanitizer "$err"; then fails "too much memory: exit code $code"; fi
    [ $code -ne 5 ] || err_has 'and 90000 trials'
    [ ! -e huge/exp0_nested_mc ] || fails 'it began all the same'

    # no variable changes what is computed
    MCDO_SIGLIP2_BACKEND=open_clip
    export MCDO_SIGLIP2_BACKEND
    expect 2 $clip --output-dir x
    err_has 'say --sites open_clip, or unset it'
    expect 0 $clip --sites open_clip --output-dir g --dry-run
    unset MCDO_SIGLIP2_BACKEND

    # refusals
    expect 2 $clip --batch-size some --output-dir x
    err_has 'auto, or 1 to 4096'
    expect 6 $clip --device mps --output-dir x
    err_has '--device mps: '
    expect 2 mc synth:32 --output-dir x
    err_has 'exp0 has no models'
    mkdir -p pictures/one
    printf '{"paths": ["one/gone.png"]}\n' >list.json
    expect 4 mc pictures --manifest list.json --models c=clip --output-dir x
    err_has 'one/gone.png'
    expect 4 mc folder:pictures --manifest list.json --models c=clip --output-dir x
    err_has 'one/gone.png'
    for data in list.json nowhere synth:16; do
        expect 2 mc $data --manifest list.json --models c=clip --output-dir x
        err_has 'is no folder:DIR that they lie in'
    done
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
    long=$(printf 'e%.0s' $(seq 64)) # of the files that are written: it was cut
    expect 2 mc $common --models "$long=enc" --passes 2 --trials 1 --output-dir x
    err_has "--models: $long is a name of 64 bytes, at most 63; NAME=SOURCE gives names"
    expect 3 mc $common --models net --output-dir x
    err_has 'no encoder of pictures'
    expect 4 mc $common --models none --output-dir x
}

# in int8: of a folder with ranges, the same scores for any batch and threads, not those of f32
expect 0 quantize enc --calibration synth:16 --n 16 --output-dir enc-int8
int8="mc $common --models enc=enc-int8 --passes 3,8 --trials 3 --only exp0 --one-pass laplace --precision int8"
# shellcheck disable=SC2086
{
    expect 0 $int8 --output-dir i1 --threads 1
    expect 0 $int8 --output-dir i2 --threads 2 --batch-size 3
    expect 0 mc $common --models enc=enc-int8 --passes 3,8 --trials 3 --only exp0 --output-dir i3
    cmp -s i1/$trials/exp0_trials_T8.npz i2/$trials/exp0_trials_T8.npz || fails 'int8: another batch gives other scores'
    cmp -s i1/$trials/exp0_trials_T8.npz i3/$trials/exp0_trials_T8.npz && fails 'int8 gives the scores of f32'
    expect 2 mc $common --models enc --passes 3 --trials 3 --only exp0 --precision int8 --output-dir i4
    err_has 'leeway quantize enc'
    # a half of the network without a product that int8 can compute; ranges that are others belong to another network
    expect 0 $int8 --sites last:1 --output-dir i5
    expect 0 $int8 --sites head --layer logits --output-dir i6
    long='--passes 3,32 --trials 2000 --num-images 40'
    "$program" mc $common $long --models enc=enc-int8 --only exp0 --precision int8 --output-dir i7 >"$out" 2>"$err" &
    pid=$!
    i=0
    while [ ! -e i7/$trials/exp0_trials_T32_partial.npz ] && kill -0 $pid 2>/dev/null && [ $i -lt 600 ]; do
        sleep 0.05
        i=$((i + 1))
    done
    kill -KILL $pid 2>/dev/null || fails "it ended by itself: $(cat "$err")"
    wait $pid
    sed -i 's/"zero": [0-9]*/"zero": 7/' enc-int8/quantization.json
    expect 2 mc $common $long --models enc=enc-int8 --only exp0 --precision int8 --output-dir i7 --resume
    err_has 'its ranges_hash is'
}
