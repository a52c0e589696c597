# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# leeway encode: what it writes and says, an encode that is interrupted, and every refusal.

LW_CACHE=$PWD/cache
export LW_CACHE
"$make_model" encoder enc || fails 'make_model encoder'
"$make_model" plain net || fails 'make_model plain'
"$make_model" four four || fails 'make_model four'
few='--data synth:16 --limit 40'

# shellcheck disable=SC2086
{
    expect 0 encode enc $few --layer pooled,s1 --output a.safetensors --threads 1
    out_has 'leeway (' # the network, its parameters
    out_has 'pooled     [40,32]'
    out_has 's1         [40,8,16,16]'
    out_has 'decode '
    out_has 'a.safetensors.json'
    expect 0 encode --model enc $few --layers pooled,s1 --output b.safetensors --threads 3 --batch-size 7 --json
    out_has '"layers": {'
    out_has '"pooled": [40, 32]'
    out_has '"rows": 40'
    out_has '"forward_seconds": '
    cmp -s a.safetensors b.safetensors || fails 'other bytes with other threads and batches'
    expect 0 inspect a.safetensors
    out_has 'labels'
    out_has 'preparation'
    grep -q '"rows": \[0, 1, 2,' a.safetensors.json || fails 'a.safetensors.json: rows'
    grep -q '"num_images": 40' a.safetensors.json || fails 'a.safetensors.json: num_images'

    # the same pictures, through `run`
    expect 0 encode enc $few --output pooled.npy
    out_has 'pooled     [40,32]'
    expect 0 encode enc $few --layer logits --num-images 3 --seed 4 --split held-out --output d.npz
    out_has 'logits     [3,5]'

    # only said
    expect 0 encode enc $few --layer s0 --output dry.npz --dry-run
    out_has 'dry.npz would have 320.2 KiB'
    out_has '(640.3 KiB of disk while it is written, and 30.0 KiB of decoded pictures in the cache)'
    expect 0 encode enc $few --layer s0 --output dry.npz --dry-run --json
    out_has '"predicted_seconds": '
    [ -z "$(find . -name 'dry.npz*')" ] || fails 'a dry run wrote something'

    # refusals
    expect 2 encode enc $few --output x.txt
    err_has 'ends in .safetensors, .npz or .npy'
    expect 2 encode enc $few --layer s9 --output x.npy
    err_has "enc has no output 's9': there are logits, pooled, s0, s1, s2, s3"
    expect 2 encode enc $few --layer pooled,pooled --output x.npz
    err_has '--layer pooled is there twice'
    expect 2 encode enc $few --layer pooled,s1 --output x.npy
    err_has 'an .npy holds one layer'
    expect 2 encode enc $few --layer s1 --l2-normalize --output x.npy
    err_has '--l2-normalize: s1 has more than one vector'
    expect 3 encode net $few --output x.npy
    err_has 'net: a UNet2DModel is no encoder of pictures'
    expect 3 encode four $few --output x.npy
    expect 2 encode enc --data synth:16 --limit 70000 --output x.npy
    expect 2 encode enc $few --num-images 41 --output x.npy
    err_has '41 pictures are to be drawn'
    expect 2 encode enc $few --precision int8 --output x.npy
    err_has 'leeway quantize'
    expect 2 encode enc --data synth:32 --output x.npy
    err_has 'write synth:16'
    mkdir empty
    expect 3 encode enc --data folder:empty --output x.npy
    err_has 'empty: no .png'
    expect 4 encode enc --data folder:none --output x.npy
    expect 4 encode enc $few --output no/such/x.npy
    err_has 'no/such'
    mkfifo pipe.npy
    expect 2 encode enc $few --output pipe.npy
    err_has 'not a pipe or device'
    [ -p pipe.npy ] || fails 'a pipe was replaced by a file'
    mkdir x.npy.partial
    expect 4 encode enc $few --output x.npy
    err_has 'x.npy.partial'
    rmdir x.npy.partial
    ln -s victim x.npy.partial
    expect 4 encode enc $few --output x.npy
    [ ! -e victim ] || fails 'a link was followed'
    rm x.npy.partial
    printf 'no json' >x.npy.partial.json
    printf 'some' >x.npy.partial
    expect 3 encode enc $few --output x.npy --resume
    err_has 'x.npy.partial.json'
    rm x.npy.partial x.npy.partial.json
    [ -z "$(find . -name 'x.*')" ] || fails "left behind: $(find . -name 'x.*')"

    # a full disk, before anything is computed
    (
        trap '' XFSZ
        ulimit -f 8
        exec "$program" encode enc $few --layer s0 --output full.npy
    ) >"$out" 2>"$err"
    [ $? -eq 4 ] || fails 'a full disk is not exit code 4'
    err_has 'full.npy.partial: cannot reserve'
    [ -z "$(find . -name 'full*')" ] || fails "left behind: $(find . -name 'full*')"

    # weights at the end of what floats hold make infinities
    cp -r enc bad
    head -c 4000 /dev/zero | tr '\0' '\177' | dd of=bad/model.safetensors bs=1 conv=notrunc \
        seek=$(($(wc -c <bad/model.safetensors) - 4000)) 2>/dev/null
    expect 7 encode bad $few --layer s3 --output nan.npy
    err_has 's3 of picture 0: element'
    rm -f nan.npy.partial*
}

