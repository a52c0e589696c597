# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# leeway compare: every file it promises, one page without the network, the same numbers for any thread count; refusals.

LW_CACHE=$PWD/cache
export LW_CACHE
data='--data synth:16 --limit 256 --no-progress'
net='--base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 --heads 2 --norm-groups 4'
expect 0 train ddpm $data $net --batch-size 4 --steps 1 --output-dir ddpm
expect 0 train drift $data $net --groups 2 --negatives-per-group 4 --positives-per-group 8 --noise-shape 2x2 \
    --latent-dim 4 --steps 1 --eval-every 1 --eval-samples 64 --keep-best fd --output-dir drift
err_has 'fd: Frechet distance, colours'
grep -q 'Frechet distance, colours, while training' drift/report.html || fails 'the page does not name the distance'
expect 0 train encoder $data --objective judge --width 8 --stages 2 --batch-size 16 --steps 2 --output-dir judge
expect 0 train encoder $data --objective classify --width 8 --stages 2 --batch-size 16 --steps 2 --output-dir reader

few='--n-fid 60 --n-ddpm 55 --n-slow 50 --ddim-steps 4,40 --score-steps 1,2,8 --ancestral-steps 3 --latency-seconds 0.05 --no-progress'
battery='--battery judge,reader'
expect 0 compare --drift drift --ddpm ddpm --judge judge --reader reader $few $battery --output-dir out --threads 1
out_has 'verdict of 2 networks of 1 family'
out_has 'no verdict on cheating: 2 networks, 3 are needed'
grep -q 'Verdict of networks no training saw' out/report.html || fails 'the page has no verdict'
out_has 'Frechet distance, plain classifier'
out_has '                  drift '
grep -q '"distance": "Frechet distance, plain classifier"' out/summary.json || fails 'summary.json does not name it'
out_has 'out/report.html'
out_has 'Training steps took drift'
out_has 'the two were trained one apart from the other'
grep -q '"cpu_percent_apart"' out/summary.json || fails 'summary.json does not compare the work'
out_has 'DDPM '
# what the headline names is timed with its own sampler, and it says of how many pictures it speaks
out_has '95 % intervals in brackets'
grep -q 'sampler,note$' out/latency.csv || fails 'latency.csv does not name the sampler'
for file in report.html side_by_side.png drift_samples_1nfe.png ddpm_samples_ddim4.png latency.csv summary.json; do
    [ -s "out/$file" ] || fails "out/$file is missing"
done
grep -qE '(src|href)="(http|//)|<script|@import|url\(' out/report.html && fails 'the page needs the network or a script'
grep -q 'href="../drift/report.html"' out/report.html || fails 'the page does not lead to its runs'
grep -q 'DDPM at its best' out/report.html || fails 'the page compares with one setting of DDPM only'
for name in 'DDPM, 3 evaluations, ancestral' 'DDPM, 8 evaluations' 'drift, its first 50' 'real pictures, 50 of them'; do
    grep -qF "\"$name\"" out/summary.json || fails "summary.json has no score of $name"
done
# results apart from controls, which are folded away
sed '/<details>/,$d' out/report.html | grep -q 'uniform noise' && fails 'controls stand among the results'
sed -n '/<details>/,$p' out/report.html | grep -q 'uniform noise' || fails 'the page does not list its controls'
# the checkpoint kept as the best, on the other half, beside its floor
out_has 'The checkpoint of drift that was kept as the best is of step 1, the one compared: fd'
grep -q '<td[^>]*>fd [0-9.]* (real: [0-9.]*), step 1<' out/report.html || fails 'the page lacks the best checkpoint'
grep -q '"best_checkpoint_ddpm": null' out/summary.json || fails 'summary.json: nothing was kept of DDPM'
grep -A9 '"best_checkpoint_drift": {' out/summary.json | grep -q '"floor": 0' || fails 'summary.json: best checkpoint'
for word in '"headline"' '"ddpm_at_its_best"' '"ddpm_at_drifts_quality"' '"accepted_drift"' '"frechet_is"' '"sampler": "ancestral"'; do
    grep -qF -- "$word" out/summary.json || fails "summary.json lacks $word"
