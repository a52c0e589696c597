# SPDX-License-Identifier: Apache-2.0
"""Leeway's evaluation of a proof policy beside a padded one in PyTorch: same candidates, same
weights, same limits, and whether scores and ranks are the same. See tools/peers/README.md."""
import argparse
import dataclasses
import json
import os
import sys
import time

import peer_common as peer

if __name__ == "__main__":  # before torch is loaded: its allocator and threads read them then
    wanted = peer.clean_env(peer.PEER_ENV)
    if "LW_PEER_CHILD" not in os.environ:
        os.execve(sys.executable, [sys.executable] + sys.argv, dict(wanted, LW_PEER_CHILD="1"))

import torch  # noqa: E402

import prove_compare as compare  # noqa: E402
from prove_draws import uniforms  # noqa: E402
from prove_env import Env, Limits  # noqa: E402
from prove_kb import Base  # noqa: E402
from prove_net import Policy  # noqa: E402


def note(text):
    print(text, file=sys.stderr, flush=True)


@dataclasses.dataclass
class Log:
    """What a run took: for every step of every batch how long its halves were and how many
    queries were done before it."""
    policy: list = dataclasses.field(default_factory=list)
    engine: list = dataclasses.field(default_factory=list)
    done: list = dataclasses.field(default_factory=list)
    steps: list = dataclasses.field(default_factory=list)
    begin: float = 0.0


