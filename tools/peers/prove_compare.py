# SPDX-License-Identifier: Apache-2.0
"""Leeway's side of prove.py, and what both sides say about each other: scores, ranks, times."""
import csv
import json
import os
import statistics
import subprocess

import peer_common as peer
from prove_draws import walk_id


class Leeway:
    """What `leeway prove eval` said: candidates in order, list by list."""

    def __init__(self, rows):
        self.atoms = [(r["predicate"], r["head"], r["tail"]) for r in rows]
        self.lists = [(r["mode"], int(r["query"])) for r in rows]
        self.ids = [walk_id(r["mode"], int(r["query"]) - 1, int(r["candidate"])) for r in rows]
        self.scores = [float(r["score"]) for r in rows]
        self.proved = [r["end"] == "proved" for r in rows]
        self.depths = [int(r["depth"]) for r in rows]
        self.summary, self.seconds = {}, []


def read_scores(path):
    with open(path, newline="", encoding="utf-8") as f:
        return Leeway(list(csv.DictReader(f)))


def arguments(o):
    more = ["--rules", o.rules] if o.rules else []
    if o.sample:
        more += ["--no-deterministic"]
    if o.temperature:
        more += ["--temperature", "%g" % o.temperature]
    if o.autocast:
        more += ["--precision", "bf16"]
    return [o.leeway, "prove", "eval", o.dataset, "--n-queries", str(o.queries), "--query-order", "first",
            "--n-corruptions", str(o.corruptions), "--corruption-modes", o.mode,
            "--policy", "formula:%d" % o.seed, "--max-depth", str(o.max_depth),
            "--fixed-batch-size", str(o.fixed_batch_size), "--threads", str(o.threads),
            "--json"] + more


def run_leeway(o):
    """One run that saves the scores, then `rounds` timed ones."""
    path = os.path.join(o.work, "prove_scores.csv")
    for k in range(o.rounds + 1):
        argv = arguments(o) + ([] if k else ["--save-scores", path])
        done = subprocess.run(argv, env=peer.clean_env(), capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise SystemExit("%s\n%s" % (" ".join(argv), done.stderr))
        if k == 0:
            out = read_scores(path)
        out.summary = json.loads(done.stdout)
        if k:
            out.seconds.append(out.summary["seconds"])
    return out


def ranks(lists, scores):
    """1 + higher + ties / 2 of the first candidate of every list, in order of the lists."""
    out, members = [], {}
    for i, name in enumerate(lists):
        members.setdefault(name, []).append(scores[i])
    for name, (own, *others) in members.items():
        higher = sum(x > own for x in others)
        ties = sum(x == own for x in others)
        out.append((name, 1 + higher + 0.5 * ties))
    return out


def judge(leeway, scores, proved, depths):
    """Largest difference of scores, and every list whose ranks differ."""
    differences = [abs(a - b) for a, b in zip(leeway.scores, scores)]
    worst = max(range(len(scores)), key=differences.__getitem__)
    ours, theirs = ranks(leeway.lists, leeway.scores), ranks(leeway.lists, scores)
    return {"lists": len(ours), "candidates": len(scores),
            "ranks_different": sum(a != b for a, b in zip(ours, theirs)),
            "different": [{"list": a[0], "leeway": a[1], "pytorch": b[1]}
                          for a, b in zip(ours, theirs) if a != b][:20],
            "max_abs_score_difference": differences[worst],
            "worst_candidate": list(leeway.atoms[worst]),
            "ends_different": sum(a != b for a, b in zip(leeway.proved, proved)),
            "depths_different": sum(a != b for a, b in zip(leeway.depths, depths)),
            "mrr": sum(1 / r for _, r in ours) / len(ours),
            "mrr_pytorch": sum(1 / r for _, r in theirs) / len(theirs)}


def table(head, rows):
    lines = ["| %s |" % " | ".join(head), "|%s|" % "|".join(["---"] * len(head))]
    return "\n".join(lines + ["| %s |" % " | ".join(r) for r in rows])


def time_row(name, compile_s, run_s, queries, candidates):
    return [name, "%.2f" % compile_s, "%.3f" % run_s, "%.2f" % (1e3 * run_s / queries),
            "%.4f" % (1e3 * run_s / candidates), "%.2f" % (compile_s + run_s)]


def step_table(figures):
    rows = [[str(s["step"]), "%.1f %%" % (100 * s["done"]), "%.0f" % s["ms"]]
            for s in figures["by_step"]]
    return table(["step", "done before it", "ms of a batch"], rows)


def tables(o, leeway, figures, result):
    n, queries = result["candidates"], len(set(leeway.lists))
    mode = "PyTorch, padded, %s%s" % (o.compile and "compiled (%s)" % o.compile or "eager",
                                      " bf16" if o.autocast else "")
    rows = [time_row(mode, figures["warm_up_seconds"], figures["seconds"], queries, n)]
    text = []
    if leeway.seconds:
        ours = statistics.median(leeway.seconds)
        rows.append(time_row("Leeway", 0, ours, queries, n))
        text.append("\nPyTorch / Leeway: %.1f times the seconds, warm-up not counted."
                    % (figures["seconds"] / ours))
    text.insert(0, table(["Mode", "Compile(s)", "Runtime(s)", "ms/query", "ms/candidate",
                          "Total(s)"], rows))
    text.append("PyTorch computed %d query-steps, of which %d were those of live proofs; the "
                "policy took %.2f s, the environment %.2f s."
                % (figures["padded_query_steps"], figures["real_query_steps"],
                   figures["policy_seconds"], figures["engine_seconds"]))
    text.append("Scores: largest difference %.2e; %d ends and %d depths of %d differ. "
                "Ranks: %d of %d differ (MRR %.6f and %.6f).\n"
                % (result["max_abs_score_difference"], result["ends_different"],
                   result["depths_different"], n, result["ranks_different"], result["lists"],
                   result["mrr"], result["mrr_pytorch"]))
    text.append(step_table(figures))
    return "\n".join(text)
