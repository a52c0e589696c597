# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2086,SC2154
# leeway train toy: files, threads and resuming to the bit, what balance is worth, refusals.

toy='train toy --distribution two_blobs --steps 60 --batch-size 64 --points 400 --hidden-dim 32 --seeds 1 --no-progress'
expect 0 $toy --ablation baseline,attraction_only --output-dir a --threads 1
out_has 'two_blobs  baseline'
out_has 'attraction_only'
out_has 'a/report.html'
for file in a/toy_results.json a/points_two_blobs.png a/report.html a/two_blobs/baseline/seed_0/metrics.jsonl; do
    [ -s "$file" ] || fails "$file is missing"
done
for key in sliced_wasserstein coverage_a coverage_b center_distance mean_distance_to_target mode_balance_error best_first; do
    grep -q "\"$key\"" a/toy_results.json || fails "no $key in toy_results.json"
done
weights=checkpoints/last/diffusion_pytorch_model.safetensors

# another thread count: the same weights and measures
expect 0 $toy --ablation baseline,attraction_only --output-dir b --threads 3
cmp -s a/two_blobs/baseline/seed_0/$weights b/two_blobs/baseline/seed_0/$weights || fails 'threads change weights'
grep -v seconds a/toy_results.json >a.json
grep -v seconds b/toy_results.json | cmp -s - a.json || fails 'threads change measures'

# going on adds what is missing and keeps the rest
expect 2 $toy --output-dir a
err_has 'a/toy_results.json is there already: --resume goes on with it'
expect 2 $toy --steps 61 --resume --output-dir a
err_has "trained with another 'steps'"
expect 0 $toy --ablation baseline,repulsion_2_0x --resume --output-dir a --json
out_has '"attraction_only"'
out_has '"repulsion_2_0x"'
[ "$(grep -c '"final_loss"' a/toy_results.json)" -eq 3 ] || fails 'rows of toy_results.json'

# one process at a time
(
    flock 9
    expect 2 $toy --ablation repulsion_1_5x --resume --output-dir a
    err_has 'a: another process is writing into it: wait for it, stop it, or choose another --output-dir'
) 9<a || exit 1
[ "$(grep -c '"final_loss"' a/toy_results.json)" -eq 3 ] || fails 'a second process wrote'

expect 2 $toy --ablation balance --output-dir c
err_has '--ablation balance: must be of all|baseline|'
expect 2 train toy --distribution moons --output-dir c
err_has '--distribution moons: must be of all|two_blobs|'
expect 0 $toy --dry-run --output-dir c
out_has '6 trainings of 60 steps'
[ ! -e c ] || fails 'c was made without a training'