class Evaluator:
    def __init__(self, env, net, o):
        self.env, self.net, self.o = env, net, o
        self.positions = torch.arange(env.limits.states)
        self.choose, self.advance = self.choose_eager, env.step
        if o.compile:
            self.choose = torch.compile(self.choose_eager, mode=o.compile, dynamic=False)
            self.advance = torch.compile(env.step, mode=o.compile, dynamic=False)

    def choose_eager(self, s, draw):
        """The successor that each query takes, the most probable one or as `draw` [B] says, and
        its log-probability."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.o.autocast):
            logits = self.net(s.current, s.derived, self.positions < s.count[:, None]).float()
        if self.o.temperature:
            logits = logits / self.o.temperature
        log_probs = torch.log_softmax(logits, 1)
        choice = logits.argmax(1)
        if self.o.sample:
            passed = (logits.double() - logits.max(1, keepdim=True).values).exp().cumsum(1)
            over = passed > draw[:, None] * passed[:, -1:]
            choice = torch.minimum(over.long().argmax(1), s.count - 1)
        return choice, log_probs.gather(1, choice[:, None])[:, 0]

    def batch(self, queries, draws, log):
        """All steps of one full batch: scores [B], proved [B], depths [B]."""
        t = time.perf_counter()
        s = self.env.begin(queries)
        total = torch.zeros(len(queries), dtype=torch.float64)
        log.begin += time.perf_counter() - t
        steps = 0
        while steps < self.env.limits.depth and not bool(s.done.all()):
            t = time.perf_counter()
            log.done.append(int(s.done.sum()))
            choice, log_prob = self.choose(s, draws[:, steps])
            total = total + torch.where(s.done, 0.0, log_prob.double())
            log.policy.append(time.perf_counter() - t)
            t = time.perf_counter()
            s = self.advance(s, choice)
            log.engine.append(time.perf_counter() - t)
            steps += 1
        log.steps.append(steps)
        return total, s.proved, s.depth

    @torch.inference_mode()
    def run(self, queries, draws, log):
        size, out = self.o.fixed_batch_size, []
        for at in range(0, len(queries), size):
            rows = torch.arange(at, at + size).clamp(max=len(queries) - 1)  # filled with the last
            kept = min(size, len(queries) - at)
            out.append([x[:kept] for x in self.batch(queries[rows], draws[rows], log)])
            note("  %d of %d candidates, %d steps" % (at + kept, len(queries), log.steps[-1]))
        return [torch.cat(x) for x in zip(*out)]

    @torch.inference_mode()
    def warm_up(self, queries):
        """Two steps at the size that is going to be timed; compiles what there is to compile."""
        t = time.perf_counter()
        size = self.o.fixed_batch_size
        full = queries[:1].expand(size, 3).contiguous()
        s = self.env.begin(full)
        for _ in range(2):
            s = self.advance(s, self.choose(s, torch.zeros(size, dtype=torch.float64))[0])
        return time.perf_counter() - t


def options(argv=None):
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("dataset", help="directory with train.txt, test.txt, rules.txt")
    p.add_argument("--leeway", default=os.path.join(peer.ROOT, "build", "leeway"))
    p.add_argument("--rules", help="rules file (rules.txt of the dataset)")
    p.add_argument("--queries", type=int, default=5, help="first queries of test.txt (5)")
    p.add_argument("--corruptions", type=int, default=100, help="of each query (100)")
    p.add_argument("--mode", default="both", help="both, head or tail (both)")
    p.add_argument("--seed", type=int, default=42, help="of the formula weights (42)")
    p.add_argument("--sample", action="store_true", help="draw choices, the same on both sides")
    p.add_argument("--temperature", type=float, default=0, help="logits are divided by it")
    p.add_argument("--fixed-batch-size", type=int, default=512)
    p.add_argument("--max-depth", type=int, default=20)
    p.add_argument("--facts", choices=("padded", "compact"), default="padded",
                   help="padded: to the largest predicate, as published; compact: to the most "
                        "matches in the batch, kinder to PyTorch")
    p.add_argument("--compile", choices=("default", "reduce-overhead", "max-autotune"))
    p.add_argument("--autocast", action="store_true", help="bf16 products on both sides")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--rounds", type=int, default=3, help="runs of leeway; the median counts (3)")
    p.add_argument("--work", default=os.path.join(peer.ROOT, "build", "peers"))
    p.add_argument("--out", help="write the tables and every figure as JSON here")
    p.add_argument("--scores", help="take candidates and Leeway's scores from this CSV of "
                                    "`leeway prove eval --save-scores`; run no leeway")
    return p.parse_args(argv)


def shares(log, size, candidates):
    """The figures of one evaluation in PyTorch."""
    engine, policy = sum(log.engine) + log.begin, sum(log.policy)
    by_step, at = {}, 0
    for steps in log.steps:
        for k in range(steps):
            row = by_step.setdefault(k, [0, 0, 0.0])
            row[0] += 1
            row[1] += log.done[at]
            row[2] += log.policy[at] + log.engine[at]
            at += 1
    real = [{"step": k, "done": n / (b * size), "ms": 1e3 * t / b}
            for k, (b, n, t) in sorted(by_step.items())]
    return {"policy_seconds": policy, "engine_seconds": engine, "steps": sum(log.steps),
            "batches": len(log.steps), "padded_query_steps": sum(log.steps) * size,
            "candidates": candidates, "by_step": real}


def main():
    o = options()
    torch.set_num_threads(o.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    os.makedirs(o.work, exist_ok=True)
    leeway = compare.read_scores(o.scores) if o.scores else compare.run_leeway(o)
    base = Base(o.dataset, o.rules)
    limits = Limits(depth=o.max_depth, facts=o.facts)
    net = Policy(base.n_constants, base.n_predicates + 3).set_formula(o.seed).eval()
    evaluator = Evaluator(Env(base, limits), net, o)
    queries = torch.tensor([base.atom(a) for a in leeway.atoms])
    draws = torch.from_numpy(uniforms(leeway.ids, o.max_depth))
    note("PyTorch %s, %d threads: %d candidates in batches of %d"
         % (torch.__version__, torch.get_num_threads(), len(queries), o.fixed_batch_size))
    warm = evaluator.warm_up(queries)
    log, t = Log(), time.perf_counter()
    log_probs, proved, depths = evaluator.run(queries, draws, log)
    seconds = time.perf_counter() - t
    torch_scores = (log_probs - 100.0 * ~proved).tolist()
    figures = dict(shares(log, o.fixed_batch_size, len(queries)), warm_up_seconds=warm,
                   seconds=seconds, real_query_steps=int(depths.sum()))
    result = compare.judge(leeway, torch_scores, proved.tolist(), depths.tolist())
    text = compare.tables(o, leeway, figures, result)
    print(text)
    if o.out:
        with open(o.out, "w", encoding="utf-8") as f:
            json.dump({"options": vars(o), "torch": torch.__version__, "pytorch": figures,
                       "leeway": leeway.summary, "comparison": result, "text": text}, f, indent=1)
    if result["ranks_different"] and not o.autocast:  # two ways of rounding choose differently
        sys.exit(1)


if __name__ == "__main__":
    main()
