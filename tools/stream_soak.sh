#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stream_soak.sh PROGRAM [MINUTES [OPTION..]]: does a stream that is served to a client grow or slow down?
#
# Runs `PROGRAM stream --input test --serve` (with further OPTIONs: a model, say) for so many minutes (60) beside a
# client that takes all frames, and samples memory (VmRSS) and the median of glass to glass once a minute, six times
# in runs below five minutes. Exits 1 when memory has grown by more than 2 % (and 256 KiB) from the second sample to
# the last, or when the mean latency of the later half is above that of the earlier half by more than a quarter and
# three of its standard deviations. Without curl there is no client, and a line says so.
set -eu
program=$1
minutes=${2:-60}
shift "$(($# < 2 ? $# : 2))"
dir=$(mktemp -d "${TMPDIR:-/tmp}/stream_soak.XXXXXX")
stream='' client=''
clean() {
    [ -z "$client" ] || kill "$client" 2>/dev/null || :
    [ -z "$stream" ] || kill "$stream" 2>/dev/null || :
    wait 2>/dev/null || :
    rm -rf "$dir"
}
trap clean EXIT
trap 'exit 130' INT TERM
number() { awk "BEGIN { print $1 }"; }
seconds=$(number "$minutes * 60")
samples=$(number "$minutes < 5 ? 6 : int($minutes)")
every=$(number "$seconds / $samples")

: >"$dir/log"
"$program" stream --input test --serve 127.0.0.1:0 --json "$@" >"$dir/lines" 2>"$dir/log" &
stream=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    url=$(sed -n 's/.*page: \(http:[^ ]*\).*/\1/p' "$dir/log")
    [ -z "$url" ] || break
    sleep 0.2
done
[ -n "$url" ] || { cat "$dir/log" >&2; echo "stream_soak: no page" >&2; exit 1; }
if command -v curl >/dev/null; then
    curl -s -N -o /dev/null "${url}stream.mjpg" &
    client=$!
else
    echo 'no curl: no client looks'
fi

# median of glass to glass of the seconds since line $1 of the log
median() {
    tail -n "+$1" "$dir/lines" | sed -n 's/.*"glass_to_glass":{"p50":\([0-9.e+-]*\).*/\1/p' | sort -g |
        awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "nan" }'
}
echo '  seconds    KiB  glass to glass p50, ms'
line=1 i=0
while [ "$i" -lt "$samples" ]; do
    sleep "$every"
    i=$((i + 1))
    kill -0 "$stream" 2>/dev/null || { cat "$dir/log" >&2; echo 'stream_soak: the stream ended' >&2; exit 1; }
    rss=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$stream/status")
    ms=$(median "$line")
    line=$(($(wc -l <"$dir/lines") + 1))
    printf '%9s %6s  %s\n' "$(number "$i * $every")" "$rss" "$ms"
    echo "$rss $ms" >>"$dir/samples"
done
[ -z "$client" ] || kill -0 "$client" 2>/dev/null || { echo 'stream_soak: the client was dropped' >&2; exit 1; }
awk 'NF != 2 { print "stream_soak: no memory or latency to be read"; exit bad = 1 }
    NR > 1 && $2 != "nan" { n++; rss[n] = $1; ms[n] = $2 }
    END {
        if (bad) exit 1
        if (n < 4) { print "stream_soak: too few samples with frames"; exit 1 }
        half = int(n / 2)
        for (i = 1; i <= half; i++) { a += ms[i] / half; q += ms[i] * ms[i] / half }
        for (i = half + 1; i <= n; i++) b += ms[i] / (n - half)
        noise = sqrt(q - a * a > 0 ? q - a * a : 0)
        grown = rss[n] - rss[1]
        printf "memory %+.2f %%, latency %.3f to %.3f ms (deviation %.3f)\n", 100 * grown / rss[1], a, b, noise
        if (grown > 0.02 * rss[1] && grown > 256) { print "memory grows"; bad = 1 }
        if (b > 1.25 * a && b > a + 3 * noise) { print "latency grows"; bad = 1 }
        exit bad
    }' "$dir/samples"
