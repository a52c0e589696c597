# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# A run that is interrupted, by SIGINT or by SIGKILL at any moment, goes on to the bits it would have had.

LW_CACHE=$PWD/cache
export LW_CACHE
ddpm='train ddpm --data synth:16 --limit 64 --no-progress --base-channels 8 --channel-mult 1,2 --num-res-blocks 1
 --attn-resolutions 8 --heads 2 --norm-groups 4 --batch-size 2 --log-every 5 --save-every 5 --threads 1'
weights=checkpoints/last/optimizer.safetensors

# Starts a run that would take long and waits until it has a checkpoint.
start() {
    "$program" $ddpm --steps 100000 --output-dir "$1" >"$out" 2>"$err" </dev/null &
    pid=$!
    tries=0
    while [ ! -e "$1/checkpoints/last" ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fails "$1: no checkpoint after a minute"
        sleep 0.1
    done
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
