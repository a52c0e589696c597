# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154,SC2086,SC2012
# What is written, where, and what is left when that fails: links, devices, full disks, unusable paths.

LW_CACHE=$PWD/cache
export LW_CACHE
ddpm='train ddpm --data synth:16 --limit 64 --base-channels 8 --channel-mult 1,2 --num-res-blocks 1 --attn-resolutions 8
    --norm-groups 4 --dropout 0 --batch-size 4'
npy_noise a.npy '4, 8' 32
npy_noise b.npy '6, 8' 48

# Devices and open descriptors are written to, never replaced; files are replaced, not links' targets.
expect 0 field --gen a.npy --pos b.npy --output whole.npy
ln -s /proc/self/fd/9 nine
"$program" field --gen a.npy --pos b.npy --output nine 9>through.npy >"$out" 2>"$err" || fails 'a descriptor as output'
cmp -s whole.npy through.npy || fails 'a descriptor got something else than a file'
[ -L nine ] || fails 'the link to a descriptor was replaced'
mkfifo pipe.npz
cat pipe.npz >piped.npz &
expect 0 field --gen a.npy --pos b.npy --output pipe.npz
wait
[ -p pipe.npz ] || fails 'a pipe was replaced by a file'
printf mine >victim
ln -s victim link.npy
expect 0 field --gen a.npy --pos b.npy --output link.npy
cmp -s whole.npy link.npy || fails 'a link as output'
[ "$(cat victim)" = mine ] || fails 'a link as output was written through'