# every kind of output, of another family
"$make_model" clip clip || fails 'make_model clip'
expect 0 encode clip --data synth:32 --limit 5 --layer tokens,cls,pooled,s1 --output clip.npz
out_has 'tokens     [5,5,16]'
out_has 'cls        [5,16]'
out_has 's1         [5,16,2,2]'
out_has 'shortest edge 16x16, bicubic (pillow), centre 16x16'

# files: found again by name, read in the order of a list, left out when they are broken
expect 0 sample net --n 6 --steps 1 --output pictures
[ -f pictures/000005.png ] || fails 'no pictures'
row() { # FILE INDEX: 32 floats of an .npy
    tail -c "+$((129 + 128 * $2))" "$1" | head -c 128
}
expect 0 encode enc --data folder:pictures --output six.npy
out_has 'pooled     [6,32]'
grep -q '"paths": \["000000.png", ' six.npy.json || fails 'six.npy.json: paths'
expect 0 encode enc --manifest six.npy.json --output again.npy
cmp -s six.npy again.npy || fails 'what an encode wrote is no manifest of its pictures'
echo '{"paths": ["000003.png", "000001.png"]}' >two.json
expect 0 encode enc --data folder:pictures --manifest two.json --output two.npy --json
out_has '"data": "manifest:two.json,root=pictures"'
for i in 0 1; do
    row two.npy $i >one
    row six.npy $((3 - 2 * i)) | cmp -s - one || fails "row $i of a manifest is of another picture"
done
expect 2 encode enc --data synth:16 --manifest two.json --output x.npy
err_has 'is no folder:DIR'
expect 2 encode enc --output x.npy
err_has '--data SPEC or --manifest FILE'
expect 4 encode enc --manifest two.json --output x.npy
err_has '000003.png'
head -c 100 pictures/000002.png >pictures/cut.png
expect 3 encode enc --data folder:pictures --output x.npy
err_has 'cut.png'
expect 0 encode enc --data folder:pictures --on-error skip --output skipped.npy
out_has '1 could not be read'
cmp -s six.npy skipped.npy || fails 'other rows without the broken picture'
grep -q cut.png skipped.npy.json && fails 'a picture that was left out has a name'

# interrupted by SIGINT and by SIGKILL: goes on, to the same bytes
LW_ISA=ref # slow
export LW_ISA
many='--data synth:16 --limit 4000 --layer s3 --no-progress --threads 1 --batch-size 1'
stop() { # SIGNAL OPTION...: an encode that is ended when rows are there
    signal=$1
    shift
    # shellcheck disable=SC2086
    "$program" encode enc $many --output part.npy "$@" >"$out" 2>"$err" </dev/null &
    pid=$!
    tries=0
    while [ ! -e part.npy.partial.json ]; do
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fails 'no rows after a minute'
        sleep 0.02
    done
    sleep 0.1 # of a second or so: a resumed run has its first rows at once
    kill "-$signal" $pid || fails "it ended by itself: $(cat "$err")"
    wait $pid
    got=$?
}
# shellcheck disable=SC2086
{
    expect 0 encode enc $many --output whole.npy
    stop INT
    [ $got -eq 130 ] || fails "SIGINT: exit code $got"
    err_has 'of 4000 pictures, which part.npy.partial keeps: go on with --resume'
    [ ! -e part.npy ] || fails 'a half file has its name'
    expect 2 encode enc $many --output part.npy
    err_has 'of 4000 rows of an interrupted encode: go on with --resume'
    # as one left it that did not say by which device
    sed 's/"isa": "[^"]*"/"isa": "another"/; s/"device": "[^"]*",//' part.npy.partial.json >state.json && mv state.json part.npy.partial.json
    grep -q '"device"' part.npy.partial.json && fails 'the device is still said'
    stop INT --resume
    err_has 'was begun at another'
    grep -q '"device": "cpu"' part.npy.partial.json || fails "no device: $(cat part.npy.partial.json)"
    stop KILL --resume
    sed 's/"device": "cpu"/"device": "cuda"/' part.npy.partial.json >state.json && mv state.json part.npy.partial.json
    expect 2 encode enc $many --output part.npy --resume
    err_has 'was begun on cuda, now cpu'
    expect 0 encode enc $many --output part.npy --resume --device-change
    out_has 'rows were there before'
    grep -q '"device": "cuda, cpu"' part.npy.json || fails 'the rows do not say by which devices'
    cmp -s whole.npy part.npy || fails 'interrupted twice: other bytes'
    [ -z "$(find . -name 'part.npy.partial*')" ] || fails 'the partial file is left'
    expect 0 encode enc $many --output part.npy --resume
    out_has '4000 rows were there before'
    expect 0 encode enc $many --output part.npy --resume --json
    out_has '"device": "cuda, cpu"'
}