done
grep -q 'What this shows, and what it does not' out/report.html || fails 'the page does not say what it proves'
[ "$(grep -c '^drift,1,' out/latency.csv)" -eq 3 ] || fails 'latency of drift at 1, 8 and 64'
for steps in 4 40; do
    [ "$(grep -c "^ddpm,$steps," out/latency.csv)" -eq 3 ] || fails "latency of DDPM, $steps evaluations, at 1, 8 and 64"
done
for word in frechet_floor frechet_untrained '"uniform noise"' '"ten pictures repeated"' 'DDPM, 2 evaluations' speedup; do
    grep -qF -- "$word" out/summary.json || fails "summary.json lacks $word"
done

# scores are a function of weights and seed
expect 0 compare --drift drift --ddpm ddpm --judge judge --reader reader $few $battery --output-dir again --threads 3 --json
out_has '"frechet_drift"'
for dir in out again; do
    grep -E '"(frechet|accepted|diversity|colour|nearest|duplicates|sliced|level|shortfall)' $dir/summary.json >$dir.numbers
done
cmp -s out.numbers again.numbers || fails 'another number of threads gives other scores'
cmp -s out/side_by_side.png again/side_by_side.png || fails 'another number of threads gives other pictures'

# strengths of guidance: rows, grids and scores of their own, of a network that knows them
expect 2 compare --drift drift --ddpm ddpm --judge judge $few --alpha 2 --output-dir no
err_has 'is told no strength of guidance'
expect 0 train drift $data $net --groups 2 --negatives-per-group 4 --positives-per-group 8 --unconditional-per-group 2 \
    --alpha-dist uniform --noise-shape 2x2 --latent-dim 4 --steps 1 --output-dir guided
expect 2 compare --drift guided --ddpm ddpm --judge judge $few --alpha 2,5 --output-dir no
err_has 'strengths of guidance from 1 to 4'
expect 0 compare --drift guided --ddpm ddpm --judge judge $few $battery --alpha 1,2.5 --output-dir strengths
for name in 'drift, alpha 1' 'drift, alpha 2.5'; do
    grep -qF "\"$name\"" strengths/summary.json || fails "summary.json has no score of $name"
    sed '/<details>/,$d' strengths/report.html | grep -qF "$name" || fails "the page has no row of $name"
done
# after one step all strengths are alike: the unguided one is the best
for name in 'Drift at its best, alpha 1' 'Drift, alpha 2.5' 'Drift is at its best with alpha 1, '; do
    grep -qF "$name" strengths/report.html || fails "the page lacks: $name"
done
grep -q '"drift_alpha": 1\(\.0\)\{0,1\},' strengths/summary.json || fails 'summary.json does not say which strength is best'

# the others, guided: rows, grids and scores besides those they have without, of twice the evaluations
expect 2 compare --drift drift --ddpm ddpm --judge judge $few --guidance-scale 2 --output-dir no
err_has 'no null class'
for method in ddpm flow; do
    expect 0 train $method $data $net --batch-size 4 --steps 3 --ema-decay 0 --class-dropout-prob 0.2 --output-dir told_$method
done
told="--drift drift --ddpm told_ddpm --flow told_flow --flow-steps 3 --judge judge $few --score-steps 1 --ancestral-steps="
expect 0 compare $told --output-dir unguided
expect 0 compare $told $battery --guidance-scale 1,2.5 --output-dir scaled
for name in 'DDPM, 8 evaluations, guidance scale 2.5' 'flow, 6 evaluations, guidance scale 2.5'; do
    grep -qF "\"$name\"" scaled/summary.json || fails "summary.json has no score of $name"
    sed -n '/"verdict": {/,$p' scaled/summary.json | grep -qF "\"$name\"" || fails "no row of the verdict: $name"
    sed '/<details>/,$d' scaled/report.html | grep -qF 'guidance scale 2.5' || fails "the page has no row of $name"
done
# in all steps scored, those that are not the usual ones folded away
for name in 'DDPM, 2 evaluations, guidance scale 2.5'; do
    grep -qF "\"$name\"" scaled/summary.json || fails "summary.json has no score of $name"
    sed -n '/Every other setting/,/<\/details>/p' scaled/report.html | grep -qF "$name" || fails "the page's fold has no row of $name"