# Links in a run directory that somebody else made.
expect 0 $ddpm --steps 1 --output-dir run
mkdir elsewhere
for part in metrics.jsonl loss_log.csv command.txt tb samples checkpoints best; do
    rm -rf foreign
    cp -R run foreign
    rm -rf "foreign/$part"
    case $part in
    *.*) ln -s ../victim "foreign/$part" ;;
    *) ln -s ../elsewhere "foreign/$part" ;;
    esac
    [ $part = checkpoints ] && cp -R run/checkpoints/. elsewhere
    expect 4 $ddpm --steps 2 --output-dir foreign --resume
    err_has "foreign/$part: is a symbolic link"
    [ $part != checkpoints ] || rm -rf elsewhere/*
    [ -z "$(ls elsewhere)" ] || fails "foreign/$part was followed"
done
[ "$(cat victim)" = mine ] || fails 'a link in a run directory was written through'
mkdir fresh
: >fresh/checkpoints
expect 4 $ddpm --steps 1 --output-dir fresh
err_has 'fresh/checkpoints: is something else, not a directory'

# A name that promises another kind of file became a folder of that name.
expect 2 sample run --steps 1 --n 2 --output x.jpg
err_has '--output x.jpg: no such file is written; give a .png, a .npy, a .npz or a folder'
expect 2 data sheet synth:16 --output x.jpg
err_has '--output x.jpg: no such file is written; give a .png'
expect 2 data export synth:16 --output x.jpg
err_has '--output x.jpg: no such file is written; give a .npy, a .npz or a folder'
[ ! -e x.jpg ] || fails 'x.jpg was made'
for output in 'prove eval nowhere --save-scores x.npz' 'prove rank nowhere --save-ranks x.json' 'prove bench nowhere --csv x.json' \
    'bench field --samples 1 --csv x.json'; do
    expect 2 $output
    err_has "${output##* }: no such file is written; give a .csv"
done
for option in save tune; do
    expect 2 bench --$option x.csv
    err_has "--$option x.csv: no such file is written; give a .json"
done

# Of two outputs of one name only the last would be there.
expect 2 bench field --samples 1 --save both --csv both
err_has '--save and --csv are both both: give each a name of its own'
[ ! -e both ] || fails 'one of them was written'
mkdir room
ln -s room door
for spelt in ./both room/../both "$PWD/both"; do
    expect 2 bench field --samples 1 --save both --csv "$spelt"
    err_has "--save and --csv are both $spelt: give each a name of its own"
done
expect 2 bench field --samples 1 --save room/both --csv door/both
err_has '--save and --csv are both door/both'
# nor may one be what a folder gets; another name in that folder may
mkdir full
for name in per_query.csv ../full/per_query.csv; do
    expect 2 prove eval nowhere --save-scores full/$name --output-dir full
    err_has "--save-scores full/$name: --output-dir writes a file of that name: choose another"
done
expect 2 prove bench nowhere --csv full/cases.csv --output-dir ./full
err_has '--csv full/cases.csv: --output-dir writes a file of that name'
expect 4 prove eval nowhere --save-scores full/scores.csv --output-dir full
err_has 'nowhere'
for spelt in both ./both/; do
    expect 2 prove bench nowhere --csv both --output-dir $spelt
    err_has ' are both '
done

# Neither does another command replace a run's files of its names, nor a run those of another command.
for other in 'prove eval kb' 'prove bench kb' 'prove compare kb' 'compare --drift run' 'mc folder:pictures'; do
    expect 2 $other --output-dir run
    err_has '--output-dir: run holds a training run, whose files would be replaced: choose another'
done
for name in summary.json report.html; do
    mkdir "results_$name"
    : >"results_$name/$name"
    expect 2 $ddpm --steps 1 --output-dir "results_$name"
    err_has "results_$name holds a $name, which the run would replace: choose another --output-dir"
done

# A full disk (no file may have more than LIMIT half-KiB blocks): exit code 4, and nothing is left that was not there.
starved() {
    limit=$1
    shift
    last="leeway $*, files of at most $limit blocks"
    ls -AR . >before
    (
        trap '' XFSZ
        ulimit -f "$limit"
        exec "$program" "$@"
    ) >"$out" 2>"$err"
    got=$?
    [ "$got" -eq 4 ] || fails "$last: exit code $got, expected 4"
    ls -AR . >after
    cmp -s before after || fails "$last: left $(diff before after)"
}
: >after
npy_noise c.npy '64, 8' 512
mkdir land
printf 'in(rome,italy).\nin(nice,france).\nin(bonn,germany).\n' >land/train.txt
printf 'city rome nice bonn\nland italy france germany\n' >land/domain2constants.txt
printf 'r0:1:in(x,y) -> of(x,y)\n' >land/rules.txt
printf 'of(rome,italy).\nof(nice,france).\n' >land/test.txt
starved 1 quantize run --n 2 --steps 1 --batch-size 2 --output-dir int8
starved 1 sample run --steps 1 --n 60 --output pictures
starved 1 sample run --steps 1 --n 16 --output pictures.npy
starved 1 sample run --steps 1 --n 16 --output pictures.png
starved 1 field --gen c.npy --pos b.npy --output starved.npy
starved 1 field --gen c.npy --pos b.npy --output whole.npy
cmp -s whole.npy through.npy || fails 'a failed write changed the file that was there'
starved 1 prove eval land --output-dir proofs
mkdir there
: >there/kept
starved 1 prove eval land --output-dir there
expect 0 prove eval land --output-dir there # beside what was there
[ "$(ls -A there | tr '\n' ' ')" = 'kept per_query.csv report.html summary.json ' ] || fails "there: $(ls -A there)"
expect 0 sample run --steps 1 --n 2 --output pictures/deep/
[ "$(ls -A pictures/deep | tr '\n' ' ')" = '000000.png 000001.png labels.csv ' ] || fails "$(ls -A pictures/deep)"

# Names from files and arguments never reach a terminal as they are, and an error stays one line.
esc=$(printf '\033')
bell=$(printf '\007')
clean() {
    [ "$(LC_ALL=C tr -d '\n\040-\176\200-\377' <"$1" | wc -c)" -eq 0 ] || fails "$last: control characters in $1"
}
one_line() {
    clean "$err"
    [ "$(wc -l <"$err")" -eq 1 ] || fails "$last: not one line on stderr"
}
ln -s loop loop
for last in 'inspect loop' 'sample loop --output x.png' 'run loop --input a.npy --output x.npy' 'prove check loop' \
    'prove rank land --kge loop' "$ddpm --steps 1 --output-dir x --resume-from loop"; do
    expect 4 $last
    one_line
    err_has 'loop: '
    err_has 'Too many levels of symbolic links' # what is wrong, not `no such file`
done
nasty="${esc}]0;title${bell}
x"
expect 4 inspect "$nasty"
one_line
err_has '\x1b]0;title\x07\nx: '
expect 4 field --gen "$nasty" --pos b.npy
one_line
expect 2 "$nasty"
one_line
expect 2 info "--$nasty"
one_line
expect 2 prove
one_line
err_has "'prove' needs one of "
expect 3 prove trace land "of(${esc}[2J,x)"
one_line
expect 4 prove check "$nasty"
one_line
mkdir -p "classes/${esc}]0;title${bell}" 'classes/=1+1,"b"
c'
expect 0 sample run --steps 1 --n 2 --output two
cp two/000000.png "classes/${esc}]0;title${bell}/"
cp two/000001.png 'classes/=1+1,"b"
c/'
expect 0 data check folder:classes
clean "$out"
clean "$err"
out_has '\x1b]0;title\x07'
expect 0 data check folder:classes --json
clean "$out"
printf '\114\000\000\000\000\000\000\000%-76s\000\000\000\000' \
    '{"\u001b[2J\u009b\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' >names.safetensors
expect 0 inspect names.safetensors
clean "$out"
out_has '\x1b[2J\xc2\x9b\n'
expect 0 inspect names.safetensors --json
clean "$out"
out_has '\u001b[2J\u009b\n'

# Class names in labels.csv are quoted as in every table.
named=$(printf '%s' "$ddpm" | sed 's/--data synth:16 --limit 64/--data folder:classes/')
expect 0 $named --steps 1 --batch-size 2 --output-dir named
expect 0 sample named --steps 1 --n 2 --output named.d
{
    printf 'file,class\n000000.png,%s\n' "${esc}]0;title${bell}"
    printf '000001.png,"=1+1,""b""\nc"\n'
} | cmp -s - named.d/labels.csv || fails "labels.csv: $(cat -v named.d/labels.csv)"
