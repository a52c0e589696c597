# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# tools/stream_soak.sh: six seconds of a served stream take no more memory; a stream that slows down is found out. How
# long frames take in so few seconds depends on what else the machine does, and fails nothing here.
soak=${case_file%/tests/*}/tools/stream_soak.sh

mkdir bin
printf '#!/bin/sh\nexec sleep 60\n' >bin/curl
cat >slower <<'EOF'
#!/bin/sh
echo 'page: http://127.0.0.1:1/' >&2
ms=1
while :; do
    echo "{\"glass_to_glass\":{\"p50\":$ms,\"p95\":1}}"
    ms=$((ms * 2))
    sleep 0.2
done
EOF
chmod +x bin/curl slower
PATH=$PWD/bin:$PATH sh "$soak" ./slower 0.05 >"$out" 2>"$err" && fails 'a stream that slows down passes'
out_has 'latency grows'

"$program" stream --input test --num-frames 2 --serve 127.0.0.1:0 >"$out" 2>"$err" || {
    printf 'skipped: this build has no server\n'
    exit 0
}
sh "$soak" "$program" 0.1 >"$out" 2>"$err" || grep -q 'latency grows' "$out" || fails 'a short stream fails'
out_has 'memory '
! grep -q 'memory grows' "$out" || fails 'memory of a short stream grows'