done
grep -qF 'DDPM, DDIM, guidance scale 2.5' scaled/report.html || fails 'the plot of evaluations has no guided curve'
scales=1.1,1.2,1.3,1.4,1.5,1.6,1.7,1.8
expect 2 compare $told --guidance-scale $scales --flow-steps 1,2,3,5,6,7,9,10,11 --output-dir no
err_has '103 rows would be scored, at most 80'
grep -q '"guidance_scale": 2.5' scaled/summary.json || fails 'summary.json does not say the scale'
grep -q 'guidance scale 1\b' scaled/summary.json && fails 'a row of scale 1, which is none'
for dir in unguided scaled; do
    grep -E '^  "(frechet_ddpm|frechet_flow|frechet_drift|frechet_floor_ddpm)"' $dir/summary.json >$dir.plain
done
cmp -s unguided.plain scaled.plain || fails 'guided rows change the scores of the others'

# held-out distances that both runs logged stand over the time they were trained
curve='Held-out distance against training time'
grep -q "$curve" out/report.html && fails 'a curve of distances that DDPM did not log'
for run in drift ddpm; do
    printf '{"step":1,"time_s":1.5,"eval_fd":3}\n{"step":2,"time_s":3,"eval_fd":2}\n' >$run/metrics.jsonl
done

# without a judge or reader there are still distances, and the page says whose features they are
expect 2 compare --drift drift --ddpm ddpm $few --output-dir bare
err_has '--judge'
expect 0 compare --drift drift --ddpm ddpm --encoder reader $few --score-steps 1 --ancestral-steps= --precision bf16 --output-dir plain
grep -q "$curve" plain/report.html || fails 'the page lacks distances over time'
grep -q '"precision": "bf16"' plain/summary.json || fails 'summary.json does not say bf16'
grep -q '"rms_ddpm": 0.0,' plain/summary.json && fails 'bf16 makes the pictures of f32'
grep -q '"rms_drift"' plain/summary.json || fails 'no error of pictures beside f32'
expect 2 compare --drift drift --ddpm ddpm --encoder reader $few --precision int8 --output-dir x
err_has 'leeway quantize'
grep -q 'accepted by' plain/report.html && fails 'acceptance without a judge'

expect 0 compare --drift drift --ddpm ddpm --encoder reader $few $battery --output-dir dry --dry-run --json
out_has '"verdict_seconds": '
expect 0 compare --drift drift --ddpm ddpm --encoder reader $few $battery --output-dir dry --dry-run
out_has "the battery's verdict takes about"
out_has 'is not forecast'
expect 0 compare --drift drift --ddpm ddpm --encoder reader $few --output-dir dry --dry-run
out_has 'there is no battery, so no verdict'
expect 0 compare --drift drift --ddpm ddpm --encoder reader $few --output-dir dry --dry-run --json
out_has '"verdict_seconds": null'
[ ! -e dry ] || fails 'a dry run wrote something'

# a rectified flow beside both, and in the place of the DDPM; DDPM's part is what it was without
expect 0 train flow $data $net --batch-size 4 --steps 1 --output-dir flow
expect 0 compare --drift drift --ddpm ddpm --flow flow --flow-steps 1,3 --judge judge --reader reader $few $battery --output-dir three
out_has 'than flow'
out_has 'Training steps took drift'
grep -q 'Drifting beside DDPM and flow' three/report.html || fails 'the page is called otherwise'
grep -q '>Flow at [^<]*its best' three/report.html || fails 'the page has no column of the flow'
grep -q 'A flow is an equation' three/report.html || fails 'the page does not say what a flow is'
for word in '"name": "flow, 1 evaluation"' '"name": "flow, 3 evaluations"' '"kind": "flow"' '"sampler": "Euler"' \
    '"headline_flow"' '"flow_at_its_best"' '"frechet_flow"' '"flow_wall_s"' '"speedup_flow"' '"best_checkpoint_flow"'; do
    grep -qF -- "$word" three/summary.json || fails "summary.json lacks $word"
done
sed -n '/"verdict": {/,$p' three/summary.json | grep -qF '"flow, 3 evaluations"' || fails 'no row of the verdict'
for steps in 1 3; do
    [ "$(grep -c "^flow,$steps,.*,Euler," three/latency.csv)" -eq 3 ] || fails "latency of the flow, $steps evaluations"
