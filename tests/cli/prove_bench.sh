# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway prove bench: what is measured can be counted by hand on a small dataset; files; bad input.

mkdir land
{
    printf 'in(rome,italy).\nin(nice,france).\nin(bonn,germany).\nin(paris,france).\n'
    printf 'near(rome,nice).\nnear(bonn,paris).\n'
} >land/train.txt
printf 'city rome nice bonn paris\nland italy france germany\n' >land/domain2constants.txt
printf 'r0:1:in(x,y) -> of(x,y)\n' >land/rules.txt
printf 'of(rome,italy).\nof(nice,france).\n' >land/test.txt

# true ones are proved in one choice; false ones stop there or fail in a second one
expect 0 prove bench land --corruption-modes tail --n-corruptions 2 --no-end-proof-action --batch-size 1,3 \
    --samples 2 --json --csv cases.csv --output-dir out
for key in candidates query_steps cases active steps padded_states ms_per_candidate set_up_ms engine_seconds \
    network_seconds peak_share machine peak; do
    out_has "\"$key\":"
done
out_has '"candidates": 6'
out_has '"proved": 2'
out_has '"query_steps": 10'           # 2 x 1 + 4 x 2
out_has '"padded_query_steps": 1024.0' # one batch of 512 for two steps
out_has '"done_share": 0.333'         # of the second step
for file in summary.json cases.csv steps.csv report.html; do
    [ -s out/$file ] || fails "no $file"
done
cmp -s cases.csv out/cases.csv || fails '--csv and cases.csv differ'
[ "$(wc -l <cases.csv)" -eq 10 ] || fails 'uniform, f32 with 512, 1 and 3, nothing kept and one query, bf16, two rankings'
grep -q '^uniform,512,2,' cases.csv || fails 'no uniform case'
grep -q '^repeated,512,2,.*,6,' cases.csv || fails 'the first query six times is six choices'
grep -q '^f32,3,2,.*,10,' cases.csv || fails 'the case of batch 3 has another number of choices'
[ "$(wc -l <out/steps.csv)" -eq 3 ] || fails 'two steps'
for text in 'Time of each step' 'Where the time' 'bit for bit' 'Padding avoided'; do
    grep -q "$text" out/report.html || fails "the page does not say: $text"
done
expect 0 prove bench land --n-corruptions 1 --samples 1 --batch-size 2 --no-steps --max-depth 1
out_has 'network f32, batch 2'
out_has 'All f32 cases gave equal results'
out_has 'Ranking in two stages gave the ranks of f32'
grep -q 'Steps of one batch' "$out" && fails 'steps were not asked for'

# bad input
expect 2 prove bench land --policy uniform
err_has 'no network to measure'
expect 2 prove bench land --batch-size 0
: >file
expect 4 prove bench land --output-dir file # before anything is timed
grep -q 'bench:' "$err" && fails 'timed first, then looked at the output directory'
expect 4 prove bench land --split nowhere

# an interrupt ends it at once, in the middle of a sample too: these walks never end by themselves
mkdir endless
i=0
while [ $i -lt 300 ]; do
    printf 'e(a%d,a%d).\n' $i $((i + 1))
    i=$((i + 1))
done >endless/train.txt
printf 'r0:1:q(y,x) -> q(x,y)\n' >endless/rules.txt
i=0
while [ $i -lt 100 ]; do
    printf 'q(a%d,a%d).\n' $i $((i + 2))
    i=$((i + 1))
done >endless/test.txt
for verb in bench eval; do
    "$program" prove $verb endless --no-memory-pruning --no-end-proof-action --max-depth 10000 --n-corruptions 600 \
        --threads 1 >"$out" 2>"$err" </dev/null &
    pid=$!
    sleep 2
    kill -INT $pid 2>/dev/null || fails "prove $verb: over before it was interrupted"
    began=$(date +%s)
    wait $pid
    [ $? -eq 130 ] || fails "prove $verb: SIGINT is exit code 130"
    [ $(($(date +%s) - began)) -le 4 ] || fails "prove $verb: heeds SIGINT late"
    err_has 'interrupted'
done

# a disk that is full leaves what was there (where one can be made)
mkdir disk
if mount -t tmpfs -o size=128k tmpfs disk 2>/dev/null; then
    printf 'old' >disk/scores.csv
    mkdir disk/eval
    printf 'old' >disk/eval/summary.json
    head -c 1000000 /dev/zero >disk/fill 2>/dev/null # as much as there is room for
    for output in '--save-scores disk/scores.csv' '--output-dir disk/eval'; do
        # shellcheck disable=SC2086
        "$program" prove eval land --n-corruptions all --no-filtered $output >"$out" 2>"$err" </dev/null
        got=$?
        last=$output
        [ $got -eq 4 ] || {
            umount disk
            fails "$output: exit code $got on a full disk"
        }
        err_has 'No space left on device'
    done
    kept=$(cat disk/scores.csv disk/eval/summary.json)
    left=$(find disk -name '*tmp*' -o -name '*part*')
    umount disk
    [ "$kept" = oldold ] || fails 'a full disk: the earlier files are gone'
    [ -z "$left" ] || fails "a full disk: left behind: $left"
else
    echo 'skipped: full disk (no file system can be mounted here)'
fi
