# SPDX-License-Identifier: Apache-2.0
"""The drift field in numpy double, written from its formulas and from nothing else.

Shapes: x [G,N,T,C], u [G,Nu,T,C], p [G,Np,T,C] (missing axes are added); a group of the formulas is
one (g, t) pair; S, sigma and lambda are scalars of the whole call. Distances are direct differences.
"""
import numpy as np

FLOOR = 1e-3


def as4(a):
    """[N,C] -> [1,N,1,C]; [G,N,C] -> [G,N,1,C]."""
    a = np.asarray(a, dtype=np.float64)
    if a.ndim == 2:
        a = a[None]
    return a[:, :, None, :] if a.ndim == 3 else a


def flat(a):
    """[G,N,T,C] -> [G*T, N, C]."""
    g, n, t, c = a.shape
    return a.transpose(0, 2, 1, 3).reshape(g * t, n, c)


def unflat(a, g, t):
    gt, n, c = a.shape
    return a.reshape(g, t, n, c).transpose(0, 2, 1, 3)


def lse(a, axis):
    m = a.max(axis=axis, keepdims=True)
    return m + np.log(np.exp(a - m).sum(axis=axis, keepdims=True))


def distances(x, t):
    """[B,N,M] of sqrt(max(|x-t|^2, 1e-8))."""
    out = np.empty((x.shape[0], x.shape[1], t.shape[1]))
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            e = t[b] - x[b, i]
            out[b, i] = np.sqrt(np.maximum((e * e).sum(-1), 1e-8))
    return out


def field(gen, pos, uncond=None, weight=0.0, taus=(0.2, 0.05, 0.02), over_x=True,
          variant="official"):
    """Returns F (shape of gen), dX, S, sigma, lambda[], loss, raw mean V^2 [], and V per tau."""
    x4 = as4(gen)
    g, n, slots, c = x4.shape
    x, p = flat(x4), flat(as4(pos))
    u = flat(as4(uncond)) if uncond is not None else np.zeros((x.shape[0], 0, c))
    w_g = np.broadcast_to(np.asarray(weight, dtype=np.float64), (g,))
    t = np.concatenate([x, u, p], 1)
    w = np.ones((x.shape[0], t.shape[1]))
    w[:, n:n + u.shape[1]] = np.repeat(w_g, slots)[:, None]
    if variant == "plain":
        return plain(x, u, p, w, taus, over_x, x4.shape, gen)
    d = distances(x, t)
    s = (w[:, None, :] * d).mean() / w.mean()
    sigma = max(s / np.sqrt(c), 1e-3)
    sk = max(s, 1e-3)
    official = variant == "official"
    total, lambdas, means, vs = np.zeros_like(x), [], [], []
    for tau in taus:
        if official:
            z = d / sk
            z[:, np.arange(n), np.arange(n)] += 100.0
            l = -z / tau
            unit = sigma
        else:  # tau-times-dim: distances with mean sqrt(C), temperature tau * C, raw coordinates
            z = d / sk * np.sqrt(c)
            z[:, np.arange(n), np.arange(n)] += 1e6
            l = -z / (tau * c)
            unit = 1.0
        lr = lse(l, 2)
        arow = np.exp(l - lr)
        if not over_x:
            a = arow
        else:
            prod = arow * np.exp(l - lse(l, 1))
            a = np.sqrt(np.maximum(prod, FLOOR ** 2)) if official else np.sqrt(prod + 1e-30)
        v = combine(a * w[:, None, :], n + u.shape[1], x, t) / unit
        m = (v * v).mean()
        lam = np.sqrt(max(m, 1e-8))
        total += v / lam
        lambdas.append(lam)
        means.append(m)
        vs.append(unflat(v, g, slots).reshape(np.shape(gen)))
    loss = (total * total).mean()
    dx = -2.0 * total / (total.size * (sigma if official else 1.0))
    shape = lambda q: unflat(q, g, slots).reshape(np.shape(gen))
    return dict(F=shape(total), dX=shape(dx), S=s, sigma=sigma, lam=np.array(lambdas), loss=loss,
                raw=np.array(means), V=vs)


def combine(a, negatives, x, t):
    """V from weighted affinities: attraction times negative mass minus repulsion times positive."""
    sneg = a[:, :, :negatives].sum(2, keepdims=True)
    spos = a[:, :, negatives:].sum(2, keepdims=True)
    coef = np.concatenate([-a[:, :, :negatives] * spos, a[:, :, negatives:] * sneg], 2)
    return coef @ t - coef.sum(2, keepdims=True) * x


def plain(x, u, p, w, taus, over_x, shape4, gen):
    """The paper's Algorithm 2: raw distances, no floor, no rescaling; F is the sum over taus."""
    g, n, slots, c = shape4
    t = np.concatenate([x, u, p], 1)
    d = np.sqrt(((x[:, :, None, :] - t[:, None, :, :]) ** 2).sum(-1))
    d[:, np.arange(n), np.arange(n)] += 1e6
    total, means, vs = np.zeros_like(x), [], []
    for tau in taus:
        l = -d / tau
        lr = lse(l, 2)
        a = np.exp(l - lr / 2 - lse(l, 1) / 2) if over_x else np.exp(l - lr)
        v = combine(a * w[:, None, :], n + u.shape[1], x, t)
        total += v
        means.append((v * v).mean())
        vs.append(unflat(v, g, slots).reshape(np.shape(gen)))
    shape = lambda q: unflat(q, g, slots).reshape(np.shape(gen))
    return dict(F=shape(total), dX=shape(-2.0 * total / total.size), S=1.0, sigma=1.0,
                lam=np.ones(len(means)), loss=(total * total).mean(), raw=np.array(means), V=vs)