done
for dir in out three; do
    grep -E '^  "(frechet_ddpm|frechet_drift|frechet_floor|frechet_floor_ddpm|frechet_untrained)"' $dir/summary.json >$dir.pair
done
cmp -s out.pair three.pair || fails 'a flow beside them changes the scores of drift or DDPM'
cmp -s out/ddpm_samples_ddim4.png three/ddpm_samples_ddim4.png || fails 'a flow beside them changes pictures of DDPM'
expect 0 compare --drift drift --flow flow --flow-steps 2 --flow-sampler heun --encoder reader $few --precision bf16 --output-dir pair
out_has "Beside flow's 2 evaluations"
grep -q '"rms_flow"' pair/summary.json || fails 'no error of the pictures of the flow beside f32'
grep -q '"ddpm' pair/summary.json && fails 'summary.json speaks of a DDPM that nobody named'
sed '/<details>/,$d' pair/report.html | grep -q 'DDPM' && fails 'the page speaks of a DDPM that nobody named'
[ -s pair/flow_samples_heun2.png ] || fails 'no pictures of the flow'
expect 2 compare --drift drift --ddpm flow $few --output-dir no
err_has 'is a rectified flow (--flow)'
expect 2 compare --drift drift --flow ddpm $few --output-dir no
err_has 'is a DDPM (--ddpm)'
expect 2 compare --drift drift $few --output-dir no
err_has 'give --ddpm RUN, --flow RUN'

# two cheaters are planted where three networks judge; what became of them is said
expect 0 train encoder $data --objective mae --width 8 --stages 2 --batch-size 16 --steps 2 --output-dir third
expect 0 compare --drift drift --ddpm ddpm --encoder reader $few --score-steps 1 --ancestral-steps= --battery judge,reader,third \
    --planted-network third --planted-steps 3 --sampler dpm-solver --output-dir planted
# by another sampler than the usual one, which is named wherever its pictures are
grep -q '"sampler": "DPM-Solver"' planted/summary.json || fails 'summary.json: the sampler'
grep -q '"sampler": "DDIM"' planted/summary.json && fails 'pictures of DDIM, which nobody asked for'
grep -q '^ddpm,4,.*,DPM-Solver,' planted/latency.csv || fails 'latency.csv: the sampler'
grep -q 'sampled by DPM-Solver' planted/report.html || fails 'the page: the sampler'
cmp -s planted/ddpm_samples_dpm_solver4.png out/ddpm_samples_ddim4.png && fails "DPM-Solver makes DDIM's pictures"
out_has 'against third'
out_has 'lie on training pictures; its number does not count'
grep -q '3 steps down the gradient of third' planted/report.html || fails 'the page does not say what was planted'
for word in '"network": "third"' frechet_before frechet_over_real '"part": "planted"'; do
    grep -qF -- "$word" planted/summary.json || fails "summary.json lacks $word of the planted"
done
expect 2 compare --drift drift --ddpm ddpm --encoder reader $few --battery judge,reader,third --planted-network x \
    --output-dir x --dry-run
err_has '--planted-network x'
expect 2 compare --drift drift --ddpm ddpm --encoder reader $few --battery judge,reader --planted-network x \
    --output-dir x --dry-run # too few networks for a verdict: the name was not looked at
err_has '--planted-network x'
expect 2 compare --drift drift --ddpm ddpm --encoder reader $few --battery judge,reader --planted-network x --output-dir x
err_has '--planted-network x'

