# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway demo: the verdict and its exit code, finished stages kept, an unfinished one resumed, settings that do not mix.

LW_CACHE=$PWD/cache
export LW_CACHE
"$make_model" encoder enc || fails 'make_model encoder'
demo='demo --minutes 0.02 --encoder enc --n-fid 60 --n-ddpm 50 --latency-seconds 0.05 --no-progress'
# shellcheck disable=SC2086
expect 1 $demo --output-dir d
out_has 'FAIL'
err_has 'drift and DDPM take turns'
out_has 'the two took turns on the machine'
grep -q '"in_turns": true' d/summary.json || fails 'summary.json does not say how the two were trained'
out_has 'report: d/report.html'
err_has 'does not meet the bar'
for file in encoder/summary.json judge/summary.json reader/summary.json drift/summary.json ddpm/summary.json \
    drift/config.yaml report.html summary.json; do
    [ -s "d/$file" ] || fails "d/$file is missing"
done
# the comparison leads to its runs, and they to it
for run in encoder judge reader drift ddpm; do
    grep -q "href=\"$run/report.html\"" d/report.html || fails "the page does not lead to $run"
    grep -q 'href="../report.html"' "d/$run/report.html" || fails "the page of $run does not lead back"
done
grep -q 'leeway train drift --data synth:16' d/report.html || fails 'the page lacks the commands'
# both ways to make it again, with all that was asked for
asked='--minutes 0.02 --seed 0 --encoder enc --num-images 60 --n-ddpm 50 --latency-seconds 0.05 --output-dir d'
grep -q "leeway demo --data synth:16 $asked\$" d/report.html || fails 'the line of the demonstration leaves options out'
grep -q -- '--reader d/reader --encoder enc' d/report.html || fails 'the line of the comparison leaves --encoder out'
grep -q -- '--latency-seconds 0.05 --output-dir d$' d/report.html || fails 'the line of the comparison leaves the time out'
# six networks of other seeds and architectures, none of them kin of drift's encoder
grep -q '"networks_counted": 6' d/summary.json || fails 'the verdict is not of six networks'
grep -q '"families_counted": 4' d/summary.json || fails 'the six networks are not of four families'
grep -q '"pass": false' d/summary.json || fails 'summary.json says that it passed'
grep -q '"honest_sets": 28' d/summary.json || fails 'the verdict has no rule'
out_has 'verdict of 6 networks of 4 families'

# what is finished stays as it is; a stage that was killed behind its last step is completed. Once that is said the
# comparison, a minute, is interrupted.
before=$(cksum <d/drift/metrics.jsonl)
rm d/ddpm/summary.json
# shellcheck disable=SC2086
"$program" $demo --output-dir d >"$out" 2>"$err" </dev/null &
pid=$!
tries=0
until grep -q 'what was not written behind the last one is now' "$err"; do
    kill -0 $pid 2>/dev/null || fails 'demo ended before it was interrupted'
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fails 'ddpm is not through after a minute'
    sleep 0.1
done
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fails 'SIGINT is exit code 130'
err_has '4/6 drift is already trained'
[ -s d/ddpm/summary.json ] || fails 'the summary that was missing is not written'
[ "$before" = "$(cksum <d/drift/metrics.jsonl)" ] || fails 'a finished stage was trained again'

expect 2 demo --minutes 5 --output-dir d
err_has 'other settings'
expect 2 demo --data nothing --output-dir e
# what is not its own is neither taken for its own nor removed
mkdir -p theirs/encoder mine/encoder
echo '{"step": 1}' >theirs/encoder/metrics.jsonl
expect 2 $demo --output-dir theirs
err_has 'theirs/encoder holds a run that is no part of a demonstration: choose another --output-dir'
echo precious >mine/encoder/note.txt
"$program" $demo --output-dir mine >"$out" 2>"$err" </dev/null &
pid=$!
wait_for 'the first stage is not begun after a minute' [ -s mine/encoder/config.yaml ]
kill -INT $pid
wait $pid
[ -s mine/encoder/note.txt ] || fails 'a file of somebody was removed'
err_has '; the same command goes on from here'
grep -q -e '--resume' "$err" && fails 'demo has no --resume'
mkdir -p pictures
cp d/side_by_side.png pictures/a.png
cp d/side_by_side.png pictures/b.png
expect 2 demo --data folder:pictures --output-dir e
err_has 'no labels'
expect 0 demo --dry-run --output-dir f
expect 0 demo --dry-run --json --output-dir f
out_has '"minutes": 6'
out_has '"name": "encoder"'
out_has '"step_seconds": null' # of drift, whose encoder is not there yet
[ ! -e f ] || fails 'a dry run wrote something'

# what the run directory says makes the stage again
sed 's/^minutes:.*/steps: 1/; s/^eval-every:.*/eval-every: 0/; s/^# asked.*//; s/^steps: .*/steps: 1/' d/drift/config.yaml |
    awk '!(/^steps:/ && seen++)' >drift.yaml
expect 0 train drift --config drift.yaml --output-dir replay --no-progress