# ---- the documented example --------------------------------------------------------------------

def example():
    """Inputs of the worked example in the description of the field (B=2 N=4 Nu=2 Np=5 C=6)."""
    def f(b, i, c):
        a, k = np.arange(b)[:, None, None], np.arange(6)[None, None, :]
        j = np.arange(i)[None, :, None]
        return (np.sin(0.7 * a + 1.3 * j + 2.1 * c + 0.37 * k * (a + 1) + 0.9 * k)
                + 0.5 * np.cos(1.9 * a * j + 0.61 * k + c))
    return (f(2, 4, 0), 0.9 * f(2, 5, 9) - 0.2, 0.8 * f(2, 2, 5) + 0.3, np.array([1.5, 0.0]))


def check_example():
    """Published values of the example (six to nine digits)."""
    x, p, u, w = example()
    r = field(x, p, u, w)
    want = [(r["S"], 2.477451603), (r["sigma"], 1.011415382), (r["loss"], 7.730185823),
            (r["lam"], [0.494998367, 0.320119998, 0.147422452]),
            (r["F"][0, 0], [-3.7399032, -3.7011375, -5.5150580, -6.0475310, -2.7237524, 2.1894520]),
            (r["F"][1, 3], [-.2053715, .0919494, .0170923, -.3417988, -.2428436, .1324247]),
            (r["dX"][0, 0], [.154070528, .152473519, .227200505, .249136471, .112208777,
                             -.090197528])]
    v = field(x[0], p[0], taus=(0.5, 0.05), variant="plain")["V"]
    want += [(v[0][0], [-.5368903, -.1473892, .0913183, -.0400176, -.1837138, .0290864]),
             (v[0][3], [-.7735720, -.3705013, .1264505, .1571627, -.1152991, -.1085979])]
    for got, ref in want:
        assert np.allclose(got, ref, rtol=0, atol=6e-8), (got, ref)
    assert np.allclose(v[1][0], [-6.479e-2, -2.304e-2, 1.365e-2, 5.856e-3, -1.737e-2, -5.902e-3],
                       rtol=0, atol=5e-6)
    for tau in (0.2, 0.05, 0.02):
        assert abs(field(x, p, u, w, taus=(tau,))["loss"] - 1) < 1e-12


def random_case(rng, g, n, nu, npos, slots, c, clustered=True):
    """Clustered features around shared centres, which is where the field has structure."""
    shape = lambda k: (g, k, slots, c) if slots else ((g, k, c) if g else (k, c))
    centres = rng.standard_normal((4, c))

    def draw(k, shift):
        s = shape(k)
        a = rng.standard_normal(s)
        if clustered:
            a = 0.5 * a + centres[rng.integers(0, 4, s[:-1])]
        return (a + shift).astype(np.float32)
    x, p = draw(n, 0.2), draw(npos, 0.0)
    u = draw(nu, 0.1) if nu else None
    w = rng.uniform(0, 2, g or 1).astype(np.float32) if nu else 0.0
    return x, p, u, w


#        name              G  N   Nu Np  T  C   over_x variant          taus
CASES = [("one_group",     0, 12, 0, 20, 0, 16, True, "official", (0.2, 0.05, 0.02)),
         ("groups",        3, 5, 3, 7, 0, 6, True, "official", (0.2, 0.05, 0.02)),
         ("slots",         2, 6, 4, 9, 5, 8, True, "official", (0.02, 0.05, 0.2)),
         ("rows_only",     3, 5, 3, 7, 0, 6, False, "official", (0.2, 0.05, 0.02)),
         ("wide",          2, 16, 0, 33, 0, 67, True, "official", (0.2, 0.05, 0.02)),
         ("one_tau",       2, 7, 2, 5, 3, 10, True, "official", (0.05,)),
         ("plain",         2, 7, 0, 9, 0, 6, True, "plain", (0.5, 0.2)),
         ("plain_rows",    2, 7, 0, 9, 0, 6, False, "plain", (0.5,)),
         ("tau_times_dim", 1, 16, 0, 16, 0, 24, True, "tau-times-dim", (0.02, 0.05, 0.2))]


def put(out, tag, x, p, u, w, r, taus):
    out[tag + ".gen"], out[tag + ".pos"], out[tag + ".taus"] = x, p, np.array(taus)
    if u is not None:
        out[tag + ".uncond"], out[tag + ".weight"] = u, np.atleast_1d(w)
    for k in ("F", "dX", "lam", "raw"):
        out[tag + "." + k] = np.asarray(r[k])
    out[tag + ".scalars"] = np.array([r["S"], r["sigma"], r["loss"]])


def make():
    check_example()
    out = {}
    x, p, u, w = example()
    taus = (0.2, 0.05, 0.02)
    put(out, "example", x, p, u, w, field(x, p, u, w), taus)
    rng = np.random.default_rng(20240)
    for tag, g, n, nu, npos, slots, c, over_x, variant, taus in CASES:
        x, p, u, w = random_case(rng, g, n, nu, npos, slots, c)
        put(out, tag, x, p, u, w, field(x, p, u, w, taus, over_x, variant), taus)
    return out
