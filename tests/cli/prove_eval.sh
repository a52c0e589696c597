# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway prove eval: numbers that can be checked by hand, files, bad input, interrupts.

mkdir land
{
    printf 'in(rome,italy).\nin(nice,france).\nin(bonn,germany).\nin(paris,france).\n'
    printf 'near(rome,nice).\nnear(bonn,paris).\n'
} >land/train.txt
printf 'city rome nice bonn paris\nland italy france germany\n' >land/domain2constants.txt
printf 'r0:1:in(x,y) -> of(x,y)\n' >land/rules.txt
printf 'of(rome,italy).\nof(nice,france).\n' >land/test.txt
printf 'of(rome,italy) 1\nof(nice,france) 1\n' >land/test_depths.txt

# one rule, no choice but Endf: only true triples have a proof
expect 0 prove eval land --no-end-proof-action --corruption-modes tail --n-corruptions all
out_has 'land, test: 2 queries by uniform'
out_has 'rank realistic: 1 + higher + ties/2'
out_has 'tail            2  1.0000  1.0000  1.0000   1.0000       1.00  1.0000      100.0 %            4         0.0 %'
out_has 'ceiling: 2 of 2 queries and 0 of 4 corruptions have a proof at all; a prover that finds every one has MRR 1.0000'
# a query that heads and tails are corrupted of is one query
expect 0 prove eval land --no-end-proof-action --corruption-modes head,tail --n-corruptions all
out_has 'ceiling: 2 of 2 queries and '
expect 0 prove eval land --no-end-proof-action --n-corruptions all --no-filtered --json --output-dir all
for key in candidates query_steps states_scored seconds MRR Hits@1 Hits@3 Hits@10 per_mode rank_rule cuts AUC-PR \
    by_predicate by_published_depth by_depth_walked ceiling interrupted cache_hit_rate; do
    out_has "\"$key\":"
done
out_has '"candidates": 14' # 2 + 4 tails, 2 + 6 heads
out_has '"rank_rule": "realistic"'
out_has '"true_provable": 1.0'
out_has '"interrupted": false'
for file in summary.json per_query.csv report.html; do
    [ -s all/$file ] || fails "no $file"
done
grep -q '^head,2,of,nice,france,1.5,.*,1,proved,1,1,0,1,3,1,0,0,realistic$' all/per_query.csv ||
    fails 'paris is in france too: half a tie'
grep -q 'realistic: 1 + higher + ties/2' all/report.html || fails 'the page does not say how ranks are made'
expect 0 prove eval land --no-end-proof-action --n-corruptions all --rank-rule pessimistic --no-filtered --json
out_has '"rank_rule": "pessimistic"'
out_has '"MRR": 0.875' # heads (1 + 1/2) / 2, tails 1

expect 2 prove eval land --kge-weight 3
err_has '--kge-weight: only with --kge'

# filtered: in(paris,france) is known, of(paris,france) is not until a split has it
printf 'of(paris,france).\n' >land/valid.txt
expect 0 prove eval land --no-end-proof-action --n-corruptions all --corruption-modes head --json
out_has '"known": 1'
out_has '"MRR": 1.0'

# the same numbers for any batch, rows, threads and memory limit; formula: a network
for policy in uniform formula:4; do
    expect 0 prove eval land --policy $policy --corruption-modes head,tail,both --n-corruptions 3 --output-dir one \
        --save-scores one.csv
    expect 0 prove eval land --policy $policy --corruption-modes both,tail,head --n-corruptions 3 --output-dir two \
        --save-scores two.csv --fixed-batch-size 3 --rows 5 --threads 2 --cache-memory 0 --memory-limit 1000
    cmp -s one/per_query.csv two/per_query.csv || fails "$policy: other ranks in other batches"
    cmp -s one.csv two.csv || fails "$policy: other scores in other batches"
    [ "$(wc -l <one.csv)" -eq "$((1 + $(sed -n 's/.*"candidates": \([0-9]*\).*/\1/p' one/summary.json)))" ] ||
        fails "$policy: not every candidate was saved"
done
expect 0 prove eval land --n-corruptions 100 # more than there are
out_has 'missing: 391 corruptions: there are no more'
expect 0 prove eval land --seed 3 --n-queries 1 --json
out_has '"queries": 1'

