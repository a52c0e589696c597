#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The queue of real rows: Leeway's beside the same queue on PyTorch tensors, counters compared.

    python3 tools/peers/queue_peer.py --leeway build/leeway [--threads 2] [--rounds 5] [--out queue.json]

Ten steps of refill and draws, primed and cold (`leeway bench queue`). On tensors twice: rings of pictures (32x32x4), as
published trainers keep them, and rings of row numbers whose pictures are fetched when they are drawn. Leeway's rings
hold row numbers of mapped rows, and fetching is no part of its time; so the second is also timed without fetching.
Exit code 1 where a counter differs.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
from peer_common import PEER_ENV, clean_env  # noqa: E402

if __name__ == "__main__" and any(os.environ.get(k) != v for k, v in PEER_ENV.items()):
    os.execve(sys.executable, [sys.executable] + sys.argv, clean_env(PEER_ENV))  # read at the start of a process

import torch  # noqa: E402

PICTURE = (4, 32, 32)
COUNTERS = ("missing_labels", "backfilled_samples", "queue_global_count", "queue_covered_classes")


class Rings:
    """Entries of `like`'s shape: the newest of each class, and of all."""

    def __init__(self, c, like):
        self.per_class, self.whole = c["queue_per_class_capacity"], c["queue_global_capacity"]
        self.of = torch.zeros((c["num_classes"], self.per_class) + like.shape[1:], dtype=like.dtype)
        self.all = torch.zeros((self.whole,) + like.shape[1:], dtype=like.dtype)
        self.pushed, self.total = torch.zeros(c["num_classes"], dtype=torch.long), 0

    def push(self, entries, labels):
        order = torch.argsort(labels, stable=True)
        sorted_labels = labels[order]
        n = torch.bincount(labels, minlength=len(self.pushed))
        first = torch.cumsum(n, 0) - n
        nth = self.pushed[sorted_labels] + torch.arange(len(labels)) - first[sorted_labels]
        keep = nth >= (self.pushed + n)[sorted_labels] - self.per_class  # older ones would be written over
        self.of[sorted_labels[keep], nth[keep] % self.per_class] = entries[order[keep]]
        self.pushed += n
        last = max(0, len(labels) - self.whole)
        self.all[(self.total + torch.arange(last, len(labels))) % self.whole] = entries[last:]
        self.total += len(labels)

    def held(self):
        return self.pushed.clamp(max=self.per_class)

    @staticmethod
    def draw(ring, count, n):
        if n <= count:
            return ring[torch.randperm(count)[:n]]
        return ring[torch.randint(count, (n,))]


class Queue:
    """entries: of each row what the rings hold; fetch: of what is drawn what a step is given."""

    def __init__(self, c, entries, fetch):
        self.c, self.entries, self.fetch = c, entries, fetch
        self.cold = c["queue_prime_samples"] == 0
        self.rows = c["real_dataset_size"]
        self.labels = torch.arange(self.rows) % c["num_classes"]
        self.order, self.at = None, 0
        self.rings = Rings(c, entries)
        self.filled = [0] * c["num_classes"]
        self.missing = self.backfilled = 0
        if not self.cold:
            self.refill(c["queue_prime_samples"])

    def next_rows(self, n):
        if self.order is None or self.at + n > self.rows:
            self.order = torch.arange(self.rows) if self.cold else torch.randperm(self.rows)
            self.at = 0
        self.at += n
        return self.order[self.at - n:self.at]

    def refill(self, n):
        rows = self.next_rows(n)
        self.rings.push(self.entries[rows], self.labels[rows])

    def backfill(self, label, n):
        own = torch.nonzero(self.labels == label).flatten()
        rows = own[(self.filled[label] + torch.arange(n)) % len(own)]
        self.filled[label] += n
        self.rings.push(self.entries[rows], self.labels[rows])
        self.missing += 1
        self.backfilled += 1

    def step(self):
        c, r = self.c, self.rings
        self.refill(c["queue_push_batch"])
        classes = torch.randperm(c["num_classes"])[:c["groups"]].tolist()
        needed = c["positives_per_group"] if self.cold else 1
        held = r.held()
        for label in classes:
            if held[label] < needed:
                self.backfill(label, needed - int(held[label]))
        held = r.held()
        pos = torch.stack([r.draw(r.of[k], int(held[k]), c["positives_per_group"]) for k in classes])
        count = min(r.total, r.whole)
        unc = torch.stack([r.draw(r.all, count, c["unconditional_per_group"]) for _ in classes])
        return self.fetch(pos), self.fetch(unc)

    def counters(self):
        return (self.missing, self.backfilled, min(self.rings.total, self.rings.whole),
                int((self.rings.pushed > 0).sum()))


def queues(c):
    pictures = torch.randn((c["real_dataset_size"],) + PICTURE)
    rows = torch.arange(c["real_dataset_size"])
    return {"rings of pictures": Queue(c, pictures, lambda drawn: drawn),
            "rings of rows, fetched": Queue(c, rows, lambda drawn: pictures[drawn]),
            "rings of rows": Queue(c, rows, lambda drawn: drawn)}


def ten(queue):
    start = time.perf_counter()
    for _ in range(queue.c["steps"]):
        queue.step()
    return 1e3 * (time.perf_counter() - start)


def bench(o):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "bench.json")
        subprocess.run([o.leeway, "bench", "queue", "--save", path, "--warm-up", "2", "--samples", "5", "--no-reference",
                        "--threads", str(o.threads)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=clean_env())
        with open(path, encoding="utf-8") as f:
            return {r["name"]: r for r in json.load(f)["results"]}


def counters_of(result):
    both = dict(result, **result["queue_underflow_totals"])
    return tuple(both[k] for k in COUNTERS)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--leeway", default="build/leeway")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--out")
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    peers, ms, table, differs = {}, {}, {}, 0
    for _ in range(o.rounds):
        for name, result in bench(o).items():
            if name not in peers:
                peers[name] = queues(dict(result["config"], steps=result["steps"]))
                for q in peers[name].values():
                    for _ in range(2):
                        ten(q)
            ms.setdefault(name, {}).setdefault("leeway", []).append(result["median_ms"])
            table[name] = counters_of(result)
            for how, q in peers[name].items():
                ms[name].setdefault(how, []).extend(ten(q) for _ in range(5))
    for name, all_ms in ms.items():
        mid = {k: statistics.median(v) for k, v in all_ms.items()}
        best = min((v, k) for k, v in mid.items() if k != "leeway")
        print("%s: leeway %.3f ms; %s; %.1f times the best (%s), asked for 5 / 10" % (
            name, mid["leeway"], ", ".join("%s %.2f" % kv for kv in mid.items() if kv[0] != "leeway"),
            best[0] / mid["leeway"], best[1]), flush=True)
        for how, q in peers[name].items():
            same = q.counters() == table[name]
            differs += not same
            print("  %s: %s%s" % (how, ", ".join("%s %d" % kv for kv in zip(COUNTERS, q.counters())),
                                  "" if same else ": leeway has %s" % (table[name],)))
    if o.out:
        with open(o.out, "w", encoding="utf-8") as f:
            json.dump(dict(torch=torch.__version__, threads=o.threads, ms=ms, counters=table), f, indent=1)
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
