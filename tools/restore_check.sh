#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# restore_check.sh CLIP OUT [--minutes M] [--degrade CHAIN] [--method ddpm|drift] [options of train]:
# trains a network to restore CLIP (whatever video: reads, or a .y4m.zst) in the run directory OUT, or
# goes on with it where it was interrupted, and compares its held-out frames with the damaged ones, the
# best unsharp mask and the best Wiener filter. Exit code 1: it is not 1 dB better than its input, not
# better than every filter, or still better when told another frame. LEEWAY: the program (build/leeway).
set -eu
usage() {
    sed -n '3,7s/^# //p' "$0" >&2
    exit 2
}
[ $# -ge 2 ] || usage
leeway=${LEEWAY:-$(dirname -- "$0")/../build/leeway}
clip=$1 out=$2 minutes=40 degrade=noise:25 method=ddpm
shift 2
while [ $# -gt 1 ]; do
    case $1 in
    --minutes) minutes=$2 ;;
    --degrade) degrade=$2 ;;
    --method) method=$2 ;;
    *) break ;;
    esac
    shift 2
done
mkdir -p "$out"
case $clip in
*.zst)
    raw=$out/$(basename "$clip" .zst)
    [ -e "$raw" ] || zstd -q -d "$clip" -o "$raw"
    clip=$raw
    ;;
esac
# Two thirds of 4,000 times are noise alone, from which a stream's one step starts; a third of 1,000.
times=
[ "$method" != ddpm ] || times='--timesteps 4000'
resume=
[ ! -e "$out/run/checkpoints/last" ] || resume=--resume
# shellcheck disable=SC2086
[ -e "$out/run/summary.json" ] ||
    "$leeway" train "$method" --data "video:$clip" --image-size 128 --condition frame,previous \
        --degrade "$degrade" --base-channels 32 --channel-mult 1,2,2 --num-res-blocks 1 \
        --attn-resolutions 32 --norm-groups 8 --dropout 0 --lr 2e-3 --scheduler cosine --batch-size 2 \
        --precision bf16 --ema-decay 0.998 $times --minutes "$minutes" --save-every 200 --keep-last-k-checkpoints 2 \
        --eval-every 500 --sample-every 500 --output-dir "$out/run" $resume "$@"
row=$(grep '"psnr":' "$out/run/metrics.jsonl" | tail -n 1)
value() {
    printf '%s\n' "$row" | sed -n "s/.*\"$1\": *\([-0-9.eE]*\).*/\1/p"
}
printf '%-28s %s\n' "held-out frames of" "$(basename "$clip"), $degrade, step $(value step)"
for name in psnr_input psnr_unsharp psnr_wiener psnr psnr_swapped; do
    case $name in
    psnr_input) what='damaged' ;;
    psnr_unsharp) what='unsharp mask' ;;
    psnr_wiener) what='Wiener filter' ;;
    psnr) what='the network' ;;
    *) what='the network, frame mirrored' ;;
    esac
    printf '%-28s %7.2f dB\n' "$what" "$(value "$name")"
done
awk "BEGIN { exit !($(value psnr) >= $(value psnr_input) + 1 && $(value psnr) > $(value psnr_best) &&
                    $(value psnr_swapped) < $(value psnr_best)) }" || {
    echo 'not better yet'
    exit 1
}