expect 0 prove eval land --policy formula:4 --n-corruptions all --ranks-only --output-dir early
expect 0 prove eval land --policy formula:4 --n-corruptions all --output-dir whole
cut -d, -f1-13 early/per_query.csv >early.csv
cut -d, -f1-13 whole/per_query.csv | cmp -s - early.csv || fails 'ranks only: other ranks'
grep -q '"AUC-PR": null' early/summary.json || fails 'ranks only: an area of walks that were left'
expect 2 prove eval land --ranks-only --save-scores s.csv
expect 0 prove eval land --policy formula:4 --n-corruptions all --two-stage --output-dir stages
cut -d, -f1-13 stages/per_query.csv | cmp -s - early.csv || fails 'two stages: other ranks'
grep -q '"certified": false' stages/summary.json || fails 'two stages: what was measured passes for proven'
expect 0 prove eval land --policy formula:4 --n-corruptions all --two-stage
out_has 'two stages, '
expect 2 prove eval land --policy formula:4 --two-stage --precision bf16
err_has 'two-stage'

# a pipe is opened once, a device stays one
mkfifo pipe
timeout 60 cat pipe >from_pipe.csv &
reader=$!
expect 0 prove eval land --n-corruptions 3 --save-scores pipe
wait $reader
expect 0 prove eval land --n-corruptions 3 --save-scores file.csv
cmp -s from_pipe.csv file.csv || fails 'scores through a pipe differ'
[ -p pipe ] || fails 'the pipe is a pipe no more'
expect 4 prove eval land --n-corruptions 3 --save-scores /dev/full
err_has '/dev/full: cannot write'

# a bare file of weights is the model folder it lay in, where that says nothing unusual
cp -r land school
printf 'of(bonn,germany).\n' >>school/train.txt # something to train on
expect 0 prove train school --output-dir run --steps 1 --eval-every 0 --n-envs 4 --n-steps 4 \
    --n-epochs 1 --batch-size 16 --no-use-l2-norm --sqrt-scale --temperature 0
cp run/checkpoints/last/model.safetensors bare.safetensors
expect 0 prove eval school --policy run --no-ema --n-corruptions all --save-scores run.csv
expect 0 prove eval school --policy bare.safetensors --n-corruptions all --save-scores bare.csv
out_has 'queries by bare.safetensors'
cmp -s run.csv bare.csv || fails 'a bare file scores as its folder'
expect 0 prove kge school --output-dir embeddings --steps 1 --embedding-dim 4
expect 0 prove eval school --policy uniform --kge embeddings

