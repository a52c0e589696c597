#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attraction_error.py TRAIN.npz HELD.npz: how far the attraction of docs/drifting.md to some of the real features of a
class is from that to all of them: rows drawn, as training does, landmarks (Nystrom), centres that count as often as they
have rows (k-means). Both files are of `leeway encode .. --layer pooled` on labelled pictures; held-out features, as they
are and with noise of the features' deviation, stand for generated ones. Needs numpy. Prints |error| / |attraction|, mean
over classes."""
import sys

import numpy as np


def distances(a, b):
    return np.sqrt(np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T, 1e-8))


def attraction(x, t, h, count=1.0):
    """To where exp(-|x - t| / h) count pulls x."""
    d = distances(x, t)
    a = np.exp(-(d - d.min(1, keepdims=True)) / h) * count
    return a @ t / a.sum(1, keepdims=True) - x


def nystrom(x, t, z, h):
    """The same with k(x, z) k(z, z)^-1 k(z, t) for k(x, t)."""
    inner = np.exp(-distances(z, z) / h)
    np.fill_diagonal(inner, 1 + 1e-6)
    sums = np.linalg.solve(inner, np.exp(-distances(z, t) / h) @ np.c_[t, np.ones(len(t))])
    d = distances(x, z)
    y = np.exp(-(d - d.min(1, keepdims=True)) / h) @ sums
    far = np.abs(y[:, -1:]) < 1e-12
    return np.where(far, z.mean(0), y[:, :-1] / np.where(far, 1, y[:, -1:])) - x


def centres(t, m, rng):
    c = t[rng.choice(len(t), m, replace=False)]
    for _ in range(8):
        nearest = distances(t, c).argmin(1)
        n = np.bincount(nearest, minlength=m)
        total = np.zeros_like(c)
        np.add.at(total, nearest, t)
        c = np.where(n[:, None] > 0, total / np.maximum(n, 1)[:, None], c)
    return c, np.bincount(distances(t, c).argmin(1), minlength=m)


def errors(x, t, h, rng):
    exact = attraction(x, t, h)
    for m in (64, 256, 1024):
        z = t[rng.choice(len(t), m, replace=False)]
        c, n = centres(t, m, rng)
        for name, v in (
            ("drawn", attraction(x, z, h)),
            ("landmarks", nystrom(x, t, z, h)),
            ("centres", attraction(x, c, h, n)),
        ):
            yield (name, m), np.sqrt(((v - exact) ** 2).sum() / (exact**2).sum())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    train, held = (np.load(path) for path in sys.argv[1:])
    rng = np.random.default_rng(0)
    found = {}
    for c in np.unique(train["labels"]):
        t = train["pooled"][train["labels"] == c].astype(np.float64)
        x = held["pooled"][held["labels"] == c][:64].astype(np.float64)
        for kind, at in (("held-out", x), ("noised", x + rng.normal(size=x.shape) * t.std(0))):
            for tau in (0.02, 0.05, 0.2):
                for what, error in errors(at, t, tau * distances(at, t).mean(), rng):
                    found.setdefault((kind, tau) + what, []).append(error)
    for key, values in sorted(found.items()):
        print(*key, f"{np.mean(values):.3f} +- {np.std(values):.3f}")


main()
