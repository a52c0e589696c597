#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The drift field in PyTorch eager and in numpy against leeway, f32, three temperatures, in one run.

    python3 bench/peers/field_peer.py --leeway "build/leeway bench field --threads 2 --json"

The PyTorch version is what the formulas suggest: one batched distance product, log-softmax over rows
and columns, two batched products per temperature. numpy runs the same with its BLAS.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peer_common as peer  # noqa: E402

TAUS = (0.02, 0.05, 0.2)
#         groups * slots, generated, positives, channels
SHAPES = {"field_16x64x128x192": (16, 64, 128, 192),
          "field_1x1024x1024x128": (1, 1024, 1024, 128),
          "field_1x1024x1024x768": (1, 1024, 1024, 768),
          "field_512x16x64x64": (512, 16, 64, 64),
          "field_1x4096x4096x128": (1, 4096, 4096, 128)}


def torch_field(torch, x, p):
    """F and its closed-form gradient; see tools/golden/drift.py for the formulas in double."""
    b, n, c = x.shape
    t = torch.cat([x, p], 1)
    d2 = (x * x).sum(-1)[:, :, None] + (t * t).sum(-1)[:, None, :]
    d = torch.baddbmm(d2, x, t.transpose(1, 2), alpha=-2.0).clamp_(min=1e-8).sqrt_()
    s = d.mean().clamp(min=1e-3)
    sigma = s / c ** 0.5
    d = d / s
    d[:, torch.arange(n), torch.arange(n)] += 100.0
    total = torch.zeros_like(x)
    for tau in TAUS:
        logit = d / -tau
        a = (torch.softmax(logit, 2) * torch.softmax(logit, 1)).clamp_(min=1e-6).sqrt_()
        neg, pos = a[:, :, :n], a[:, :, n:]
        v = neg.sum(2, keepdim=True) * torch.bmm(pos, p) - pos.sum(2, keepdim=True) * torch.bmm(neg, x)
        v = v / sigma
        total += v / (v * v).mean().clamp(min=1e-8).sqrt()
    return total, total * (-2.0 / (total.numel() * sigma))


def numpy_field(np, x, p):
    b, n, c = x.shape
    t = np.concatenate([x, p], 1)
    d = (x * x).sum(-1)[:, :, None] + (t * t).sum(-1)[:, None, :] - 2 * (x @ t.transpose(0, 2, 1))
    d = np.sqrt(np.maximum(d, 1e-8))
    s = max(float(d.mean()), 1e-3)
    sigma = s / c ** 0.5
    d /= s
    d[:, np.arange(n), np.arange(n)] += 100
    total = np.zeros_like(x)
    for tau in TAUS:
        e = d * (-1 / tau)
        rows = np.exp(e - e.max(2, keepdims=True))
        rows /= rows.sum(2, keepdims=True)
        e = np.exp(e - e.max(1, keepdims=True))
        e /= e.sum(1, keepdims=True)
        a = np.sqrt(np.maximum(rows * e, 1e-6))
        neg, pos = a[:, :, :n], a[:, :, n:]
        v = neg.sum(2, keepdims=True) * (pos @ p) - pos.sum(2, keepdims=True) * (neg @ x)
        v /= sigma
        total += v / max(float((v * v).mean()), 1e-8) ** 0.5
    return total, total * (-2.0 / (total.size * sigma))


def main():
    p = peer.options(__doc__, SHAPES)
    p.add_argument("--no-numpy", action="store_true", help="PyTorch only")
    o = p.parse_args()
    peer.clean_environment(o.tuned_malloc)
    import numpy as np
    import torch
    torch.set_num_threads(o.threads)
    info = peer.environment(o, numpy=np.__version__)
    rng, runs = np.random.default_rng(0), {}
    for name in o.cases.split(","):
        b, n, m, c = SHAPES[name]
        x = rng.standard_normal((b, n, c), dtype=np.float32)
        q = rng.standard_normal((b, m, c), dtype=np.float32)
        tx, tq = torch.from_numpy(x), torch.from_numpy(q)
        with torch.inference_mode():
            a, w = torch_field(torch, tx, tq)[0].numpy(), numpy_field(np, x, q)[0]
        assert np.linalg.norm(a - w) < 1e-3 * np.linalg.norm(w), name

        def run(tx=tx, tq=tq):
            with torch.inference_mode():
                torch_field(torch, tx, tq)
        runs[name, "torch"] = run
        if not o.no_numpy:
            runs[name, "numpy"] = lambda x=x, q=q: numpy_field(np, x, q)
    peer.alternate(o, runs, info)


if __name__ == "__main__":
    main()
