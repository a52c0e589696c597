# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway stream: the same frames by every way in and out, what is kept when input ends badly, and every refusal.

# a file, a pipe, a folder and what threads do not change: bit for bit
expect 0 stream --input test:96x64@25 --num-frames 12 --every-frame --output a.y4m,folder:a,a.mjpeg,md5
out_has '12 frames read, 12 computed, 12 written'
out_has 'dropped 0 before the network, 0 behind it; 0 repeated'
out_has 'glass_to_glass'
out_has '96x64 rgb24, 25 fps'
sum=$(sed -n 's/^md5 //p' "$out")
[ ${#sum} -eq 32 ] || fails "no sum in the summary: '$sum'"
expect 0 stream --input folder:a --every-frame --output md5
out_has "md5 $sum"
expect 0 stream --input a.y4m --every-frame --output md5,b.y4m
out_has 'yuv420p, BT.601, full range, 25 fps'
sum=$(sed -n 's/^md5 //p' "$out")
for n in 1 3; do
    expect 0 stream --input a.y4m --every-frame --threads $n --output md5
    out_has "md5 $sum"
done
"$program" stream --input - --every-frame --output - <a.y4m >c.y4m 2>"$err" || fails 'a pipe'
cmp -s b.y4m c.y4m || fails 'a pipe gives other frames'
[ ! -s "$err" ] || fails 'a pipe: stderr is not empty'
expect 0 stream --input a.mjpeg --every-frame
out_has '12 written'

# every frame of another rate, again and again
expect 0 stream --input a.y4m --every-frame --loop --num-frames 30 --fps 50 --output d.y4m --json
out_has '"frames_out":30'
out_has '"summary":true'
head -n 1 d.y4m | grep -q 'F50:1' || fails 'the rate of d.y4m'

# in real time: frames come when they are due
expect 0 stream --input test:64x32@40 --num-frames 60 --output e.y4m --json
[ "$(wc -l <"$out")" -ge 2 ] || fails 'no line after a second'
expect 0 stream --input e.y4m --every-frame
out_has '60 written' # whatever was dropped, time went on

# numbers of the frames: a moving picture is stable, one that fades is not
expect 0 stream --input test:64x32 --num-frames 120 --every-frame --drift-metrics drift
out_has 'drift/report.html: stable: variance of the last tenth 0.8'
[ "$(wc -l <drift/metrics.csv)" -eq 121 ] || fails 'rows of metrics.csv'
head -n 1 drift/metrics.csv | grep -qx 'frame,variance,temporal,colour,repetition,detail,spread' || fails 'metrics.csv'
for file in frame_000000.png frame_000100.png variance.svg spread.svg metrics.json report.html; do
    [ -s "drift/$file" ] || fails "no drift/$file"
done
[ ! -e drift/frame_000250.png ] || fails 'a frame that was not there'
expect 0 stream --input folder:a --every-frame --drift-metrics drift2 --drift-beside drift --json
out_has '"stable":true'
grep -q 'beside' drift2/variance.svg || fails 'nothing beside'
grep -q '"input_series"' drift2/metrics.json || fails 'the input is not in metrics.json'
grep -q '"change":1.0,' "$out" || fails 'identity changes nothing'
expect 2 stream --input folder:a --drift-beside drift
expect 4 stream --input folder:a --every-frame --drift-metrics drift3 --drift-beside none

# made worse before the network, which then stands beside it
expect 0 stream --input a.y4m --every-frame --degrade gray --split --output folder:gray,md5
out_has '12 written'
expect 0 stream --input folder:gray --every-frame --output gray.y4m
head -n 1 gray.y4m | grep -q 'W192 H64' || fails 'the size of gray.y4m'
for n in 1 3; do
    expect 0 stream --input test:96x64 --num-frames 6 --every-frame --degrade blur:1.2,noise:9 --threads $n --output md5
    sed -n 's/^md5 //p' "$out" >>worse
done
expect 0 stream --input test:96x64 --num-frames 6 --every-frame --degrade blur:1.2,noise:9 --seed 5 --output md5
sed -n 's/^md5 //p' "$out" >>worse
[ "$(sort -u worse | wc -l)" -eq 2 ] || fails 'threads change noise, or seeds do not'
# the verdict's input is the frame before it was made worse
for how in '' '--degrade gray,noise:40'; do
    # shellcheck disable=SC2086
    expect 0 stream --input test:64x32 --num-frames 120 --every-frame $how --drift-metrics drift7 --json
    sed -n '/"input_series"/,$p' drift7/metrics.json >>"input$how"
done
cmp 'input' 'input--degrade gray,noise:40' || fails 'the verdict takes damaged frames for its input'
cp a.y4m mine.y4m
expect 2 stream --input mine.y4m --num-frames 1 --output null,./mine.y4m
err_has './mine.y4m is --input, and --output would replace it'
cmp -s a.y4m mine.y4m || fails 'the input was replaced'
expect 2 stream --input mine.y4m --num-frames 1 --record mine.y4m
expect 2 stream --input a.y4m --degrade mud
expect 2 stream --input a.y4m --models kl
expect 2 stream --input a.y4m --split --drift-metrics drift9

# raw frames, without a header
head -c 144 /dev/zero >zeros
expect 0 stream --input zeros --raw 8x4:yuv420p --every-frame
out_has '3 written'
expect 0 stream --input zeros --raw 4x4:rgb24 --every-frame --output md5
out_has "md5 $(md5sum <zeros | cut -c1-32)"

# through a network: the same bits for any number of threads and on a device with memory of its own
"$make_model" autoencoder kl || fails 'make_model autoencoder'
"$make_model" encoder enc || fails 'make_model encoder'
expect 0 stream --input a.y4m --every-frame --model kl --output md5,folder:kl-out --json
out_has '"model":"kl"'
out_has '"size":[96,64]'
sum=$(sed -n 's/.*"md5":"\([0-9a-f]*\)".*/\1/p' "$out" | tail -n 1)
[ ${#sum} -eq 32 ] || fails "no sum in the summary: '$sum'"
expect 0 stream --input a.y4m --every-frame --model kl --threads 1 --output md5
out_has "md5 $sum"
LW_DEVICE=cpu-discrete
export LW_DEVICE
expect 0 stream --input a.y4m --every-frame --model sd-vae:kl --threads 3 --output md5
unset LW_DEVICE
out_has "md5 $sum"
expect 0 stream --input a.y4m --every-frame --model kl --size 32x32 --output f.y4m
out_has 'kl, 32x32'
head -n 1 f.y4m | grep -q 'W32 H32' || fails 'the size of f.y4m'
expect 0 stream --input a.y4m --every-frame --model kl --size 32x32 --fit border --output-size input --output g.y4m
head -n 1 g.y4m | grep -q 'W96 H64' || fails 'the size of g.y4m'
expect 0 stream --input a.y4m --every-frame --model kl --precision bf16
expect 0 stream --input a.y4m --every-frame --model kl --size 32x32 --verbose --output null,v.y4m
err_has 'input a.y4m: 96x64 yuv420p, BT.601, full range, 25 fps'
err_has 'output v.y4m: 32x32 yuv420p'
err_has 'size: 96x64, cropped to 64x64 at 16,0, resized to 32x32 (floats, bilinear, antialiased)'
err_has 'frame_to_rgb'
err_has "'decoder.conv_out.weight'"
grep -q -- '-- memory' "$err" && fails 'the map of memory is no step'
expect 2 stream --input a.y4m --model kl --size 33x32
err_has 'multiples of 2: 34x32 is nearest to 33x32'
expect 2 stream --input a.y4m --size 33
expect 3 stream --input a.y4m --model enc
err_has 'no autoencoder: it makes no latents'
expect 4 stream --input a.y4m --model taef2:none

# through a U-Net: in pixels, in latents, conditioned on frames
for kind in plain four frames; do
    "$make_model" $kind $kind || fails "make_model $kind"
done
expect 0 stream --input a.y4m --every-frame --model plain --steps 2 --strength .5 --output md5
out_has 'plain, 16x16'
sum=$(sed -n 's/^md5 //p' "$out")
expect 0 stream --input a.y4m --every-frame --model plain --steps 2 --strength .5 --threads 1 --output md5
out_has "md5 $sum"
expect 0 stream --input a.y4m --every-frame --model plain --steps 2 --strength .9 --output md5
grep -q "$sum" "$out" && fails 'the strength changed nothing'
expect 0 stream --input a.y4m --every-frame --model plain --steps 2 --strength .5 --noise fresh --output md5
grep -q "$sum" "$out" && fails 'fresh noise is the fixed one'
expect 0 stream --input a.y4m --every-frame --model plain --size 24x16 --sampler dpm-solver --steps 4 --seed 3
out_has 'plain, 24x16'
for w in 4 32; do
    expect 0 stream --input a.y4m --every-frame --num-frames 1 --model plain --size 64x64 --window $w --split --verbose
    err_has "attention in windows of $w: the first picture is "
    grep -q 'is 0 levels (rms), at most 0,' "$err" && same=yes || same=no
    [ $w = 32 ] && want=yes || want=no # as wide as the maps: attention over all places
    [ $same = $want ] || fails "windows of $w: the same picture: $same"
done
expect 0 stream --input a.y4m --every-frame --model plain --steps 3 --output md5
sum=$(sed -n 's/^md5 //p' "$out")
for n in 1 3; do
    expect 0 stream --input a.y4m --every-frame --model plain --stream-batch 3 --threads $n --output md5
    out_has '12 frames read, 12 computed, 12 written'
    out_has '3 frames are computed together: each comes 2 frames later'
    out_has "md5 $sum"
done
expect 2 stream --input a.y4m --model plain --stream-batch 3 --steps 2
expect 2 stream --input a.y4m --model plain --stream-batch 3 --sampler dpm-solver
expect 2 stream --input a.y4m --model plain --stream-batch 3 --similarity .9
expect 2 stream --input a.y4m --model frames --stream-batch 2
err_has 'is shown its former answers'
expect 2 stream --input a.y4m --model kl --stream-batch 2
expect 2 stream --input a.y4m --model plain --precision int8
err_has 'leeway quantize'
expect 0 quantize plain --n 4 --batch-size 2 --output-dir plain-int8
for n in 1 3; do
    expect 0 stream --input a.y4m --every-frame --model plain-int8 --precision int8 --threads $n --output md5
    sed -n 's/^md5 //p' "$out" >>int8
done
[ "$(sort -u int8 | wc -l)" -eq 1 ] || fails 'int8: threads change bits'
expect 0 stream --input a.y4m --every-frame --model four --latents kl --steps 2
out_has 'four, 32x32'
expect 0 stream --input a.y4m --every-frame --model frames --output-size input --output h.y4m
head -n 1 h.y4m | grep -q 'W64 H64' || fails 'the size of h.y4m'
expect 0 stream --input a.y4m --every-frame --num-frames 5 --model frames --loop --reset-every 1 --output md5
sum=$(sed -n 's/^md5 //p' "$out")
expect 0 stream --input a.y4m --every-frame --num-frames 5 --model frames --output md5
grep -q "$sum" "$out" && fails 'former answers changed nothing'
head -c 3840 /dev/zero >still # 30 frames
expect 0 stream --input still --raw 16x8:gray --every-frame --model frames --reset-every 2 --output folder:still-out
cmp -s still-out/frame_000000.png still-out/frame_000001.png && fails 'the second answer is the first'
cmp -s still-out/frame_000000.png still-out/frame_000002.png || fails 'a reset leaves something'
expect 0 stream --input still --raw 16x8:gray --every-frame --drift-metrics drift4 # as black as what came in
out_has 'drift4/report.html: stable'
expect 0 stream --input a.y4m --every-frame --model kl --feed-back --drift-metrics drift5 --json
grep -q '"input_variance_ratio":1.0' "$out" || fails 'fed its own pictures, a network has the first frame only'
expect 0 stream --input still --raw 16x8:gray --every-frame --similarity 0.98
out_has '30 frames read, 30 computed, 30 written'
out_has '27 of those computed were similar'
expect 0 stream --input test:96x64@25 --num-frames 30 --every-frame --similarity 0.9999 --json
grep -q '"similar":29' "$out" && fails 'everything was skipped'
expect 0 stream --input a.y4m --every-frame --model kl --feed-back --output md5
sum=$(sed -n 's/^md5 //p' "$out")
expect 0 stream --input a.y4m --every-frame --model kl --output md5
grep -q "$sum" "$out" && fails 'feeding back changed nothing'
# the decoder beside the network of the next frame: the same bits, with frames in flight and skipped ones too
for more in '--steps 2' '--stream-batch 3' '--similarity .95 --steps 2 --reset-every 5'; do
    # shellcheck disable=SC2086
    expect 0 stream --input a.y4m --every-frame --model four --latents kl $more --output md5
    sum=$(sed -n 's/^md5 //p' "$out")
    for n in 1 2 3; do
        # shellcheck disable=SC2086
        expect 0 stream --input a.y4m --every-frame --model four --latents kl $more --pipeline --threads $n --output md5
        out_has "md5 $sum"
        out_has 'had their network beside the decoder of one before'
    done
done
expect 0 stream --input test:96x64@25 --num-frames 50 --as-fast --model kl --pipeline --drift-metrics drift6 --json
out_has '"beside":'
grep -q '"input_series"' drift6/metrics.json || fails 'the input of a pipeline'
expect 4 stream --input a.y4m --every-frame --model kl --pipeline --output no/such/dir.y4m
expect 2 stream --input a.y4m --model plain --pipeline
err_has '--pipeline runs the decoder of latents beside the network, and plain has none'
expect 2 stream --input a.y4m --model kl --pipeline --split
err_has 'with --split the network waits for the picture'
expect 2 stream --input a.y4m --model kl --pipeline --feed-back
expect 2 stream --input a.y4m --model four
err_has 'name the autoencoder'
expect 2 stream --input a.y4m --model plain --sampler ancestral
expect 2 stream --input a.y4m --model plain --size 17x16

# cut off: what was whole is kept
head -c "$(($(wc -c <a.y4m) - 100))" a.y4m >cut.y4m
expect 3 stream --input cut.y4m --every-frame --output kept.y4m
err_has 'cut.y4m: frame 11: cut off after 9116 of 9216 bytes'
out_has '11 written'
[ "$(wc -l <"$err")" -eq 1 ] || fails 'more than a line on stderr'
expect 0 stream --input kept.y4m --every-frame
out_has '11 written'

# interrupted: what was written plays
"$program" stream --input test:64x32@50 --output int.y4m,int.mjpeg >"$out" 2>"$err" </dev/null &
pid=$!
sleep 1
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fails 'SIGINT is exit code 130'
out_has 'frames a second'
expect 0 stream --input int.y4m --every-frame
expect 0 stream --input int.mjpeg --every-frame
# also where nothing comes
mkfifo silent
"$program" stream --input silent --raw 8x4:gray >"$out" 2>"$err" </dev/null &
pid=$!
exec 9>silent
sleep 1
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fails 'SIGINT while a pipe says nothing'
exec 9>&-

# a camera that is not there; JPEGs through a pipe, one of them damaged
expect 4 stream --input v4l2:/dev/video99
err_has 'v4l2:/dev/video99: cannot open'
expect 4 stream --input a.y4m --every-frame --output v4l2:/dev/video99
cat a.mjpeg a.mjpeg | "$program" stream --input - --every-frame --output j.y4m >"$out" 2>"$err" || fails 'JPEGs on standard input'
out_has '24 written'
{ cat a.mjpeg; head -c 900 a.mjpeg; cat a.mjpeg; } >hole.mjpeg
cat hole.mjpeg | "$program" stream --input - --every-frame >"$out" 2>"$err" || fails 'a hole in a pipe'
out_has '1 damaged frames were passed over'
out_has '24 written'
{ head -c 900 a.mjpeg; head -c 900 a.mjpeg; printf '\377\331'; } | "$program" stream --input - >"$out" 2>"$err" # none whole
[ $? -eq 3 ] || fails 'damaged frames alone are exit code 3'
err_has 'no frame that is whole: all 2 were damaged'
expect 3 stream --input hole.mjpeg --every-frame
out_has '12 written'

# frames of another run do not stay beside new ones; other files do
mkdir again
echo note >again/note.txt
expect 0 stream --input test:96x64 --num-frames 9 --every-frame --output folder:again
expect 2 stream --input test:96x64 --num-frames 3 --every-frame --output later.y4m,folder:again
err_has 'again holds something already'
# nor is one file written twice, however it is spelt
for two in twice.y4m ./twice.y4m again/../twice.y4m folder:twice.y4m/; do
    expect 2 stream --input test --num-frames 2 --output "twice.y4m,md5,$two"
    err_has "outputs twice.y4m and $two are the same: leave one out"
done
expect 2 stream --input test --num-frames 2 --output md5,twice.y4m --record ./twice.y4m
err_has 'outputs twice.y4m and ./twice.y4m are the same'
[ ! -e twice.y4m ] || fails 'nothing is written twice'
[ ! -e later.y4m ] || fails 'nothing is written beside a refused folder'
[ "$(ls again | wc -l)" -eq 10 ] || fails 'a refused folder stays as it is'

# a file that may not grow: whole frames stay, with none there is no file, and frames_out counts what is there
limited() {
    (trap '' XFSZ; ulimit -f 40; "$program" stream --every-frame --num-frames 9 "$@" >"$out" 2>"$err")
    [ $? -eq 4 ] || fails 'a file that may not grow is exit code 4'
}
limited --input test:96x64 --json --output some.y4m
err_has 'the frames before it are kept'
frames=$(($(wc -c <some.y4m) / (6 + 96 * 64 * 3 / 2)))
out_has "\"frames_out\":$frames,"
limited --input test:640x480 --json --output no.y4m
err_has 'no frame is kept'
out_has '"frames_out":0,'
[ ! -e no.y4m ] || fails 'a file without a frame is left'

# a full disk and a reader that went away
if [ -c /dev/full ]; then
    "$program" stream --input a.y4m --every-frame --output - <a.y4m >/dev/full 2>"$err"
    [ $? -eq 4 ] || fails 'a full disk is exit code 4'
fi
expect 4 stream --input a.y4m --output no/such/dir.y4m
expect 4 stream --input missing.y4m
err_has 'missing.y4m: cannot open'
printf 'YUV4MPEG2 W9 H9 C420p10\n' >deep.y4m
expect 3 stream --input deep.y4m
err_has 'ffmpeg'
# video files: the module that reads and writes them, and what is said without it
cp "$program" alone
./alone stream --input clip.mp4 2>"$err"
[ $? -eq 3 ] || fails 'no module is exit code 3'
err_has 'leeway-libav.so'
err_has 'ffmpeg -v error -i FILE -f yuv4mpegpipe - | leeway stream --input -'
./alone stream --input a.y4m --every-frame --output x.mp4 >"$out" 2>"$err"
[ $? -eq 3 ] || fails 'no module for an output is exit code 3'
err_has '--output - | ffmpeg -i - FILE'
./alone info | grep -q '^without.* video' || fails 'info without a module'
[ ! -e x.mp4 ] || fails 'x.mp4 is there'
rm alone
if "$program" info | grep -q '^with .* video'; then
    expect 4 stream --input clip.mp4
    err_has 'clip.mp4: '
    head -c 3000 /dev/zero >none.mkv
    expect 3 stream --input none.mkv
    err_has 'none.mkv: frame 0: no video file'
    cp "$corpus/video/list.m3u8" list.mp4 # a list of files is no video
    expect 3 stream --input list.mp4
    expect 0 stream --input a.y4m --every-frame --output v.mp4 --record w.mp4
    cmp -s v.mp4 w.mp4 || fails '--record gives another file'
    expect 0 stream --input v.mp4 --every-frame --loop --num-frames 20
    out_has '96x64 yuv420p, BT.601, limited range, 25 fps'
    out_has '20 written'
    head -c "$(($(wc -c <v.mp4) / 2))" v.mp4 >cut.mp4
    expect 3 stream --input cut.mp4 --every-frame --output kept.mp4
    err_has 'cut off'
    expect 0 stream --input kept.mp4 --every-frame
    "$program" stream --input test:64x32@50 --output int.mp4 >"$out" 2>"$err" </dev/null &
    pid=$!
    sleep 1
    kill -INT $pid
    wait $pid
    [ $? -eq 130 ] || fails 'SIGINT is exit code 130'
    expect 0 stream --input int.mp4 --every-frame
    clip=${LW_TEST_DATA-}/video/bigbuckbunny.mp4
    if [ -f "$clip" ] && command -v ffmpeg >/dev/null; then # the file is what ffmpeg pipes
        expect 0 stream --input "$clip" --every-frame --num-frames 9 --output md5
        sum=$(sed -n 's/^md5 //p' "$out")
        ffmpeg -v error -i "$clip" -frames:v 9 -f yuv4mpegpipe - |
            "$program" stream --input - --every-frame --output md5 >"$out" 2>"$err" || fails 'a pipe of ffmpeg'
        out_has "md5 $sum"
    fi
else
    echo 'skipped: no leeway-libav.so'
fi

expect 2 stream
expect 2 stream --input clip.wav
err_has 'there are - (y4m, JPEGs, or --raw WxH:FORMAT), test[:WxH@FPS], folder:DIR'
expect 2 stream --input test:10x10
expect 2 stream --input test:axb
expect 2 stream --input a.y4m --output x.gif
expect 2 stream --input a.y4m --output -,-
expect 2 stream --input a.y4m --output - --json
expect 2 stream --input a.y4m --realtime --as-fast
expect 4 stream --input a.y4m --model none
expect 2 stream --input zeros --raw 8x4:yuv9
expect 2 stream --input test --raw 8x4:gray
expect 2 stream --input test --loop --every-frame

# Largest difference between the bytes of two files.
largest() {
    cmp -l "$1" "$2" | awk '{ a = oct($2) - oct($3); if (a < 0) a = -a; if (a > m) m = a } END { print m + 0 }
        function oct(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = 8 * v + substr(s, i, 1); return v }'
}

# FORMAT RANGE MATRIX: pixels of YUV as ffmpeg and as we make them differ by a level at most, both ways.
judge() {
    words="scale=flags=neighbor+accurate_rnd+full_chroma_int"
    case $2 in limited) r=tv ;; *) r=pc ;; esac
    ffmpeg -v error -y -i bbb.y4m -frames:v 3 -vf scale=out_range=$r -pix_fmt "$1" -f rawvideo in.raw || fails ffmpeg
    ffmpeg -v error -y -f rawvideo -s 256x144 -pix_fmt "$1" -i in.raw \
        -vf "$words:in_range=$r:in_color_matrix=$3" -pix_fmt rgb24 -f rawvideo want.raw || fails ffmpeg
    rm -rf judged
    expect 0 stream --input in.raw --raw "256x144:$1" --range "$2" --matrix "$3" --every-frame --output folder:judged
    ffmpeg -v error -y -i judged/frame_%06d.png -pix_fmt rgb24 -f rawvideo got.raw || fails ffmpeg
    most=$(largest want.raw got.raw)
    [ "$(wc -c <want.raw)" = "$(wc -c <got.raw)" ] || fails "$*: other sizes"
    [ "$most" -le 1 ] || fails "$*: $most levels from ffmpeg"
}

# the page: who else may reach it is said, and a port in use is one line
expect 2 stream --input test --num-frames 2 --insecure
err_has '--insecure is for --serve'
expect 0 info
if grep -q "^with .* web" "$out"; then
    expect 2 stream --input test --num-frames 2 --serve 0.0.0.0:0
    err_has 'add --tls CERT,KEY, or --insecure'
    expect 4 stream --input test --num-frames 2 --serve 127.0.0.1:0 --tls none.pem,none.key
    err_has 'none.pem: No such file'
    expect 0 stream --input test --num-frames 5 --serve 127.0.0.1:0
    err_has 'page: http://127.0.0.1:'
    expect 0 stream --input test:96x64@100 --num-frames 50 --model kl --pipeline --serve 127.0.0.1:0
    err_has 'page: http://127.0.0.1:'
else
    echo 'skipped: built without libwebsockets'
    expect 3 stream --input test --num-frames 2 --serve
fi

# what a machine can do; plain C reaches its end early
LW_ISA=ref
export LW_ISA
expect 0 stream --doctor --json
out_has '"side_at_15_fps":'
out_has '"isa":"ref"'
out_has '"device":"cpu"'
unset LW_ISA
expect 0 stream --doctor
out_has 'device    cpu computes frames'
expect 2 stream
err_has '--input is missing'
expect 2 stream --input browser
err_has 'add --serve'

# real clips, and ffmpeg as a judge, where they are
if ! command -v ffmpeg >/dev/null; then
    echo 'skipped: no ffmpeg to compare with'
elif [ -z "${LW_TEST_DATA-}" ] || [ ! -f "$LW_TEST_DATA/video/bbb_256x144_132f.y4m.zst" ]; then
    echo 'skipped: LW_TEST_DATA has no video'
else
    zstd -dcq "$LW_TEST_DATA/video/bbb_256x144_132f.y4m.zst" | head -c 1106124 >bbb.y4m # 20 frames
    for form in yuv420p yuv422p yuv444p nv12 yuyv422; do
        judge $form limited bt601
        judge $form full bt709
    done
fi
