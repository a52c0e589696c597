#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does training a policy generalise? Variants x seeds of `prove train`, each judged on the test split.

    tools/proof_variants.py PROGRAM DATASET OUTPUT_DIR [--seeds 5] [--timesteps 250000] [--threads 1]
                            [--only "NAME;.."] [--preset countries|family]

Of every seed: uniform walks, the untrained network of each variant (one iteration at learning rate 0), the last
weights and those best on validation. A run that is there is not made again, one that was cut off goes on, so the
script may be stopped and started. Prints a table in Markdown and writes it with every number into OUTPUT_DIR
(table.md, table.json): mean and standard deviation (n - 1) over seeds, the difference of last weights from the
same seed's untrained network with its standard deviation, and shares of training queries proved in the first and
the last tenth of a run.

By hand; needs Python and nothing else.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

NETWORK = ["--hidden-dim", "64", "--num-layers", "3", "--atom-embedding-size", "64"]
PRESETS = {
    "countries": {
        "train": ["--n-envs", "32", "--n-steps", "64", "--batch-size", "512", "--learning-rate", "1e-3",
                  "--normalize-advantage", "--ent-coef-init", "0.05", "--ent-coef-final", "0.01", "--eval-every", "4",
                  "--n-eval-queries", "0", "--eval-neg-samples", "0", "--train-depth", "1,2,3,4,5,6"] + NETWORK,
        "both": ["--padding-states", "20", "--skip-unary-actions", "--corruption-modes", "tail"],
        "eval": ["--n-corruptions", "0", "--n-queries", "0"]},
    "family": {
        "train": ["--n-envs", "128", "--n-steps", "64", "--batch-size", "512", "--n-epochs", "4", "--learning-rate",
                  "1e-3", "--lr-warmup", "0.02", "--hidden-dim", "128", "--num-layers", "4", "--atom-embedding-size",
                  "128", "--normalize-advantage", "--ent-coef-init", "0.005", "--ent-coef-final", "0.002",
                  "--eval-every", "20", "--n-eval-queries", "100", "--eval-neg-samples", "20", "--save-every", "10",
                  "--keep-last-k-checkpoints", "2"],
        "both": ["--corruption-modes", "head,tail"],
        "eval": ["--n-corruptions", "100", "--n-queries", "200"]}}
VARIANTS = {
    "own": [],
    "own, constants small": ["--constant-scale", "0.05"],
    "own, more entropy": ["--ent-coef-init", "0.3", "--ent-coef-final", "0.1"],
    "own, values free": ["--vf-coef", "0.1", "--clip-range-vf", "0"],
    "own, dropout": ["--dropout-prob", "0.2"],
    "own, no corruptions": ["--train-neg-ratio", "0"],
    "frozen": ["--constants", "frozen"],
    "shared": ["--constants", "shared"],
    "roles": ["--constants", "roles"],
    "none": ["--constants", "none"],
    "own, curriculum": ["--curriculum", "0.5"],
    "own, hard negatives": ["--hard-negatives", "0.5"],
    "roles, curriculum": ["--constants", "roles", "--curriculum", "0.5"],
    "roles, hard negatives": ["--constants", "roles", "--hard-negatives", "0.5"],
    "roles, both": ["--constants", "roles", "--curriculum", "0.5", "--hard-negatives", "0.5"],
}


def call(*args):
    done = subprocess.run(list(map(str, args)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("%s\n%s" % (" ".join(map(str, args)), done.stderr[-2000:]))
    return done.stdout


class Table:
    def __init__(self, a):
        self.a, self.p = a, PRESETS[a.preset]

    def ranks(self, policy, seed):
        j = json.loads(call(self.a.program, "prove", "eval", self.a.dataset, "--policy", policy, "--split", "test",
                            "--seed", seed, "--threads", self.a.threads, "--json", *self.p["both"], *self.p["eval"]))
        return {k: j[k] for k in ("MRR", "Hits@1", "true_proved", "false_proved")}

    def train(self, name, options, seed, more):
        run = os.path.join(self.a.output, "runs", "%s_%d" % (name.replace(", ", "_").replace(" ", "_"), seed))
        if os.path.exists(os.path.join(run, "summary.json")):
            return run
        args = [self.a.program, "prove", "train", self.a.dataset, "--output-dir", run, "--seed", seed, "--threads",
                self.a.threads, *self.p["train"], *self.p["both"]]
        # the last of two equal options would be an error: a variant's replace those of the preset
        for i in range(0, len(options), 2):
            if options[i] in args:
                at = args.index(options[i])
                del args[at:at + 2]
        resume = ["--resume"] if os.path.exists(run) else []
        call(*args, *options, *more, *resume)
        return run

    def seed(self, name, options, seed):
        run = self.train(name, options, seed, ["--timesteps-train", self.a.timesteps])
        # the weights of a beginning: one iteration that changes nothing
        first = self.train("first of " + name, options + ["--learning-rate", "0", "--eval-every", "0"], seed,
                           ["--steps", "1"])
        rows = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
        tenth = max(len(rows) // 10, 1)
        valid = [r["valid_mrr"] for r in rows if "valid_mrr" in r]
        return {"untrained": self.ranks(first, seed), "last": self.ranks(run, seed),
                "best": self.ranks(os.path.join(run, "best"), seed), "valid_last": valid[-1], "valid_best": max(valid),
                "valid": valid,
                "train_first": statistics.mean(r["proved_positive"] for r in rows[:tenth]),
                "train_last": statistics.mean(r["proved_positive"] for r in rows[-tenth:])}


def spread(xs):
    return "%.3f +- %.3f" % (statistics.mean(xs), statistics.stdev(xs) if len(xs) > 1 else 0.0)


def row(name, seeds):
    def get(which, key="MRR"):
        return [s[which][key] for s in seeds]
    gain = [b - a for a, b in zip(get("untrained"), get("last"))]
    return "| %s | %s | %s | %s | %s | %s | %.2f, %.2f | %.2f to %.2f |" % (
        name, spread(get("untrained")), spread(get("last")), spread(gain), spread(get("best")),
        spread([s["valid_last"] for s in seeds]), statistics.mean(get("last", "true_proved")),
        statistics.mean(get("last", "false_proved")), statistics.mean(s["train_first"] for s in seeds),
        statistics.mean(s["train_last"] for s in seeds))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("dataset")
    p.add_argument("output")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--timesteps", type=int, default=250000)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--only", default="")
    p.add_argument("--preset", choices=sorted(PRESETS), default="countries")
    a = p.parse_args()
    table, done = Table(a), {}
    wanted = a.only.split(";") if a.only else list(VARIANTS)
    uniform = [table.ranks("uniform", s) for s in range(a.seeds)]
    lines = ["Test MRR of %d seeds; uniform walks %s." % (a.seeds, spread([u["MRR"] for u in uniform])), "",
             "| variant | untrained | last | last - untrained | best on validation | validation, last | true, false "
             "proved, last | training queries proved |", "|---|---|---|---|---|---|---|---|"]
    for name in wanted:
        done[name] = [table.seed(name, VARIANTS[name], s) for s in range(a.seeds)]
        lines.append(row(name, done[name]))
        print(lines[-1], flush=True)
    with open(os.path.join(a.output, "table.json"), "w") as f:
        json.dump({"uniform": uniform, "variants": done}, f, indent=1)
    with open(os.path.join(a.output, "table.md"), "w") as f:
        f.write("\n".join(lines) + "\n")
    print("\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
