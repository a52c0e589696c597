# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Recipes: --config FILE#SECTION, sections that stand on others, the shipped files, `demo --recipe`.

LW_CACHE=$PWD/cache
export LW_CACHE
recipes=$(dirname "$case_file")/../../docs/recipes

cat >r.yaml <<'END'
all:
  data: synth:16
  limit: 64
  batch-size: 4
small:
  base: all
  base-channels: 8
  channel-mult: [1, 2]
  num-res-blocks: 1
  attn-resolutions: [8]
  heads: 2
  norm-groups: 4
ddpm:
  base: small
  batch-size: 8
  steps: 2
loop:
  base: pool
pool:
  base: loop
END
expect 0 train ddpm --config 'r.yaml#ddpm' --output-dir d --no-progress
grep -q '^batch-size: 8$' d/config.yaml || fails 'a section does not win over its base'
grep -q '^base-channels: 8$' d/config.yaml || fails 'a base of a base is not read'
expect 0 train ddpm --config 'r.yaml#ddpm' --steps 1 --output-dir e --no-progress
grep -q '^steps: 1$' e/config.yaml || fails 'argv does not win over a section'
expect 2 train ddpm --config r.yaml --output-dir x
err_has 'r.yaml: all: is a section with options of its own: take r.yaml#all'
expect 2 train ddpm --config 'r.yaml#drift' --output-dir x
err_has 'r.yaml: has no section drift, but all, small, ddpm, loop, pool'
expect 2 train ddpm --config 'r.yaml#loop' --output-dir x
err_has 'r.yaml: loop: stands on more than 8 sections'
printf 'a: {base: [1]}\nb: {base: c}\n' >bad.yaml
expect 2 train ddpm --config 'bad.yaml#a' --output-dir x
err_has 'bad.yaml: a: base must name a section'
expect 2 train ddpm --config 'bad.yaml#b' --output-dir x
err_has 'bad.yaml: has no section c'

# sections of a recipe beside it, wherever that is; of several bases the first decides
mkdir -p deep
mv r.yaml deep
cat >deep/wide.yaml <<'END'
wide: {base-channels: 16, batch-size: 2}
ddpm:
  base: [wide, "r.yaml#ddpm"]
  limit: 32
gone:
  base: [wide, "no.yaml#ddpm"]
END
expect 0 train ddpm --config 'deep/wide.yaml#ddpm' --output-dir w --no-progress
for words in 'base-channels: 16' 'batch-size: 2' 'limit: 32' 'steps: 2' 'norm-groups: 4'; do
    grep -q "^$words$" w/config.yaml || fails "of bases in two files: no $words"
done
expect 4 train ddpm --config 'deep/wide.yaml#gone' --output-dir x
err_has 'deep/no.yaml'
mv deep/r.yaml .
cp r.yaml 'with#ddpm'
expect 2 train ddpm --config 'with#ddpm' --output-dir x
err_has 'with#ddpm: all: is a section'

# every section that ships is of options that there are
for file in "$recipes"/*.yaml; do
    for stage in encoder drift ddpm flow; do
        grep -q "^$stage:" "$file" || continue
        own=''
        [ $stage != drift ] || own='--encoder none --feature-keys pixels'
        # shellcheck disable=SC2086
        expect 0 train $stage --config "$file#$stage" --data synth:32 --image-size 32 --limit 256 --minutes 0 --steps 1 $own \
            --output-dir x --dry-run --threads 1
    done
done

# a recipe of one's own for the demonstration
expect 2 demo --recipe r.yaml --output-dir f
err_has 'r.yaml: has no section encoder'
sed 's/^  objective: mae/  objectiv: mae/' "$recipes/synth-6min.yaml" >wrong.yaml
expect 2 demo --recipe wrong.yaml --output-dir f
err_has 'wrong.yaml#encoder: objectiv: unknown key: did you mean objective?'
sed '/^  minutes: 0.42/d' "$recipes/synth-6min.yaml" >shares.yaml
expect 0 demo --recipe shares.yaml --dry-run --output-dir f --threads 1
sed 's/^  minutes: .*/  minutes: 0/' "$recipes/synth-6min.yaml" >shares.yaml
expect 2 demo --recipe shares.yaml --dry-run --output-dir f --threads 1
err_has 'minutes must say its share of the time'
[ ! -e f ] || fails 'a refused recipe left a directory'
