# SPDX-License-Identifier: Apache-2.0
"""Last-layer Laplace (src/eval/eval_laplace.h) by dense matrices: second derivatives by autograd, one matrix over all
weights of the layer, its inverse. Of one calibration picture ("..1") that is the Gauss-Newton matrix itself, of
several the Kronecker product of its factors, written out."""
import math

import torch
from scipy.optimize import brentq

SCORES = ("laplace_logit_var", "laplace_entropy", "laplace_mutual_information", "entropy", "least_confidence")


def eighths(g, *shape):
    """Numbers of so few bits that products and sums of them are exact in f32."""
    return torch.round(8 * torch.randn(*shape, generator=g, dtype=torch.float64)) / 8


def answers(w, f, case):
    """W [out][in], f [in] -> z."""
    g = w @ f
    if case["text"] is None:
        return g
    t = case["text"] / case["text"].norm(dim=1, keepdim=True)
    return case["scale"] * (t @ (g / g.norm())) + case["shift"]


def middle(z, case):
    """Second derivatives of the loss by the answers."""
    if case["sigmoid"]:
        loss = lambda v: -torch.nn.functional.logsigmoid(-v).sum()  # noqa: E731
    else:
        loss = lambda v: torch.logsumexp(v, 0) - v[0]  # noqa: E731
    return torch.autograd.functional.hessian(loss, z)


def by_output(g, case):
    """Gauss-Newton by the layer's output g: the answers bend, but only their slopes count."""
    eye = torch.eye(len(g), dtype=torch.float64)
    slope = torch.autograd.functional.jacobian(lambda v: answers(eye, v, case), g)
    return slope.T @ middle(answers(eye, g, case), case) @ slope


def by_weights(w, f, case):
    """Gauss-Newton by all weights of W, row by row, of one picture."""
    slope = torch.autograd.functional.jacobian(lambda v: answers(v, f, case), w).flatten(1)
    return slope.T @ middle(answers(w, f, case), case) @ slope


def evidence_prior(h, w):
    """Where the slope of log prior |W| + log evidence is 0, by autograd of the dense determinant."""
    eye = torch.eye(len(h), dtype=torch.float64)

    def slope(log_prior):
        x = torch.tensor(log_prior, dtype=torch.float64, requires_grad=True)
        prior = x.exp()
        value = -prior * (w ** 2).sum() / 2 + len(h) / 2 * x - torch.linalg.slogdet(h + prior * eye)[1] / 2
        return float(torch.autograd.grad(value, x)[0])
    return math.exp(brentq(slope, -20, 20, xtol=1e-14, rtol=1e-14))


def scores(mean, cov, p):
    def entropy(q):
        return float(-(q * q.log()).sum())
    inner = torch.diag(p) - torch.outer(p, p)
    probit = torch.softmax(mean / torch.sqrt(1 + math.pi / 8 * cov.diag()), 0)
    return torch.tensor([float(cov.diag().mean()), entropy(probit), float((inner @ cov).trace()) / 2, entropy(p),
                         1 - float(p.max())], dtype=torch.float64)


def sampled_information(mean, cov, n, g):
    """H(E p) - E H(p) by drawing."""
    z = torch.distributions.MultivariateNormal(mean, cov + 1e-12 * torch.eye(len(mean), dtype=torch.float64))
    torch.manual_seed(g)
    p = torch.softmax(z.sample((n,)), 1)
    q = p.mean(0)
    return float(-(q * q.log()).sum() + (p * p.log()).sum(1).mean())


def one(name, seed, n, width, out, texts=0, bias=True, prior=0.0, sigmoid=False, information=False,
        pictures=0):
    r = torch.Generator().manual_seed(seed)
    case = {"text": eighths(r, texts, out) if texts else None, "scale": 4.5, "shift": -2.0 if sigmoid else 0.0,
            "sigmoid": sigmoid}
    w, f, test = eighths(r, out, width + bias), eighths(r, n, width), eighths(r, 3, width)
    with_one = [torch.cat([x, torch.ones(len(x), 1, dtype=torch.float64)], 1) if bias else x for x in (f, test)]
    if n == 1:
        h = by_weights(w, with_one[0][0], case)
    else:
        a = with_one[0].T @ with_one[0]
        b = sum(by_output(w @ x, case) for x in with_one[0])
        h = torch.kron(b, a) / n
        dense = sum(by_weights(w, x, case) for x in with_one[0])
        print("%s: factors against the whole matrix: %.2f of its norm" % (name, (h - dense).norm() / dense.norm()))
    h = h * (pictures / n if pictures else 1)
    chosen = prior or evidence_prior(h, w)
    eye = torch.eye(len(h), dtype=torch.float64)
    inverse = torch.linalg.inv(h + chosen * eye)
    gamma = float((h @ inverse).trace())
    means, variances, all_scores, informations = [], [], [], []
    for x in with_one[1]:
        up = torch.kron(torch.eye(out, dtype=torch.float64), x[None])
        s, g = up @ inverse @ up.T, w @ x
        mean, cov = g, s
        if texts:
            t = case["text"] / case["text"].norm(dim=1, keepdim=True)
            square = float(g @ g + s.trace())
            mean = case["scale"] * (t @ g) / math.sqrt(square) + case["shift"]
            cov = case["scale"] ** 2 * t @ s @ t.T / square
        means.append(mean)
        variances.append(cov.diag())
        all_scores.append(scores(mean, cov, torch.softmax(answers(w, x, case), 0)))
        if information:
            informations.append(sampled_information(mean, cov, 1000000, 1))
    put = {"f": f.float(), "g": (with_one[0] @ w.T).float(), "test_f": test.float(),
           "test_g": (with_one[1] @ w.T).float(), "mean": torch.stack(means), "variance": torch.stack(variances),
           "scores": torch.stack(all_scores),
           "options": torch.tensor([bias, float((w ** 2).sum()), prior, case["scale"], case["shift"], sigmoid,
                                     pictures]),
           "fit": torch.tensor([chosen, gamma], dtype=torch.float64)}
    put["options"] = put["options"].double()
    if texts:
        put["text"] = case["text"]
    if information:
        put["information"] = torch.tensor(informations, dtype=torch.float64)
        print("%s: information, first order %s, drawn %s" % (
            name, [round(float(v[2]), 6) for v in all_scores], [round(v, 6) for v in informations]))
    return {"%s.%s" % (name, k): v.contiguous().numpy() for k, v in put.items()}


def make():
    return {
        **one("classes1", 1, 1, 4, 3, prior=0.75),
        **one("classes", 2, 41, 5, 4),
        **one("few", 8, 20, 5, 4, pictures=900),
        **one("narrow", 3, 300, 3, 3, bias=False, prior=40.0, information=True),
        **one("clip1", 4, 1, 3, 4, texts=5, bias=False, prior=0.5),
        **one("clip", 5, 37, 4, 5, texts=3, bias=False),
        **one("siglip1", 6, 1, 3, 4, texts=2, prior=0.5, sigmoid=True),
        **one("siglip", 7, 37, 4, 3, texts=6, sigmoid=True),
    }
