#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The published masked autoencoder's features and their drift fields: Leeway beside PyTorch, eager and compiled.

    python3 tools/peers/mae_peer.py --leeway build/leeway [--threads 2] [--rounds 5] [--out mae.json]

Three rows at C0 = 64: 86 keys of 16 latents of 32x32x4; their gradient to the latents; fields of all keys of 8 classes
x (16 generated + 32 positive + 8 unconditional), statistics and gradients to the maps included. Libraries take turns;
each round is one process of Leeway (`leeway bench mae`) and one turn of every setting of PyTorch. --small: does it run?
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from peer_common import PEER_ENV, clean_env  # noqa: E402

if __name__ == "__main__" and any(os.environ.get(k) != v for k, v in PEER_ENV.items()):
    os.execve(sys.executable, [sys.executable] + sys.argv, clean_env(PEER_ENV))  # read at the start of a process

import torch  # noqa: E402

from field_peer import Field, OneExponential  # noqa: E402
from golden import mae  # noqa: E402

SIDE, LATENT = 32, 4


def statistic(x, p):
    """mean and std of p x p patches of [B,C,H,W] -> [B,T,C] each."""
    b, c, h, w = x.shape
    v, m = torch.var_mean(x.reshape(b, c, h // p, p, w // p, p), (3, 5), correction=0)
    return [t.reshape(b, c, -1).transpose(1, 2) for t in (m, (v + 1e-6).sqrt())]


def keys_of(x, maps):
    out = [x.flatten(1)[:, None], (x * x).mean((2, 3)).add(1e-6).sqrt()[:, None]]
    for m in maps:
        out.append(m.flatten(2).transpose(1, 2))
        for p in (m.shape[2], 2, 4):
            out += statistic(m, p)
    return out


def shapes(width):
    """[C,H,W] of the twelve maps."""
    p = mae.parameters(mae.shapes(LATENT, width, 1, 0), torch.float32)
    with torch.no_grad():
        return [tuple(m.shape[1:]) for m in mae.features(p, torch.zeros(1, LATENT, SIDE, SIDE)).values()]


class Features:
    """Weights are random: times do not depend on them."""

    def __init__(self, width, batch, gradient, fmt):
        self.p = {n: torch.randn(s) * (2.0 / max(1, torch.Size(s[1:]).numel())) ** 0.5 if len(s) > 1 else
                  torch.ones(s) for n, s in mae.shapes(LATENT, width, 1, 0).items()}
        self.p = {n: v.contiguous(memory_format=fmt) if v.dim() == 4 else v for n, v in self.p.items()}
        self.x = torch.randn(batch, LATENT, SIDE, SIDE).contiguous(memory_format=fmt)
        self.gradient = gradient
        self.dy = [torch.randn_like(k) for k in self.keys(self.p, self.x)] if gradient else None

    @staticmethod
    def keys(p, x):
        return keys_of(x, list(mae.features(p, x).values()))

    def make(self, call):
        if not self.gradient:
            def forward():
                with torch.no_grad():
                    return call(self.p, self.x)
            return forward
        x = self.x.detach().requires_grad_()

        def both():
            return torch.autograd.grad(call(self.p, x), x, self.dy)
        return both

    def settings(self):
        yield self.make(self.keys)

    def compiled(self):
        return self.make(torch.compile(self.keys))


class Fields:
    """Gradients of all keys' fields to the generated maps."""

    def __init__(self, width, groups, n, np, nu, field):
        self.groups, self.field = groups, field()
        self.part = []
        for rows in (n, np, nu):
            b = groups * rows
            self.part.append([torch.randn(b, LATENT, SIDE, SIDE)]
                             + [torch.randn(b, *s) for s in shapes(width)])

    def call(self, gen, pos, unc):
        with torch.no_grad():
            real, free = keys_of(pos[0], pos[1:]), keys_of(unc[0], unc[1:])
        keys, total = keys_of(gen[0], gen[1:]), []
        with torch.no_grad():
            for x, p, u in zip(keys, real, free):
                f, dx = self.field(*(self.slots(t) for t in (x, u, p)))
                total.append(self.back(dx, x))
        return keys, total

    def slots(self, t):
        """[G rows,T,C] -> [G T,rows,C]."""
        b, slots, c = t.shape
        t = t.reshape(self.groups, b // self.groups, slots, c)
        return t.transpose(1, 2).reshape(self.groups * slots, -1, c)

    def back(self, dx, like):
        b, slots, c = like.shape
        return dx.reshape(self.groups, slots, -1, c).transpose(1, 2).reshape(b, slots, c)

    def make(self, call):
        gen = [t.requires_grad_() for t in self.part[0]]

        def run():
            keys, dy = call(gen, *self.part[1:])
            return torch.autograd.grad(keys, gen, dy)
        return run

    def settings(self):
        yield self.make(self.call)

    def compiled(self):
        return self.make(torch.compile(self.call))


def rows(small):
    width, batch, shape = (40, 2, (2, 4, 4, 2)) if small else (64, 16, (8, 16, 32, 8))
    tag = "w%d_b%d" % (width, batch)
    nchw, last = torch.contiguous_format, torch.channels_last
    return [
        ("mae_keys_" + tag, 1.4, 1.8, {"nchw": lambda: Features(width, batch, False, nchw),
                                       "channels_last": lambda: Features(width, batch, False, last)}),
        ("mae_keys_gradient_" + tag, 1.4, 1.8, {"nchw": lambda: Features(width, batch, True, nchw),
                                                "channels_last": lambda: Features(width, batch, True, last)}),
        ("mae_fields_w%d_%s" % (width, "x".join(map(str, shape))), 2.0, 3.0,
         {"softmaxes": lambda: Fields(width, *shape, Field),
          "one exponential": lambda: Fields(width, *shape, OneExponential)})]


def leeway(command, name, threads):
    """Median milliseconds of a case."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "bench.json")
        subprocess.run(shlex.split(command) + ["bench", "mae", "--filter", "mae." + name, "--save", path, "--warm-up", "1",
                                               "--samples", "3", "--no-reference", "--threads", str(threads)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env=clean_env())
        with open(path, encoding="utf-8") as f:
            case = json.load(f)["results"][0]
    return case["median_ms"]


def once(run):
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def settings(make, compile_too):
    """Name -> callable, warm; what cannot be made is said."""
    out = {}
    for name, of in make.items():
        for how in ("", "compiled ") if compile_too else ("",):
            try:
                what = of()
                run = what.compiled() if how else next(what.settings())
                run()
                out[how + name] = run
            except Exception as e:  # pylint: disable=broad-except
                print("  %s%s: %s" % (how, name, str(e).split("\n")[0][:200]), file=sys.stderr)
    return out


def measure(o, name, make):
    ms = {"leeway": []}
    peers = settings(make, not o.no_compile)
    for _ in range(o.rounds):
        ms["leeway"].append(leeway(o.leeway, name, o.threads))
        time.sleep(0.3)
        for peer, run in peers.items():
            run()
            ms.setdefault(peer, []).extend(once(run) for _ in range(3))
            time.sleep(0.3)
    return {k: statistics.median(v) for k, v in ms.items()}, ms


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--leeway", default="build/leeway")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--rows", default="", help="only those whose name has this in it")
    p.add_argument("--small", action="store_true")
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--out")
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    torch.set_flush_denormal(True)
    table = {}
    for name, must, stretch, make in rows(o.small):
        if o.rows not in name:
            continue
        ms, samples = measure(o, name, make)
        best = min((v, k) for k, v in ms.items() if k != "leeway")
        table[name] = dict(ms=ms, samples=samples, ratio=best[0] / ms["leeway"], best=best[1], must=must,
                           stretch=stretch)
        print("%s: leeway %.1f ms; %s; %.2f times the best (%s), asked for %.1f / %.1f" % (
            name, ms["leeway"], ", ".join("%s %.1f" % (k, v) for k, v in ms.items() if k != "leeway"),
            best[0] / ms["leeway"], best[1], must, stretch), flush=True)
    if o.out:
        with open(o.out, "w", encoding="utf-8") as f:
            json.dump(dict(torch=torch.__version__, threads=o.threads, rows=table), f, indent=1)


if __name__ == "__main__":
    main()
