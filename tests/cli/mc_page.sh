# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# The page of leeway mc: its parts, from files alone, with hostile names; what is damaged is named.

LW_CACHE=$PWD/cache
export LW_CACHE
"$make_model" encoder enc || fails 'make_model encoder'
"$make_model" clip clip || fails 'make_model clip'

page_has() {
    grep -qF -- "$1" "$page" || fails "$last: $page lacks \"$1\""
}
page_lacks() { # pictures are not text
    sed 's/;base64,[^"]*//g; s|xmlns="http://www.w3.org/2000/svg"||g' "$page" >text.html
    if grep -qF -- "$1" text.html; then fails "$last: $page has \"$1\""; fi
}
no_nan() {
    page_lacks NaN
    if grep -qE '[^a-z]-?(nan|inf)[^a-z]' text.html; then fails "$last: $(grep -oE '.{30}[^a-z]-?(nan|inf)[^a-z].{9}' text.html | head -n 3)"; fi
}

# names that would be markup, marks of our own, or turn the line around
expect 0 data export synth:16 --split train --n 12 --output pictures
i=0
find pictures -name '*.png' | sort >names
while read -r f; do
    i=$((i + 1))
    case $i in
    1) mv "$f" 'pictures/<script>alert(1)<%2fscript>.png' ;;
    2) mv "$f" 'pictures/"onload="alert(2)" & **bold** `code`.png' ;;
    3) mv "$f" "pictures/$(printf 'rl\342\200\256o \303\251\n line.png')" ;;
    *) mv "$f" "pictures/plain$i.png" ;;
    esac
done <names
find pictures -mindepth 1 -type d -empty -delete

# what only this command makes
page=out/report.html
expect 0 mc pictures --image-size 16 --num-images 0 --models 'enc,c*`<l>&ip=clip' --only exp0,exp0b --dropout 0.1 \
    --passes 2,4,8 --trials 3 --seed 5 --output-dir out
out_has out/report.html
for part in 'Does it come out again?' 'Least and most certain pictures' 'How the scores lie' \
    'Do models agree?' 'Shape of the covariance' 'What it cost' 'What this shows, and what it does not' \
    'How to do it again' 'enc: least certain' 'enc: names and scores' 'Rank correlation of two trials' \
    '12 pictures are few' '<dt>Seed</dt><dd>5</dd>' 'no dropout' 'live and 0 dead' 'data:image/png;base64,' \
    'GFLOP, front' 'mc pictures --image-size 16' '<dt>Passes</dt><dd>2, 4, 8</dd>' '<dt>Trials</dt><dd>3</dd>'; do
    page_has "$part"
done
for part in 'worse?' 'Does it find errors?' 'One pass beside many' '<script' 'onload="' '"onload' \
    "$(printf '\342\200\256')" 'http://' 'https://' '<link'; do
    page_lacks "$part"
done
no_nan
page_has '&lt;script&gt;alert(1)'
page_has '&quot;onload=&quot;alert(2)&quot; &amp; **bold** `code`.png'
page_has 'rl\xe2\x80\xaeo é\n line.png'
page_has 'c*`&lt;l&gt;&amp;ip'

# from the files alone: neither data nor network
expect 0 report out
out_has out/report.html
out_has 'enc: its scores fail (trace_pre at T = 8: rho '
cp out/report.html first.html
mv pictures gone
mv enc gone-enc
mv clip gone-clip
expect 0 report out --json
out_has '"page": "out/report.html"'
cmp -s out/report.html first.html || fails 'the page differs without data and networks'

# too little to say anything
expect 0 mc synth:16 --num-images 5 --models gone-enc --passes 3 --trials 1 --dropout 0.1 --output-dir once
out_has 'takes more than 1 trial of 5 pictures: --trials 2 or more'
page=once/report.html
no_nan
page=out/report.html

# files of other parts, as they are written
mkdir -p out/validity/enc out/errors/enc out/one_pass/enc out/exp5_subset_ambiguity
cat >out/validity/enc/validity_summary.json <<'J'
{"passes": 8, "trials": 3, "num_images": 12, "degradations": {
 "blur_r5": {"trace_pre": {"rises": 0.75, "interval": [0.6, 0.9], "mean": 2.0, "clean_mean": 1.0}},
 "blur_r15": {"trace_pre": {"rises": 0.25, "interval": [0.1, 0.4], "mean": 0.5, "clean_mean": 1.0},
              "laplace_mutual_information": {"rises": 1.0, "interval": [0.9, 1.0]}}}}
J
cat >out/errors/enc/errors_summary.json <<'J'
{"accuracy": 0.75, "errors": 3, "scores": {
 "trace_pre": {"auroc": 0.81, "interval": [0.7, 0.9], "shuffled": 0.501},
 "trace_post": {"auroc": null, "interval": [null, null], "shuffled": null},
 "norm_var": {"auroc": 0.88, "interval": [0.8, 0.95], "shuffled": 0.49}},
 "reference": {"file": "<b>human.npy", "scores": {"trace_pre": {"spearman": 0.33, "interval": [-0.1, 0.5]}}}}
