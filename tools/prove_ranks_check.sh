#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One ranking, however it is come by: whole walks, walks left early, with the least model's certificates, in two
# stages, in other batches and on other numbers of threads. Says how much of the network each took.
#
#   tools/prove_ranks_check.sh PROGRAM KG DIR [QUERIES [CORRUPTIONS]]
#
# KG has the datasets family, countries_s3, nations, umls, wn18rr as folders; DIR is made. By hand: minutes.
set -eu

program=$1 kg=$2 dir=$3 queries=${4:-40} corruptions=${5:-40}
mkdir -p "$dir"
head -48 "$kg/family/rules.txt" >"$dir/rules48.txt"
bad=0

# ranks NAME DATASET OPTIONS..: its ranks, compared with those of NAME.whole; a line of what it took
ranks() {
    name=$1 set=$2
    shift 2
    # shellcheck disable=SC2086
    "$program" prove eval "$kg/$set" $rules --policy formula:1 --corruption-modes head,tail --n-queries "$queries" \
        --n-corruptions "$corruptions" --quiet --skip-unknown --output-dir "$dir/out" "$@" >/dev/null
    cut -d, -f1-13 "$dir/out/per_query.csv" >"$dir/$name.csv"
    same=same
    cmp -s "$dir/$name.csv" "$dir/whole.csv" || same=OTHER bad=1
    rows=$(sed -n 's/^  "states_scored": \([0-9]*\),$/\1/p' "$dir/out/summary.json")
    first=$(sed -n 's/^    "rows_bf16": \([0-9]*\),$/\1/p' "$dir/out/summary.json")
    again=$(sed -n 's/^    "walked_again": \([0-9]*\),$/\1/p' "$dir/out/summary.json")
    fell=$(sed -n 's/^    "fell_back": \(.*\),$/\1/p' "$dir/out/summary.json")
    f32=$((rows - ${first:-0}))
    note=
    [ "$fell" != true ] || note='fell back '
    printf '%-34s %-22s %8d rows f32 %8d rows bf16 %5s again %s%s\n' "$label" "$name" "$f32" "${first:-0}" \
        "${again:-0}" "$note" "$same"
}

check() {
    label=$1 set=$2
    shift 2
    : >"$dir/whole.csv"
    ranks whole "$set" "$@" >"$dir/first"
    cp "$dir/whole.csv" "$dir/kept.csv"
    ranks whole "$set" "$@" --threads 1 --fixed-batch-size 100 --rows 300 >"$dir/first"
    cmp -s "$dir/whole.csv" "$dir/kept.csv" || bad=1
    ranks whole "$set" "$@"
    cmp -s "$dir/whole.csv" "$dir/kept.csv" || bad=1
    ranks early "$set" "$@" --ranks-only --least-model-memory 0
    ranks certified "$set" "$@" --ranks-only
    ranks stages "$set" "$@" --two-stage
    ranks stages-alone "$set" "$@" --two-stage --least-model-memory 0
    ranks stages-small "$set" "$@" --two-stage --threads 1 --fixed-batch-size 60 --rows 100 --cache-memory 0
    ranks bf16 "$set" "$@" --ranks-only --precision bf16 | sed 's/OTHER/other ranks: bf16 alone/'
}

rules=
for set in family countries_s3 nations umls wn18rr; do
    check "$set" "$set"
done
check 'countries_s3, drawn' countries_s3 --no-deterministic
check 'umls, drawn' umls --no-deterministic
rules="--rules $dir/rules48.txt"
check 'family, 48 rules' family
check 'family, 48 rules, drawn' family --no-deterministic
[ $bad -eq 0 ] || {
    echo 'ranks differ'
    exit 1
}
