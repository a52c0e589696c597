# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# A run that is interrupted, by SIGINT or by SIGKILL at any moment, goes on to the bits it would have had. Other
# ends of a terminal, a reader or a disk cost nothing that was done.

LW_CACHE=$PWD/cache
export LW_CACHE
ddpm='train ddpm --data synth:16 --limit 64 --no-progress --base-channels 8 --channel-mult 1,2 --num-res-blocks 1
 --attn-resolutions 8 --heads 2 --norm-groups 4 --batch-size 2 --log-every 5 --save-every 5 --threads 1'
weights=checkpoints/last/optimizer.safetensors

# Starts a run that would take long and waits until it has a checkpoint.
start() {
    "$program" $ddpm --steps 100000 --output-dir "$1" >"$out" 2>"$err" </dev/null &
    pid=$!
    wait_for "$1: no checkpoint after a minute" [ -e "$1/checkpoints/last" ]
}

newest() {
    step=$(readlink "$1/checkpoints/last" | tr -dc '0-9' | sed 's/^0*//')
}

start int
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fails 'SIGINT is exit code 130'
newest int
goal=$(((step / 5 + 1) * 5))
start kill
kill -KILL $pid
wait $pid
newest kill
[ "$((goal / 5))" -gt "$((step / 5))" ] || goal=$(((step / 5 + 1) * 5))

expect 0 $ddpm --steps $goal --output-dir int --resume
expect 0 $ddpm --steps $goal --output-dir kill --resume
expect 0 $ddpm --steps $goal --output-dir whole
cmp -s int/$weights whole/$weights || fails 'after SIGINT: other bits'
cmp -s kill/$weights whole/$weights || fails 'after SIGKILL: other bits'
cmp -s int/checkpoints/last/ema/diffusion_pytorch_model.safetensors \
    whole/checkpoints/last/ema/diffusion_pytorch_model.safetensors || fails 'after SIGINT: another average'
[ "$(wc -l <whole/loss_log.csv)" -eq "$(wc -l <kill/loss_log.csv)" ] || fails 'after SIGKILL: rows of loss_log.csv'
find int kill -name '*tmp*' >left.txt
[ ! -s left.txt ] || fails "left behind: $(cat left.txt)"

# a terminal that closes sends SIGHUP twice: what was done is saved
quiet="${ddpm%--log-every 5*} --threads 1 --log-every 1"
started() {
    wait_for "$1: no step after a minute" grep -qs "^1," "$1/loss_log.csv"
}
"$program" $quiet --steps 100000 --output-dir hup >"$out" 2>"$err" </dev/null &
pid=$!
started hup
kill -HUP $pid
kill -HUP $pid
wait $pid
[ $? -eq 130 ] || fails 'SIGHUP is exit code 130'
[ -e hup/checkpoints/last ] || fails 'SIGHUP: no checkpoint'
# under nohup it is ignored
(trap '' HUP && exec "$program" $quiet --steps 100000 --output-dir nohup >"$out" 2>"$err" </dev/null) &
pid=$!
started nohup
kill -HUP $pid
sleep 0.3
kill -0 $pid || fails 'SIGHUP ended a run under nohup'
kill -TERM $pid
wait $pid
[ $? -eq 130 ] || fails 'SIGTERM is exit code 130'

# nobody reads stderr any more: the run goes on
chatty="${quiet%--no-progress*} ${quiet#*--no-progress}"
(
    "$program" $chatty --steps 10 --verbose --output-dir pipe 2>&1 >"$out" </dev/null
    echo $? >code
) | head -n 1 >first
[ -s first ] || fails 'no line on stderr'
[ "$(cat code)" -eq 0 ] || fails "a broken stderr: exit code $(cat code)"
[ -e pipe/checkpoints/last ] || fails 'a broken stderr: no checkpoint'
# nobody reads stdout: that is an error, and named
(
    sleep 0.2
    "$program" data list 2>"$err"
    echo $? >code
) | true
[ "$(cat code)" -eq 4 ] || fails "a broken stdout: exit code $(cat code)"
err_has 'cannot write to stdout: Broken pipe'
# a limit on the size of files is a full disk
(
    ulimit -f 8
    "$program" sample whole --n 64 --output big.npy >"$out" 2>"$err" </dev/null
    echo $? >code
)
[ "$(cat code)" -eq 4 ] || fails "ulimit -f: exit code $(cat code)"
err_has 'big.npy'
[ -z "$(find . -name 'big.npy*')" ] || fails "ulimit -f: $(echo big.npy*) left behind"

# what has nothing to save stops at once, in the middle of a batch too
"$program" profile unet --runs 1000 --no-progress >"$out" 2>"$err" </dev/null &
first=$!
"$program" bench unet --no-progress >bench.out 2>&1 </dev/null &
second=$!
"$program" sample whole --n 512 --batch-size 512 --steps 1000 --output x.npy --no-progress >sample.out 2>&1 </dev/null &
third=$!
sleep 4
kill -INT $first $second $third
tries=0
while kill -0 $first 2>/dev/null || kill -0 $second 2>/dev/null || kill -0 $third 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 80 ] || fails "profile, bench or sample goes on after SIGINT: $(ps -o args= $first $second $third)"
    sleep 0.1
