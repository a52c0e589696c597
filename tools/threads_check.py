#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far more threads help on this machine, beside the bound and the expectation of `leeway profile --threads-model`.

threads_check.py PROGRAM [--threads 1,2,4,8,16] [--rounds 3] [--seconds 4] [--output FILE.json] [CASE..]

Every case runs with each number of threads in turns, ROUNDS times (every other round from the most to the fewest); the median
of the rounds' medians counts. The bound comes from one thread's times of each phase, its number of tasks, and the barrier
measured here: caches, memory and clock count as unshared, and of a training step it is without the optimiser; fields and walks
have none. What is expected counts in what so many threads at once were measured to take longer for products and for reading. More threads than this process may use CPUs are measured too where asked for, beside as many as there are. FILE is
written anew behind each figure. Cases are the words of CASES below; without any, all. Nothing else should run. Ends with 1 where
what is expected is more than 15 % off or too many threads are more than 10 % slower, 2 where a command failed.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

# word: title, suite of `leeway bench`, its case, options, options of `leeway profile unet` that say the bound
CASES = {
    "forward1": ("U-Net forward, f32, batch 1", "unet", "unet.forward_b1", ["--batch-size", "1"], ["--batch-size", "1"]),
    "forward8": ("batch 8", "unet", "unet.forward_b8", ["--batch-size", "8"], ["--batch-size", "8"]),
    "forward64": ("batch 64", "unet", "unet.forward_b64", ["--batch-size", "64"], ["--batch-size", "64"]),
    "train": ("training step, f32, batch 16", "train", "train.train_b16", ["--batch-size", "16"],
              ["--train", "--batch-size", "16"]),
    "ddim": ("DDIM, 50 evaluations, batch 1", "sampling", "sampling.ddim50_b1", [], ["--batch-size", "1"]),
    "slots": ("drift field, 16 slots of 64 x 288, 192 channels", "field", "field.field_slots16_64x128x96x192", [], None),
    "field": ("drift field, 4,096 x 8,192, 128 channels", "field", "field.field_1x4096x4096x128", [], None),
    "walks": ("walks of proofs by a policy", "prove", "prove.walk_512", [], None),
}
OFF = 0.15
SLOWER = 0.10


def run(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        print("%s: %s" % (words[0], error.strerror), file=sys.stderr)
        sys.exit(2)
    if done.returncode != 0:
        print("%s: exit code %d: %s" % (" ".join(words), done.returncode, done.stderr.strip()), file=sys.stderr)
        sys.exit(2)
    return json.loads(done.stdout)


def time_of(program, case, threads, seconds):
    _, suite, name, options, _ = CASES[case]
    tree = run(program, "bench", suite, "--filter", name, *options, "--threads", str(threads), "--seconds", str(seconds),
               "--warm-up", "2", "--json", "--no-progress")
    for row in tree["results"]:
        if "%s.%s" % (row["suite"], row["name"]) == name:
            return row["p50_ms"]
    print("leeway bench %s has no case %s" % (suite, name), file=sys.stderr)
    sys.exit(2)


def bounds_of(program, case, threads):
    """Speed-ups over one thread, the bound and what is expected, by number of threads."""
    if CASES[case][4] is None or not threads:
        return {}
    tree = run(program, "profile", "unet", *CASES[case][4], "--threads", "1", "--threads-model", ",".join(map(str, threads)),
               "--runs", "5", "--top", "1", "--no-compare-precisions", "--json", "--no-progress")
    return {row["threads"]: (row["speed_up"], row["expected_speed_up"]) for row in tree["threads_model"]["bound"]}


def table(tree, threads):
    """Markdown: a row a case; the speed-up that was measured, what was expected and the bound in brackets. And the worst."""
    lines = ["| case | one thread, ms | " + " | ".join("%d threads" % t for t in threads[1:]) + " |",
             "|---" * (len(threads) + 1) + "|"]
    worst, slower = None, None
    enough = max(t for t in threads if t <= tree["cpus"])
    for case, of in tree["cases"].items():
        times = {t: statistics.median(of["ms"][str(t)]) for t in threads}
        cells = []
        for t in threads[1:]:
            speed, bound = times[threads[0]] / times[t], of["bound"].get(t)
            cells.append("%.2f" % speed + (" (%.2f, %.2f)" % (bound[1], bound[0]) if bound else ""))
            if bound:
                worst = max(worst or 0.0, abs(bound[1] / speed - 1.0))
            if t > enough:
                slower = max(slower or 0.0, times[t] / times[enough] - 1.0)
        lines.append("| %s | %.4g | %s |" % (CASES[case][0], times[threads[0]], " | ".join(cells)))
    return lines, worst, slower


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("case", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--threads", help="default: those of 1,2,4,8,16 that there are CPUs for")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--output", type=pathlib.Path)
    of = parser.parse_intermixed_args()
    if unknown := [case for case in of.case if case not in CASES]:
        parser.error("no case %s: there are %s" % (unknown[0], ", ".join(CASES)))
    cpus = len(os.sched_getaffinity(0))
    asked = of.threads or "1,2,4,8,16"
    try:
        threads = sorted({int(t) for t in asked.split(",") if of.threads or int(t) <= cpus} | {1})
    except ValueError:
        parser.error("--threads %s: must be whole numbers with commas between them" % asked)
    if len(threads) == 1:
        parser.error("--threads %s: there is nothing to compare" % asked if of.threads else
                     "this process may use one CPU: there is nothing to compare")
    if of.rounds < 1:
        parser.error("--rounds %d: at least one" % of.rounds)
    if of.output:
        try:  # before anything is measured
            of.output.open("a").close()
        except OSError as error:
            parser.error("--output %s: %s" % (of.output, error.strerror))
    tree = {"cpus": cpus, "cases": {}}
    for case in of.case or CASES:
        tree["cases"][case] = {"bound": bounds_of(of.program, case, [t for t in threads[1:] if t <= cpus]), "ms": {str(t): [] for t in threads}}
        for turn in range(of.rounds):
            for t in threads if turn % 2 == 0 else reversed(threads):
                ms = time_of(of.program, case, t, of.seconds)
                tree["cases"][case]["ms"][str(t)].append(ms)
                print("%-10s %3d threads %10.3f ms" % (case, t, ms), file=sys.stderr, flush=True)
                if of.output:
                    of.output.write_text(json.dumps(tree, indent=1) + "\n")
    lines, worst, slower = table(tree, threads)
    print("\n".join(lines))
    if worst is not None:
        print("In brackets what was expected and the bound; the worst expectation is %.0f %% off." % (100.0 * worst))
    if slower is not None:
        print("More threads than CPUs take at most %.0f %% longer than as many." % (100.0 * slower))
    return 1 if (worst or 0.0) > OFF or (slower or 0.0) > SLOWER else 0


if __name__ == "__main__":
    sys.exit(main())
