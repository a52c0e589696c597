# SPDX-License-Identifier: Apache-2.0
"""The drift field with its closed-form gradient in PyTorch, as its formulas suggest: one batched
distance product, softmax over rows and columns, two batched products per temperature."""
import torch

from peer_rows import TEMPERATURES


class Field(torch.nn.Module):
    """x [B,N,C] generated, u [B,Nu,C] unconditional (weight 1), p [B,Np,C] positive -> F, dX."""

    def __init__(self, taus=TEMPERATURES):
        super().__init__()
        self.taus = taus

    def affinities(self, d, tau):
        logit = d * (-1.0 / tau)
        return torch.softmax(logit, 2).mul_(torch.softmax(logit, 1)).clamp_(min=1e-6).sqrt_()

    def forward(self, x, u, p):
        b, n, c = x.shape
        t = torch.cat([x, u, p], 1)
        negatives = n + u.shape[1]
        d2 = (x * x).sum(-1)[:, :, None] + (t * t).sum(-1)[:, None, :]
        d = torch.baddbmm(d2, x, t.transpose(1, 2), alpha=-2.0).clamp_(min=1e-8).sqrt_()
        s = d.mean()
        sigma = (s / c ** 0.5).clamp(min=1e-3)
        d = d / s.clamp(min=1e-3)
        d.diagonal(dim1=1, dim2=2).add_(100.0)  # column i < N is x_i itself
        total = torch.zeros_like(x)
        for tau in self.taus:
            a = self.affinities(d, tau)
            neg, pos = a[:, :, :negatives], a[:, :, negatives:]
            v = (neg.sum(2, keepdim=True) * torch.bmm(pos, p)
                 - pos.sum(2, keepdim=True) * torch.bmm(neg, t[:, :negatives])) / sigma
            total = total + v / (v * v).mean().clamp(min=1e-8).sqrt()
        return total, total * (-2.0 / (total.numel() * sigma))


class OneExponential(Field):
    """The same with one exponential for both softmaxes, shifted by the mean distance alone: good for
    temperatures from 0.015 on, where e^(1 / tau) is a number of f32. Fewer passes over [N,M]."""

    def affinities(self, d, tau):
        e = torch.sub(1.0, d).mul_(1.0 / tau).exp_()
        rows, columns = e.sum(2, keepdim=True).rsqrt_(), e.sum(1, keepdim=True).rsqrt_()
        return e.mul_(rows).mul_(columns).clamp_(min=1e-3)


def arrays(files, row, dtype=torch.float32):
    """The prepared inputs x, u, p."""
    import numpy as np
    return [torch.from_numpy(np.load(files.field(row, k + ".npy"))).to(dtype) for k in "xup"]
