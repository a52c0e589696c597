# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Pictures in tar files and in lists of arrays: the rows that a folder gives, classes, splits, damage; each refusal is one line.

LW_CACHE=$PWD/cache
LW_LOG=info
export LW_CACHE LW_LOG
"$make_model" unet model || fails 'make_model'
expect 0 sample model --n 24 --output made
mkdir set folder
i=0
for file in made/0*.png; do
    name=$(printf '%03d' $i)
    cp "$file" "set/$name.png"
    echo $((i % 3)) >"set/$name.cls"
    echo '{"caption": "none"}' >"set/$name.json"
    mkdir -p "folder/$((i % 3))"
    cp "$file" "folder/$((i % 3))/$name.png"
    i=$((i + 1))
done
(cd set && tar -cf ../part-000.tar 00*.* && tar -cf ../part-001.tar 01*.* && tar -cf ../part-002.tar 02*.*)

content() { # SPEC ARGS...: what all rows come to
    "$program" data check "$@" --json 2>/dev/null | grep '"mean"\|"sd"\|"pictures"'
}
refused() { # CODE SPEC [TEXT]: by one line
    expect "$1" train ddpm --data "$2" --image-size 16 --steps 1 --output-dir none
    [ "$(grep -c '^leeway: ' "$err")" = 1 ] || fails "$last: not one line"
    [ -z "$3" ] || err_has "$3"
    [ ! -e none ] || fails "$last: made a run"
}

# three ways to name them, the same rows; nothing of the tar is unpacked
expect 0 data check 'webdataset:part-*.tar' --image-size 16 --json
err_has 'decoded into'
out_has '"pictures": 22'
out_has '"2": 8'
[ "$(content 'webdataset:part-*.tar' --image-size 16)" = "$(content 'webdataset:part-{000..002}.tar' --image-size 16)" ] ||
    fails 'braces give other rows'
expect 0 data check 'webdataset:part-*.tar' --image-size 16 --json
grep -q 'decoded into' "$err" && fails 'the cache was not found again'
expect 0 data check 'webdataset:part-000.tar' --image-size 16 --threads 3
touch -d '2001-01-01' part-002.tar
expect 0 data check 'webdataset:part-*.tar' --image-size 16 --json
err_has 'decoded into'

# its own size
expect 0 data check webdataset:part-000.tar --json

# bad tar files
refused 4 webdataset:nothing-*.tar 'no file is called'
refused 2 webdataset:https://example.org/a.tar 'not addresses'
refused 2 'webdataset:part-{3..1}.tar' 'two numbers'
gzip -c part-000.tar >packed.tar.gz
refused 3 webdataset:packed.tar.gz 'neither compressed nor zip'
head -c 3000 part-000.tar >cut.tar
refused 3 webdataset:cut.tar
echo text >text.tar
refused 3 webdataset:text.tar
: >empty.tar
refused 3 webdataset:empty.tar
(cd set && cp 000.png twice.png && cp 001.png twice.jpg && echo 1 >twice.cls && tar -cf ../twice.tar twice.*)
refused 3 webdataset:twice.tar 'a second picture'
(cd set && echo seven >bad.cls && cp 000.png bad.png && tar -cf ../bad.tar bad.*)
refused 3 webdataset:bad.tar 'no whole number'
(cd set && echo 1 >alone.cls && tar -cf ../alone.tar alone.cls)
refused 3 webdataset:alone.tar 'a class but no picture'
(cd set && tar -cf ../mixed.tar 000.png 000.cls 001.png)
refused 3 webdataset:mixed.tar 'no class'
(cd set && ln -s 000.png link.png && echo 1 >link.cls && tar -cf ../link.tar link.*)
refused 3 webdataset:link.tar 'is a link'
(cd set && head -c 60 000.png >torn.png && tar -cf ../torn.tar 000.png torn.png 001.png)
refused 3 webdataset:torn.tar
expect 0 train ddpm --data webdataset:torn.tar --image-size 16 --on-error skip --steps 1 --base-channels 8 --channel-mult 1 --attn-resolutions= --norm-groups 4 --batch-size 2 --output-dir few
err_has 'left out'