J
cat >out/one_pass/enc/laplace_summary.json <<'J'
{"seconds": {"sweep": 1.5, "scores": 0.5}, "scores": {"laplace_mutual_information": {"mean": 0.1}},
 "spearman_with_mc": {"laplace_mutual_information": {"trace_pre": {"T=8": 0.417}}}}
J
cat >out/exp5_subset_ambiguity/exp5_subset_enc_summary.json <<'J'
{"accuracy": 0.5, "num_classes": 4, "scores": {"trace_pre": {
 "metrics": {"rho_uncertainty_vs_entropy": 0.12, "auroc_low_margin": 0.62, "auroc_high_entropy": null},
 "intervals": {"rho_uncertainty_vs_entropy": [-0.1, 0.3], "auroc_low_margin": [0.55, 0.7]}}}}
J
expect 0 report out
for part in 'Does it know what is ambiguous?' 'enc: 4 classes, 50.0 % right' '0.12 [-0.10, 0.30]' \
    '0.62 [0.55, 0.70]' 'it falls where it should rise' 'Does it rise when a picture is made worse?' '75 % [60, 90]' \
    'enc: mean score against blur' 'Does it find errors?' '0.810' '0.700 .. 0.900' '0.501' '0.330' \
    'enc: 75.0 % right, 3 wrong' '&lt;b&gt;human.npy' 'One pass beside many' '0.417' '>2s<' \
    'probability <strong>0.81</strong>' 'of the 3 scores measured, norm_var does best: 0.88 [0.80, 0.95].'; do
    page_has "$part"
done
no_nan

# measured with other noise than exp0's scores: left out by name; what one pass said stays
for part in errors/enc/errors validity/enc/validity one_pass/enc/laplace; do
    sed 's/^{/{"contract": {"sites": "elsewhere"}, /; s/0.417/-0.98765/' "out/${part}_summary.json" >one.json
    mv one.json "out/${part}_summary.json"
done
expect 0 report out
out_has 'Left out, because other noise gave it: validity,errors; --only validity,errors with'
page_has 'One pass beside many'
for part in 'it falls where it should rise' 'Does it rise when a picture is made worse?' 'Does it find errors?' 0.988; do
    page_lacks "$part"
done
no_nan

# parts of any other shape are left out, damaged files are named
echo '{"degradations": 7}' >out/validity/enc/validity_summary.json
echo '{"scores": [1], "reference": "x"}' >out/errors/enc/errors_summary.json
echo '{"scores": {"a": 1, "b": {}}, "seconds": []}' >out/one_pass/enc/laplace_summary.json
echo '{"parameters": "x"}' >out/exp0_nested_mc/enc/exp0_run.json
echo '{"scores": {"a": 1, "b": {"metrics": 3}}}' >out/exp5_subset_ambiguity/exp5_subset_enc_summary.json
expect 0 report out
page_lacks 'Does it find errors?'
no_nan
echo '[1]' >out/exp0_nested_mc/enc/exp0_run.json
expect 3 report out
err_has 'exp0_run.json: no JSON object'
rm out/exp0_nested_mc/enc/exp0_run.json
echo '{' >out/errors/enc/errors_summary.json
expect 3 report out
err_has 'errors_summary.json'
rm -r out/errors
cp "out/exp0_nested_mc/c*\`<l>&ip/exp0_trials_T4.npz" cut.npz
head -c 300 cut.npz >out/exp0_nested_mc/enc/exp0_trials_T4.npz
expect 3 report out
err_has 'exp0_trials_T4.npz'
rm out/exp0_nested_mc/enc/exp0_trials_T*.npz out/exp0_nested_mc/enc/exp0_pictures.npz
expect 0 report out # numbers without arrays
page_has 'Does it come out again?'
echo '{"passes": [4, 2], "trials": 1}' >out/exp0_nested_mc/enc/exp0_summary.json
expect 3 report out
err_has 'no rising numbers'
rm -r out/exp0_nested_mc
# what experiments say that had models of their own
echo '{"passes": [4, 8], "trials": 3, "num_images": 12, "trace_mean": 0.5, "angular_mean": 0.25, "trace_pre":
 {"pairwise_spearman_median": 0.875, "status": "usable"}, "angular_var": {"status": "failed"}}' >new.json
mkdir -p out/exp4_subset_recipe
mv new.json 'out/exp4_subset_recipe/exp4_subset_a<b_summary.json'
echo '{"results": {}}' >out/exp4_subset_recipe/exp4_subset_summary.json
echo '{"results": {}}' >out/exp5_subset_ambiguity/exp5_subset_overall_summary.json
expect 0 report out
for part in 'Trace and angle' 'a&lt;b' 'angular_var' '0.875' 'usable' '>12<'; do page_has "$part"; done
page_lacks 'Does it come out again?'
page_lacks overall
no_nan
echo '[]' >out/exp4_subset_recipe/exp4_subset_x_summary.json
expect 3 report out
rm -r out/exp4_subset_recipe out/exp5_subset_ambiguity out/exp0b_norm_geometry
expect 2 report out
err_has 'no output of `leeway mc`'
expect 2 report
expect 4 report nothing-there