done
for pid in $first $second $third; do
    wait $pid
    [ $? -eq 130 ] || fails 'profile, bench or sample after SIGINT: not exit code 130'
done

decodes() {
    [ -n "$(find cache -name '*.tmp' 2>/dev/null)" ]
}

# stops NAME WHEN ARGS...: within two seconds of a SIGINT that comes after so many seconds, or while it is `decoding`
stops() {
    name=$1
    wait_before=$2
    shift 2
    "$program" "$@" >"$out" 2>"$err" </dev/null &
    pid=$!
    if [ "$wait_before" = decoding ]; then
        wait_for "$name: nothing is decoded after a minute" decodes
    else
        sleep "$wait_before"
    fi
    kill -INT $pid 2>/dev/null || fails "$name ended by itself: $(cat "$err")"
    tries=0
    while kill -0 $pid 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 20 ] || fails "$name goes on after SIGINT"
        sleep 0.1
    done
    wait $pid
    [ $? -eq 130 ] || fails "$name after SIGINT: not exit code 130: $(cat "$err")"
}

# between two blocks of arithmetic, before any set is scored
expect 0 train encoder --data synth:16 --limit 64 --objective classify --width 8 --stages 2 --batch-size 8 --steps 1 \
    --output-dir reader
expect 0 train drift --data synth:16 --limit 64 --base-channels 8 --channel-mult 1,2 --num-res-blocks 1 \
    --attn-resolutions 8 --norm-groups 4 --groups 2 --negatives-per-group 2 --positives-per-group 4 --steps 1 \
    --output-dir drift
stops compare 2 compare --drift drift --ddpm whole --reader reader --limit 50000 --n-fid 20000 --n-ddpm 50 --ddim-steps 1 \
    --output-dir compared --no-progress
[ ! -e compared ] || fails 'compare left half a page'

# between two steps of a sample grid; what is done is saved
"$program" ${ddpm%--threads 1} --steps 100000 --sample-every 1 --ddim-steps 900 --output-dir grid >"$out" 2>"$err" </dev/null &
pid=$!
wait_for 'no grid after a minute' [ -d grid/samples ]
sleep 0.3
kill -INT $pid
tries=0
while kill -0 $pid 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 40 ] || fails 'a sample grid goes on after SIGINT'
    sleep 0.1
done
wait $pid
[ $? -eq 130 ] || fails 'a sample grid after SIGINT: not exit code 130'
err_has 'stopped after step 1 of 100000'
grep -q '"pending_grid": true' grid/checkpoints/last/state.json || fails 'SIGINT in a sample grid: the checkpoint does not say so'
expect 0 ${ddpm%--threads 1} --steps 1 --sample-every 1 --ddim-steps 2 --output-dir grid --resume
[ -s grid/samples/step_0000001.png ] || fails 'the grid that SIGINT cut off is not made when the run goes on'
rm -r grid

# before the first step, while pictures are decoded
rm -rf cache
stops 'decoding' decoding train ddpm --data synth:32 --base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8 \
    --norm-groups 4 --batch-size 2 --steps 5 --output-dir undecoded --no-progress
err_has 'interrupted after'
[ -z "$(find cache -name '*.tmp')" ] || fails 'a half cache is left'
# and while another process decodes them
expect 0 data export synth:16 --num-images 30 --output own
expect 0 data sheet folder:own --lines 2 --columns 2 --output own.png
lock=$(ls cache/folder-*.data.lock)
rm "${lock%.lock}"
(
    flock 9
    for does in 'export folder:own --output waited.npy' 'check folder:own' 'sheet folder:own --output waited.png'; do
        stops 'waiting for a cache' 1.5 data $does
        err_has 'waiting for another process that decodes folder:own'
        err_has 'interrupted while another process decodes folder:own'
    done
) 9<"$lock" || exit 1
[ ! -e waited.npy ] || fails 'what waits wrote something'
[ ! -e waited.png ] || fails 'what waits wrote a sheet'
expect 0 data export folder:own --output waited.npy
# and while those of a calibration or held out are
expect 0 train encoder --data synth:32 --limit 64 --objective classify --width 8 --stages 2 --batch-size 8 --steps 1 \
    --output-dir reader32 --no-progress
stops 'calibration' decoding quantize reader32 --calibration synth:32,seed=3 --output-dir uncalibrated --threads 1 --no-progress
err_has 'interrupted after'
[ ! -e uncalibrated ] || fails 'quantize left half a folder'

# within a block of lists, each of all entities
mkdir kb
awk 'BEGIN { for (i = 0; i < 20000; i++) print "r(e" i ",e" (i * 7 + 1) % 20000 ")." }' >kb/train.txt
head -n 4000 kb/train.txt >kb/test.txt
head -n 10 kb/train.txt >kb/valid.txt
: >kb/rules.txt
expect 0 prove kge kb --model transe --steps 1 --eval-every 0 --output-dir kge --no-progress
stops 'prove rank' 1.5 prove rank kb --kge kge --no-progress