# a model knows the names it was trained on: the same numbers of others are not enough
cp -r school other
for file in other/*.txt; do
    sed 's/rome/roma/g' "$file" >moved
    mv moved "$file"
done
expect 3 prove eval other --policy run
err_has 'run/checkpoints/step_0000001 was trained on other names (hash '
err_has 'than the constants and predicates of other (hash '
expect 3 prove eval other --policy uniform --kge embeddings
err_has 'was trained on other names'
cp -r run/checkpoints/step_0000001 lone
expect 2 prove train other --output-dir gone --steps 2 --resume-from lone --reschedule --eval-every 0 --n-envs 4 --n-steps 4 \
    --n-epochs 1 --batch-size 16 --no-use-l2-norm --sqrt-scale --temperature 0
err_has 'was trained on other names (hash '
cp -r run/checkpoints/last/ nameless
sed '/"names"/d; s/"dropout": \(.*\),$/"dropout": \1/' run/checkpoints/last/config.json >nameless/config.json
expect 0 prove eval other --policy nameless --no-ema
err_has 'does not say what names its rows belong to'

expect 3 prove eval school --policy embeddings
err_has 'embeddings of a knowledge graph (prove kge), no policy; they are given by --kge'
expect 3 prove eval school --kge run
err_has 'this is a policy (prove train), no embeddings of a knowledge graph; it is given by --policy'
printf 'x' >broken.safetensors
expect 3 prove eval school --policy broken.safetensors
expect 4 prove eval land --policy nowhere.safetensors

# bad input
expect 2 prove eval land --corruption-modes heads
err_has 'corruption-modes'
expect 2 prove eval land --n-corruptions some
err_has '--n-corruptions some: a number, or all'
expect 2 prove eval land --n-corruptions -3
expect 2 prove eval land --rank-rule best
expect 2 prove eval land --padding-atoms 65
expect 4 prove eval land --policy nowhere
err_has 'nowhere'
for seed in '' x -1 1:2 1.5 99999999999999999999; do
    expect 2 prove eval land --policy formula:$seed
    err_has "--policy formula:$seed: SEED is a whole number from 0 to 9223372036854775807"
done
expect 0 prove eval land --policy formula:1 --temperature 30 --no-deterministic
expect 5 prove eval land --policy formula --memory-limit 1
err_has 'a memory limit of 1 MiB'
expect 4 prove eval land --split train2
cp -r land unknown
printf 'of(rome,spain).\n' >unknown/test.txt
expect 3 prove eval unknown
err_has 'unknown/test.txt:1: constant spain is in no fact, rule or domain'
expect 3 prove eval unknown --skip-unknown
err_has 'unknown: of the 1 queries of its test split none is left: 0 have a predicate that heads no rule, 1 an unknown'
: >unknown/test.txt
expect 3 prove eval unknown
err_has 'there is no query in its test split'
: >file
expect 4 prove eval land --output-dir file # before a candidate is walked
grep -q 'candidates' "$err" && fails 'walked first, then looked at the output directory'
cp -r land bare
rm bare/domain2constants.txt
expect 2 prove eval bare --domains yes
err_has 'domain2constants.txt'

# an interrupt reports what is ranked, marked, with exit code 130
if [ -d "${LW_TEST_DATA:-/nowhere}/kg/dprl/wn18rr" ]; then
    "$program" prove eval "$LW_TEST_DATA/kg/dprl/wn18rr" --n-corruptions all --threads 1 >"$out" 2>"$err" &
    pid=$!
    wait_for 'no candidate after a minute' grep -q 'candidates:' "$err"
    sleep 1
    kill -INT $pid
    wait $pid
    [ $? -eq 130 ] || fails 'SIGINT is exit code 130'
    out_has 'PARTIAL: interrupted'
    err_has 'this result is partial'
else
    echo 'skipped: interrupt (LW_TEST_DATA names a directory of data)'
fi

# many provers on the same candidates: what any of them has alone, it has here
expect 0 prove compare land --no-end-proof-action --corruption-modes tail --n-corruptions all --seeds 2 \
    --policy uniform,uniform+uniform+uniform --output-dir table
out_has 'land, test: 2 queries, 2 seeds'
grep -Eq '^ceiling +1\.0000 \+- 0\.0000' "$out" || fails 'the ceiling is not 1'
out_has 'The best row is uniform with an MRR of 1.000 (not told apart from untrained, uniform, uniform and 2 more, rules); a prover'
out_has 'a prover that finds every proof and calls all equal would come to 1.000'
grep -q '"name": "uniform"' table/summary.json || fails 'no row of uniform walks'
grep -q '^rules,all,all,2,MRR,1,0$' table/compare.csv || fails 'the rule proves both'
grep -q '^ceiling,half links,neither seen,2,MRR,1,0$' table/compare.csv || fails 'no fact is of() anything'
grep -q '^half links,all,all,2,MRR,0.5,0$' table/compare.csv || fails 'half links tie: rank 2 of 3'
[ -s table/report.html ] || fails 'no page'
compare='land --no-end-proof-action --corruption-modes tail --n-corruptions all --seeds 2'
[ ! -d "${LW_TEST_DATA:-/nowhere}/kg/dprl/countries_s3" ] ||
    compare="$LW_TEST_DATA/kg/dprl/countries_s3 --corruption-modes tail --padding-states 20 --skip-unary-actions --seeds 2"
# shellcheck disable=SC2086
expect 0 prove compare $compare --ranks-only --output-dir ranks
# shellcheck disable=SC2086
expect 0 prove compare $compare --two-stage --output-dir stages
out_has 'Two stages, margin measured and not proven'
cmp -s ranks/compare.csv stages/compare.csv || fails 'two stages rank otherwise'
grep -q '"rows_bf16"' stages/summary.json || fails 'the summary does not say what two stages were'
grep -q '"two_stage": null' ranks/summary.json || fails 'ranks of one stage say that there were two'
expect 2 prove compare land --corruption-modes both

# long names stay apart, in the files too, and what a table leaves out is said
mkdir long
long=/award/award_nominee/award_nominations./award/award_nomination/of_a_relation_whose_name_goes_on_and_on_and_on_and_on_behind_it
for k in $(seq 30); do
    printf "'%s/%s'(a%s,b%s).\n" $long "$k" "$k" "$k"
done >long/train.txt
cp long/train.txt long/test.txt
expect 0 prove compare long --seeds 1 --n-corruptions 2 --output-dir long_table
out_has 'and 18 more (--json has them all)'
[ "$(grep -c "\"$long/[0-9]*\": {" long_table/summary.json)" -eq 150 ] || fails 'predicates are missing in the summary'
[ "$(grep "^uniform,predicate,.*,MRR," long_table/compare.csv | cut -d, -f3 | sort -u | wc -l)" -eq 30 ] ||
    fails 'predicates of one name in the table'
grep -q "$long/7<" long_table/report.html || fails 'names are cut on the page'
rm -r long_table
for k in $(seq 31 60); do
    printf "'%s/%s'(a%s,b%s).\n" $long "$k" "$k" "$k"
done | tee -a long/train.txt >>long/test.txt
expect 0 prove compare long --seeds 1 --n-corruptions 2 --output-dir long_table
grep -q '40 of 60 are shown; compare.csv has them all.' long_table/report.html || fails 'the page leaves predicates out'
expect 0 prove eval long --n-corruptions 2 --output-dir long_eval
out_has 'and 40 more (--json has them all)'
grep -q "\"predicate\": \"$long/7\"" long_eval/summary.json || fails 'names are cut in the summary'
grep -q 'By predicate, the 24 largest of 60' long_eval/report.html || fails 'the plot leaves predicates out'

# a list without any other candidate has rank 1 for everyone: said wherever ranks are
mkdir lonely
printf 'r(a,a).\n' | tee lonely/train.txt >lonely/test.txt
printf 'r(x,y) -> h(x,y)\n' >lonely/rules.txt
expect 0 prove eval lonely --output-dir lonely_eval
grep -q 'walked for ranks only' lonely_eval/report.html && fails 'no option asked for ranks only'
out_has 'warning: 2 of 2 are ranked against nothing'
expect 0 prove compare lonely --seeds 2 --output-dir lonely_table
out_has 'warning: 2 of 2 lists are ranked against nothing: '
grep -q '"lists_without_corruptions": 2' lonely_table/summary.json || fails 'the summary does not say so'
grep -q '2 of 2 lists are ranked against nothing' lonely_table/report.html || fails 'the page does not say so'
expect 0 prove rank lonely --by rules
out_has 'warning: 2 of 2 are ranked against nothing'
expect 0 prove rank lonely --by rules --json
out_has '"lists_without_corruptions": 2'
expect 0 prove rank land --by rules --json
out_has '"lists_without_corruptions": 0'
expect 2 prove compare land --corruption-modes both
expect 2 prove compare land --seeds 0
expect 4 prove compare land --kge nowhere
expect 4 prove compare land --policy nowhere+nothing
for names in 'uniform,' 'uniform,,formula:1' uniform+ +uniform; do
    expect 2 prove compare land --policy $names
    err_has ' is empty'
done
expect 2 prove compare land --policy formula:1,uniform,formula:1
err_has '--policy formula:1 is there twice'
# a dataset whose path is not UTF-8: JSON spells it (it was null), a page cannot, and that is said before the walks
odd=$(printf 'land\377')
if cp -r land "$odd" 2>/dev/null; then
    for verb in check depths 'bench --samples 1 --no-steps --batch-size 8 --n-corruptions 2' eval 'compare --seeds 1'; do
        # shellcheck disable=SC2086
        expect 0 prove ${verb%% *} "$odd" ${verb#"${verb%% *}"} --json
        out_has '"dataset": "land\\xff"'
    done
    expect 0 prove eval "$odd"
    expect 2 prove eval "$odd" --output-dir odd_eval
    expect 2 prove compare "$odd" --output-dir odd_table
    err_has 'is not UTF-8 and cannot be written to a config file'
    "$make_model" encoder "$odd/enc" || fails 'make_model encoder'
    expect 0 quantize "$odd/enc" --calibration synth:16 --n 8 --output-dir odd_enc --json
    grep -q '"source": "land\\\\xff/enc"' odd_enc/quantization.json || fails 'the source is not spelt'
fi
# rows are told apart, whatever policies are called
expect 0 prove compare land --policy formula:1+formula:2,formula:1+formula:3 --seeds 2 --n-corruptions 1 --output-dir apart
for name in 'formula:1 and 1 more' 'formula:1+formula:3'; do
    [ "$(grep -c "^$name,all,all,.*,MRR," apart/compare.csv)" -eq 1 ] || fails "no row of its own: $name"
done

# a dry run does nothing but read
for verb in 'depths land' 'eval land --output-dir dry' 'bench land --output-dir dry' 'rank land --by rules --save-ranks dry' \
    'compare land --output-dir dry'; do
    # shellcheck disable=SC2086
    expect 0 prove $verb --dry-run
    out_has '2 queries'
    out_has 'nothing was done (--dry-run)'
    [ ! -e dry ] || fails "prove $verb --dry-run wrote"
done
expect 0 prove eval land --dry-run --json
out_has '"lists": 4'