# pictures of ten classes beside a folder without any, and beside one of two
expect 0 sample drift --n 1300 --output mixed
expect 2 compare --drift drift --ddpm ddpm --encoder judge --data folder:mixed $few --output-dir x
err_has 'drift makes 10 classes, folder:mixed has 0'
mkdir mixed/a mixed/b
mv mixed/*0.png mixed/a
mv mixed/*.png mixed/b
expect 2 compare --drift drift --ddpm ddpm --encoder judge --data folder:mixed $few --output-dir x
err_has 'drift makes 10 classes, folder:mixed has 2'

# kin of an encoder that a training used count for no row; bad batteries
expect 0 train drift $data $net --groups 2 --negatives-per-group 4 --positives-per-group 8 --encoder reader --steps 1 \
    --output-dir taught
mkdir battery
cp -r judge reader battery
expect 0 train ddpm $data $net --batch-size 4 --steps 2 --prediction v_prediction --output-dir spoken
expect 0 compare --drift taught --ddpm spoken --encoder reader $few --score-steps 1 --ancestral-steps= --output-dir kin
out_has 'verdict of 1 network of 1 family'
out_has 'left out: reader: it has the weights of reader; drift was trained with reader'
grep -q 'DDPM: loss (error of the predicted velocity)' kin/report.html || fails 'the page: what the network was trained to say'
grep -q 'DDPM: loss (error of the predicted noise)' out/report.html || fails 'the page: the usual prediction'
grep -q '"left_out": "it has the weights' kin/summary.json || fails 'summary.json does not say who is left out'
expect 2 compare --drift taught --ddpm ddpm --encoder reader $few --battery reader --output-dir x
err_has 'every network is kin of an encoder'
expect 2 compare --drift taught --ddpm ddpm --encoder reader $few --battery reader --output-dir x --dry-run
err_has 'every network is kin of an encoder'
expect 2 compare --drift drift --ddpm ddpm --encoder reader $few --battery judge,judge --output-dir x
err_has 'same weights'
expect 2 compare --drift drift --ddpm ddpm --encoder reader $few --battery judge,none --output-dir x
err_has 'no pooled feature'
rm -r battery

expect 2 compare --drift ddpm --ddpm drift $few --output-dir x
err_has 'is a DDPM'
expect 2 compare --drift drift --ddpm ddpm --judge reader $few --output-dir x
# numbers of evaluations that a schedule has not, by the name that was typed and before anything is made
for typed in '--ddim-steps 4,1001' '--score-steps 1001' '--ancestral-steps 1001'; do
    expect 2 compare --drift drift --ddpm ddpm --judge judge $few $typed --output-dir x
    err_has "${typed% *} 1001: this model's noise schedule has 1 to 1000"
done
expect 2 compare --drift drift --ddpm ddpm --judge judge --ddim-steps 50,100,50 --output-dir x
err_has '--ddim-steps 50 is there twice'
expect 2 compare --drift drift --ddpm ddpm --judge judge $few --alpha 1,1.0 --output-dir x
err_has '--alpha 1.0 is there twice'
expect 2 compare --drift drift --ddpm ddpm --judge judge $few --sampler dpm-solver --ddim-steps 1000 --output-dir x
err_has '--ddim-steps 1000: with timestep spacing linspace two evaluations'
# further numbers are only timed: those that DPM-Solver's times allow not are extrapolated, or refused before anything is made
expect 0 train ddpm $data $net --timesteps 16 --batch-size 4 --steps 1 --output-dir short
expect 0 compare --drift drift --ddpm short --encoder reader $few --sampler dpm-solver --ddim-steps 4,16 --latency-seconds 0.2 --output-dir timed
[ "$(grep -c '^ddpm,16,.*extrapolated' timed/latency.csv)" -eq 3 ] || fails 'a number of evaluations DPM-Solver has not was not extrapolated'
expect 0 train ddpm $data $net --timesteps 8 --batch-size 4 --steps 1 --output-dir shorter
expect 2 compare --drift drift --ddpm shorter --encoder reader $few --sampler dpm-solver --ddim-steps 4,8 --output-dir x
err_has '--ddim-steps 8: with timestep spacing linspace two evaluations'
expect 2 compare --drift drift --flow flow --judge judge $few --flow-steps 4000 --output-dir x
err_has '--flow-steps 4000: this rectified flow is sampled in 1 to 1000'
# data that a run names by a path from where it was trained
mkdir elsewhere far
expect 0 data export synth:16 --num-images 120 --output elsewhere/pictures
expect 0 train drift --data folder:elsewhere/pictures --image-size 16 --no-progress $net --groups 2 --negatives-per-group 4 \
    --positives-per-group 8 --steps 1 --output-dir far/drift
mv elsewhere moved
expect 4 compare --drift far/drift --ddpm ddpm --judge judge $few --output-dir x
err_has 'it is the data of far/drift, where a relative path is one from the folder that was trained in'
expect 2 compare --drift drift --ddpm ddpm --judge judge --n-fid 10 --output-dir x
expect 4 compare --drift nowhere --ddpm ddpm --judge judge --output-dir x
printf x >file
expect 4 compare --drift drift --ddpm ddpm --judge judge $few --output-dir file/x
