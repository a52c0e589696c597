#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frechet distances of `leeway fid` against numpy and scipy, from statistics and from features.

    tools/frechet_check.py build/leeway            # random, ill-conditioned, rank-deficient: seconds
    tools/frechet_check.py build/leeway --time     # d = 2,048 in turns with scipy's sqrtm and eigvalsh

Needs numpy; scipy for sqrtm, torch for eigvalsh (each left out when missing). The distances that are
compared come from singular values of a product of factors (eigh), which loses nothing at low rank;
sqrtm, which does, is printed beside them.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

try:
    from scipy.linalg import sqrtm
except ImportError:
    sqrtm = None


def factor(cov):
    values, vectors = np.linalg.eigh(cov)
    return vectors * np.sqrt(np.maximum(values, 0))


def distance(mu1, c1, mu2, c2, l1=None, l2=None):
    l1 = factor(c1) if l1 is None else l1
    l2 = factor(c2) if l2 is None else l2
    norm = np.linalg.svd(l1.T @ l2, compute_uv=False).sum()
    return np.sum((mu1 - mu2) ** 2) + np.trace(c1) + np.trace(c2) - 2 * norm


def by_sqrtm(mu1, c1, mu2, c2):
    root = np.real(sqrtm(c1 @ c2))
    return np.sum((mu1 - mu2) ** 2) + np.trace(c1 + c2 - 2 * root)


def rows(rng, n, d, decades, shift):
    """n rows whose variances fall by so many powers of ten, turned at random."""
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (rng.standard_normal((n, d)) * 10.0 ** (-decades * np.arange(d) / d / 2)) @ turn + shift


def leeway(binary, a, b, threads):
    out = subprocess.run([binary, "fid", a, b, "--json", "--threads", str(threads)], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    result = json.loads(out.stdout)["results"][0]
    return result["frechet"], result["seconds"]


def statistics(x):
    x = x.astype("f8")
    return x.mean(0), np.atleast_2d(np.cov(x, rowvar=False))


def check(binary, folder):
    worst, cases = 0.0, [
        ("random", 300, 900, 700, 0), ("one feature", 1, 50, 60, 0),
        ("ill-conditioned", 300, 900, 700, 10), ("variances over 16 decades", 200, 900, 700, 16),
        ("rank-deficient", 400, 100, 150, 0), ("rank-deficient beside full", 400, 60, 2000, 0),
        ("rank-deficient, ill-conditioned", 400, 120, 300, 8), ("two rows", 128, 2, 3, 0)]
    print(f"{'case':34} {'d':>4} {'n1':>5} {'n2':>5} {'distance':>14} {'statistics':>11} "
          f"{'features':>11} {'sqrtm off':>10}")
    for seed, (name, d, n1, n2, decades) in enumerate(cases):
        rng = np.random.default_rng(seed)
        x = rows(rng, n1, d, decades, .3).astype("f4")
        y = (1.3 * rows(rng, n2, d, decades, .2)).astype("f4")
        (m1, c1), (m2, c2) = statistics(x), statistics(y)
        l1, l2 = ((z.astype("f8") - m).T / np.sqrt(len(z) - 1) for z, m in ((x, m1), (y, m2)))
        want = distance(m1, c1, m2, c2, l1, l2)
        p = [os.path.join(folder, f"{k}.npz") for k in ("a", "b", "fa", "fb")]
        np.savez(p[0], mu=m1, sigma=c1)
        np.savez(p[1], mu=m2, sigma=c2)
        np.savez(p[2], pooled=x)
        np.savez(p[3], pooled=y)
        off = [abs(leeway(binary, p[k], p[k + 1], t)[0] - want) / want for k in (0, 2)
               for t in (1, 2)]
        worst = max(worst, *off)
        other = f"{abs(by_sqrtm(m1, c1, m2, c2) - want) / want:10.1e}" if sqrtm else ""
        print(f"{name:34} {d:4} {n1:5} {n2:5} {want:14.8f} {max(off[:2]):11.1e} "
              f"{max(off[2:]):11.1e} {other}")
    return worst


def by_eigvalsh(torch, m1, c1, m2, c2):
    values, vectors = torch.linalg.eigh(c1)
    root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    trace = torch.linalg.eigvalsh(root @ c2 @ root).clamp(min=0).sqrt().sum()
    return (((m1 - m2) ** 2).sum() + torch.trace(c1) + torch.trace(c2) - 2 * trace).item()


def clock(call):
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return value, time.perf_counter() - wall, time.process_time() - cpu


def timing(binary, folder, threads):
    try:
        import torch
        torch.set_num_threads(threads)
    except ImportError:
        torch = None
    for name, n in (("full rank", 6000), ("rank-deficient, 1,000 rows", 1000)):
        rng = np.random.default_rng(n)
        x, y = (rng.standard_normal((n, 2048)).astype("f4") * s for s in (1, 1.2))
        (m1, c1), (m2, c2) = statistics(x), statistics(y)
        p = [os.path.join(folder, f"{k}.npz") for k in ("a", "b", "fa", "fb")]
        for path, values in zip(p, ({"mu": m1, "sigma": c1}, {"mu": m2, "sigma": c2},
                                    {"pooled": x}, {"pooled": y})):
            np.savez(path, **values)
        print(f"d = 2,048, {name}, {threads} threads")
        for k, what in ((0, "leeway, statistics"), (2, "leeway, features (sums included)")):
            best = min((leeway(binary, p[k], p[k + 1], threads)[::-1] for _ in range(3)))
            print(f"  {what:34} {best[1]:16.8f} {best[0]:8.2f} s")
        if torch:
            t = [torch.from_numpy(v) for v in (m1, c1, m2, c2)]
            value, wall, cpu = clock(lambda: by_eigvalsh(torch, *t))
            print(f"  {'torch, eigh and eigvalsh':34} {value:16.8f} {wall:8.2f} s, {cpu:.2f} s of CPU")
        if sqrtm:
            value, wall, cpu = clock(lambda: by_sqrtm(m1, c1, m2, c2))
            print(f"  {'scipy, sqrtm':34} {value:16.8f} {wall:8.2f} s, {cpu:.2f} s of CPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.time:
            timing(args.binary, folder, args.threads)
            return 0
        worst = check(args.binary, folder)
    print(f"largest relative difference: {worst:.1e} (at most 1e-6)")
    return 0 if worst <= 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
