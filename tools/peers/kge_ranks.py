# SPDX-License-Identifier: Apache-2.0
"""Filtered ranks of an embedding, computed again with numpy in double precision.

    python tools/peers/kge_ranks.py data/family RUN [queries]
    leeway prove rank data/family --kge RUN --n-queries ...

Both print the MRR of heads, of tails and of both. Reads the dataset's text and the run's
config.json and safetensors itself; shares no code with Leeway.
"""
import json
import re
import struct
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np


def tensors(path):
    raw = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    out = {}
    for name, t in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + x for x in t["data_offsets"])
            out[name] = np.frombuffer(raw[begin:end], np.float32).reshape(t["shape"]).astype(float)
    return out


def triples(path):
    if not path.exists():
        return []
    lines = (line.strip() for line in path.read_text().splitlines())
    return [re.match(r"(.*)\((.*?),(.*)\)", line).groups() for line in lines if line]


def domains(path):
    return [line.split()[1:] for line in path.read_text().splitlines()] if path.exists() else []


class Model:
    def __init__(self, run):
        folder = Path(run) / "checkpoints/last/ema"
        self.config = json.loads((folder / "config.json").read_text())
        t = tensors(folder / "model.safetensors")
        self.entity, self.relation = t["entity_embedding"], t["relation_embedding"]

    def pairs(self, x):
        d = self.config["embedding_dim"]
        return x[..., :d] + 1j * x[..., d:]

    def score(self, h, r, t):
        c, kind = self.config, self.config["model"]
        if kind == "TransE":
            return c["gamma"] - np.linalg.norm(h + r - t, ord=c["norm"], axis=-1)
        if kind == "DistMult":
            return (h * r * t).sum(-1)
        if kind == "ComplEx":
            return (self.pairs(h) * self.pairs(r) * np.conj(self.pairs(t))).real.sum(-1)
        turn = np.exp(1j * np.pi * r / c["embedding_range"])
        return c["gamma"] - np.abs(self.pairs(h) * turn - self.pairs(t)).sum(-1)

    def heads(self, r, t):
        e = self.entity
        if self.config["inverse_relations"]:
            return self.score(e[t], self.relation[self.config["relations"] + r], e)
        return self.score(e, self.relation[r], e[t])

    def tails(self, h, r):
        return self.score(self.entity[h], self.relation[r], self.entity)


def reciprocal(scores, answer, known):
    scores, true = scores.copy(), scores[answer]
    scores[list(known)] = -np.inf
    return 1 / (1 + (scores > true).sum() + (scores == true).sum() / 2)


def main():
    data, model = Path(sys.argv[1]), Model(sys.argv[2])
    facts, test = triples(data / "train.txt"), triples(data / "test.txt")
    true = facts + test + triples(data / "valid.txt")
    names = {x for f in facts for x in f[1:]} | {x for d in domains(data / "domain2constants.txt") for x in d}
    number = {x: i for i, x in enumerate(sorted(names, key=str.encode))}
    relation = {x: i for i, x in enumerate(sorted({f[0] for f in facts}, key=str.encode))}
    assert len(number) == model.config["entities"] and len(relation) == model.config["relations"]
    known = defaultdict(set)
    for p, h, t in true:
        known[p, h, None].add(number[t])
        known[p, None, t].add(number[h])
    queries = test[: int(sys.argv[3])] if len(sys.argv) > 3 else test
    found = {"head": [], "tail": []}
    for p, h, t in queries:
        r = relation[p]
        found["head"].append(reciprocal(model.heads(r, number[t]), number[h], known[p, None, t]))
        found["tail"].append(reciprocal(model.tails(number[h], r), number[t], known[p, h, None]))
    for side, values in found.items():
        print(f"{side}  MRR {np.mean(values):.4f}")
    print(f"both  MRR {np.mean(found['head'] + found['tail']):.4f}")


main()