# lists of arrays: two of the same pictures are the whole
npy_u8() { # NAME N: N pictures of 8x8x3
    npy_head "$1" '|u1' "$2, 8, 8, 3" >"$1"
    awk "BEGIN { for (i = 0; i < $2 * 192; i++) printf \"%c\", 32 + (i * 7 + int(i / 192)) % 90 }" >>"$1"
}
npy_u8 a.npy 20
npy_u8 b.npy 10
npy la.npy '|u1' '20,' '\0\1\3\0\1\3\0\1\3\0\1\3\0\1\3\0\1\3\0\1'
npy lb.npy '|u1' '10,' '\0\1\3\0\1\3\0\1\3\0'
echo '{"shards": [{"path": "a.npy", "labels": "la.npy", "num_samples": 20}, {"path": "b.npy", "labels": "lb.npy"}]}' >list.json
expect 0 data check shards:list.json --json
out_has '"3": 9'
out_has '1 of 4 classes have no picture, the first is 2'
# a class without rows is never drawn
expect 0 train drift --data shards:list.json --base-channels 8 --channel-mult 1 --attn-resolutions= --norm-groups 4 --groups 3 --negatives-per-group 2 --positives-per-group 2 --steps 2 --output-dir d
echo '{"shards": ["a.npy"]}' >one.json
[ "$(content shards:one.json)" = "$(content tensor:a.npy)" ] || fails 'one shard is not the file'

echo '{"shards": ["a.npy", {"path": "b.npy", "labels": "lb.npy"}]}' >bad.json
refused 3 shards:bad.json 'b.npy has labels, those before have none'
echo '{"shards": ["a.npy", "la.npy"]}' >bad.json
refused 3 shards:bad.json
npy other.npy '|u1' '1, 1, 2, 3' '\0\1\2\3\4\5'
echo '{"shards": ["a.npy", "other.npy"]}' >bad.json
refused 3 shards:bad.json 'other.npy has pictures of 3x2 of 1 channels, a.npy of 8x8 of 3'
for text in '' '[]' '{}' '{"shards": []}' '{"shards": 3}' '{"shards": [3]}' '{"shards": [{"labels": "la.npy"}]}' '{"shards": [{"path": "a.npy", "num_samples": 21}]}' '{"shards": [{"path": "a.npy", "labels": "lb.npy"}]}'; do
    echo "$text" >bad.json
    refused 3 shards:bad.json
done
echo '{"shards": ["none.npy"]}' >bad.json
refused 4 shards:bad.json
refused 4 shards:nowhere.json

# the same by other names; workers decode to the same rows
net='--base-channels 8 --channel-mult 1 --attn-resolutions= --norm-groups 4 --batch-size 4 --steps 2 --image-size 16'
# shellcheck disable=SC2086
{
    expect 0 train ddpm --data 'webdataset:part-*.tar' $net --output-dir ours
    expect 0 train ddpm --real-batch-source webdataset --real-webdataset-urls 'part-*.tar' $net --output-dir theirs \
        --real-num-workers 3 --real-prefetch-factor 2 --real-persistent-workers --real-pin-memory
    err_has 'no effect'
    cmp -s ours/checkpoints/last/optimizer.safetensors theirs/checkpoints/last/optimizer.safetensors ||
        fails 'other names, other bits'
    expect 0 train ddpm --config theirs/config.yaml --output-dir again
    expect 0 train ddpm --data folder:folder --disable-real-shuffle $net --output-dir ordered
    expect 0 train ddpm --data folder:folder $net --output-dir shuffled
    cmp -s ordered/checkpoints/last/optimizer.safetensors shuffled/checkpoints/last/optimizer.safetensors &&
        fails 'rows are shuffled all the same'
    expect 0 train ddpm --real-batch-source imagefolder --real-imagefolder-root folder $net --output-dir x1 --dry-run
    expect 0 train ddpm --real-batch-source tensor_shards --real-tensor-shards-manifest-path list.json $net --image-size 8 --output-dir x2 --dry-run
    expect 2 train ddpm $net --output-dir none
    err_has '--data'
    expect 2 train ddpm --real-batch-source webdataset $net --output-dir none
    err_has 'needs --real-webdataset-urls'
    expect 2 train ddpm --data synth:16 --real-batch-source synthetic_dataset $net --output-dir none
    err_has 'one of the two'
    expect 2 train ddpm --data synth:16 --real-tensor-file-path a.npy $net --output-dir none
    err_has 'belongs to another'
    expect 2 train ddpm --data synth:16 --real-prefetch-factor 2 $net --output-dir none
    err_has '--real-prefetch-factor: needs --real-num-workers above 0'
    expect 2 train ddpm --data synth:16 --real-persistent-workers $net --output-dir none
    err_has '--real-persistent-workers: needs --real-num-workers above 0'
    expect 2 train drift --data synth:16 --disable-real-shuffle --steps 1 --output-dir none
    err_has 'the queue'
}
