#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`leeway fid` beside the programs whose numbers it is compared with.

    python3 tools/fid_check.py build/leeway --data DATA         # all of it: some minutes
    python3 tools/fid_check.py build/leeway --only others

formula   features drawn here, with more and with fewer rows than dimensions: numpy and scipy's two symmetric roots
          (1e-6); KID of all pairs, precision and recall by their definitions, where --data is given also the six
          distances of fid_check_resnet56 (1e-4). Numbers at batch 1 and 64 and 1, 2 and 5 threads are the same bits.
others    Inception-v3 in the FID form with drawn weights: folders of drawn pictures through the code of pytorch-fid and
          of clean-fid (its modes clean and legacy_pytorch) and through `leeway fid` with that resize (1e-3).
          Their covariances are of fewer pictures than dimensions.
adm       the same network behind TensorFlow 1's resize, written here in numpy, and files in ADM's layout (1e-3).

DATA is a folder with encoders/resnet_cifar10 and cifar10 (LW_TEST_DATA of the tests, which is also used without
--data). Each line says how many seconds have passed. Needs numpy, scipy, safetensors;
`others` and `adm` also torch, torchvision, Pillow, pytorch_fid, `others` cleanfid (pip install clean-fid pytorch-fid --no-deps).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from safetensors.numpy import load_file, save_file

SIX = {("train", "test"): 0.0499603208, ("train", "testjpeg"): 2.5311777057, ("test", "testjpeg"): 2.2703029213,
       ("test5k.features", "testjpeg5k.features"): 2.2577997839, ("train", "test5k.features"): 0.0640489119}
BEGIN = time.time()
HALVES = 0.0151900117  # first 25,000 training pictures against the last


def fid(o, *args):
    out = subprocess.run([o.leeway, "fid", *args, "--json", "--quiet"], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)["results"][0]


def line(ok, text):
    print("%4.0f s  %s%s" % (time.time() - BEGIN, text, "" if ok else "   WRONG"), flush=True)
    return ok


def close(name, have, want, bound):
    far = abs(have - want) / max(abs(want), 1e-300)
    return line(far <= bound, "%-44s %.10g  %.10g  %.1e" % (name, have, want, far))


def root(c):
    w, v = np.linalg.eigh(c)
    return (v * np.sqrt(np.maximum(w, 0))) @ v.T


def frechet(a, b):
    """By two symmetric eigenproblems, which is exact where the covariances are singular."""
    (ma, ca), (mb, cb) = a, b
    r = root(ca)
    w = np.linalg.eigvalsh(r @ cb @ r)
    return ((ma - mb) ** 2).sum() + np.trace(ca) + np.trace(cb) - 2 * np.sqrt(np.maximum(w, 0)).sum()


def moments(x):
    x = x.astype(np.float64)
    return x.mean(0), np.cov(x.T)


def neighbours(x, y):
    x, y = x.astype(np.float64), y.astype(np.float64)
    return np.sqrt(np.stack([((row - y) ** 2).sum(1) for row in x]))


def manifold(a, b, k=3):
    ra, rb = np.sort(neighbours(a, a), 1)[:, k], np.sort(neighbours(b, b), 1)[:, k]
    d = neighbours(a, b)
    return (d <= rb[None]).any(1).mean(), (d <= ra[:, None]).any(0).mean()


def kid_all(a, b):
    """Of all rows, where a subset is no smaller than they are many."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    n, d = a.shape
    k = [(x @ y.T / d + 1) ** 3 for x, y in ((a, a), (b, b), (a, b))]
    return sum((m.sum() - np.trace(m)) / (n * (n - 1)) for m in k[:2]) - 2 * k[2].mean()


def formula(o, scratch):
    ok = True
    rng = np.random.default_rng(1)
    print("        %-44s %-14s %-14s %s" % ("features", "leeway", "numpy, scipy", "off by"), flush=True)
    for n, m, d in ((500, 400, 64), (300, 350, 128), (40, 60, 256), (2000, 2500, 32)):
        mix = rng.standard_normal((d, d)) / np.sqrt(d)
        a = (rng.standard_normal((n, d)) @ mix).astype(np.float32)
        b = (rng.standard_normal((m, d)) @ mix * 1.1 + 0.1).astype(np.float32)
        names = [os.path.join(scratch, x) for x in ("a.npy", "b.npy")]
        np.save(names[0], a)
        np.save(names[1], b)
        got = fid(o, *names, "--precision-recall", "--sw", "--kid")
        ok &= close("%d and %d rows of %d" % (n, m, d), got["frechet"], frechet(moments(a), moments(b)), 1e-6)
        if n >= d and m >= d:
            from scipy import linalg
            (ma, ca), (mb, cb) = moments(a), moments(b)
            want = ((ma - mb) ** 2).sum() + np.trace(ca + cb) - 2 * np.trace(linalg.sqrtm(ca @ cb)).real
            ok &= close("  scipy.linalg.sqrtm", got["frechet"], want, 1e-6)
        want = manifold(a, b)
        ok &= line((got["precision"], got["recall"]) == want, "  precision, recall %.4f %.4f; by definition "
                   "%.4f %.4f" % (got["precision"], got["recall"], *want))
        if n == m or n < 1000:
            np.save(names[1], b[:n])
            np.save(names[0], a[:len(b[:n])])
            got = fid(o, *names, "--kid")
            ok &= close("  KID of equal counts", got["kid"], kid_all(a[:len(b[:n])], b[:n]), 1e-6)
    if o.data:
        return ok & six(o, scratch)
    print("        the six distances are left out: neither --data nor LW_TEST_DATA", flush=True)
    return ok


def six(o, scratch):
    folder = os.path.join(o.data, "encoders", "resnet_cifar10")
    sums, net = os.path.join(folder, "fid_check_resnet56.safetensors"), os.path.join(folder, "resnet56.safetensors")
    cifar = "cifar10:" + os.path.join(o.data, "cifar10")
    ok = True
    for (a, b), want in SIX.items():
        ok &= close("%s, %s (their features)" % (a, b), fid(o, sums + "#" + a, sums + "#" + b)["frechet"], want, 1e-4)
    train, part = os.path.join(scratch, "train.npy"), [os.path.join(scratch, x) for x in ("first.npy", "last.npy")]
    subprocess.run([o.leeway, "encode", "--model", net, "--data", cifar, "--split", "train", "--batch-size", "64",
                    "--output", train, "--quiet"], check=True, stdout=sys.stderr)
    x = np.load(train)
    np.save(part[0], x[:25000])
    np.save(part[1], x[25000:])
    ok &= close("first and last half of the training pictures", fid(o, *part)["frechet"], HALVES, 1e-4)
    got = fid(o, train, cifar, "--split-b", "held-out", "--encoder", net)
    ok &= close("train, test: " + got["name"], got["frechet"], SIX["train", "test"], 1e-4)
    seen = {fid(o, cifar, sums + "#test", "--split-a", "held-out", "--num-images", "500", "--encoder", net,
                "--batch-size", batch, "--threads", threads)["frechet"]
            for batch in ("1", "64") for threads in ("1", "2", "5")}
    return ok & line(len(seen) == 1, "batch 1 and 64, threads 1, 2, 5: %d value%s" % (len(seen), "s" * (len(seen) > 1)))


# ---- the code of others --------------------------------------------------------------------------

def draw_weights(torch, net):
    """He's deviations; BatchNorm with numbers that leave values of the size of 1."""
    g = torch.Generator().manual_seed(7)
    for name, t in net.state_dict().items():
        if name.endswith("running_var") or name.endswith("bn.weight"):
            t.copy_(1 + 0.2 * torch.rand(t.shape, generator=g))
        elif name.endswith("running_mean") or name.endswith("bias"):
            t.copy_(0.1 * torch.randn(t.shape, generator=g))
        elif t.dim() > 1:
            t.copy_(torch.randn(t.shape, generator=g) * (2 / t[0].numel()) ** 0.5)


def draw_pictures(folder, n, side, seed):
    """Smooth pictures of one colour each, with noise."""
    from PIL import Image
    rng = np.random.default_rng(seed)
    os.mkdir(folder)
    for i in range(n):
        small = rng.integers(0, 256, (6, 6, 3)).astype(np.uint8)
        x = np.asarray(Image.fromarray(small).resize((side, side), Image.BICUBIC)).astype(np.int32)
        x = x // 2 + rng.integers(0, 100 + 28 * (seed % 2), (1, 1, 3)) + rng.integers(0, 24, x.shape)
        Image.fromarray(x.clip(0, 255).astype(np.uint8)).save(os.path.join(folder, "%03d.png" % i))


def drawn_inception(o, scratch):
    """pytorch-fid's network with drawn weights, and a file of them."""
    import torch
    from pytorch_fid import inception
    torch.set_num_threads(o.threads)
    load = torch.nn.Module.load_state_dict
    inception.load_state_dict_from_url = lambda *a, **k: {}  # no download: weights are drawn
    torch.nn.Module.load_state_dict = lambda *a, **k: None
    net = inception.fid_inception_v3()
    torch.nn.Module.load_state_dict = load
    with torch.no_grad():
        draw_weights(torch, net)
    weights = os.path.join(scratch, "inception.safetensors")
    save_file({k: v.numpy() for k, v in net.state_dict().items() if "num_batches" not in k}, weights)
    inception.fid_inception_v3 = lambda: net
    return inception.InceptionV3().eval(), weights


def both_folders(o, scratch):
    folders = [os.path.join(scratch, x) for x in ("one", "two")]
    for i, folder in enumerate(folders):
        if not os.path.exists(folder):
            draw_pictures(folder, o.pictures, 64, i)
    return folders


def others(o, scratch):
    import torch
    from cleanfid import fid as clean
    from pytorch_fid import fid_score
    model, weights = drawn_inception(o, scratch)
    folders = both_folders(o, scratch)

    def path_fid():
        m = [fid_score.compute_statistics_of_path(f, model, 8, 2048, "cpu", 0) for f in folders]
        return fid_score.calculate_frechet_distance(*m[0], *m[1])

    def clean_fid(mode):
        def seen(x):
            x = (x - 128) / 128 if mode == "clean" else 2 * x / 255 - 1
            for b in model.blocks:
                x = b(x)
            return x.flatten(1)
        return clean.compare_folders(*folders, seen, mode, device=torch.device("cpu"), verbose=False)

    ok = True
    print("        %-44s %-14s %-14s %s" % ("Inception-v3 with drawn weights", "leeway", "theirs", "off by"), flush=True)
    for name, theirs, how in (("pytorch-fid", path_fid, []), ("clean-fid, legacy_pytorch", lambda: clean_fid("legacy_pytorch"), []),
                              ("clean-fid, clean", lambda: clean_fid("clean"), ["--resize", "float-aa"])):
        got = fid(o, *folders, "--encoder", weights, *how)
        ok &= close("%s: %s" % (name, got["name"]), got["frechet"], float(theirs()), 1e-3)
    return ok


def tf1_axis(to, of):
    """TensorFlow 1's resize_bilinear, corners not aligned: output o lies on input o * of / to."""
    at = np.arange(to, dtype=np.float32) * (np.float32(of) / np.float32(to))
    low = at.astype(np.int64)
    return low, np.minimum(low + 1, of - 1), (at - low).astype(np.float32)[:, None, None]


def tf1_resize(x, side):
    x = x.astype(np.float32)
    low, high, part = tf1_axis(side, x.shape[0])
    x = x[low] + (x[high] - x[low]) * part
    x = x.transpose(1, 0, 2)
    low, high, part = tf1_axis(side, x.shape[0])
    return (x[low] + (x[high] - x[low]) * part).transpose(1, 0, 2)


def adm(o, scratch):
    """ADM's evaluator: samples in arr_0 [N,H,W,3] beside labels; a reference whose mu and sigma, where it has them,
    stand for its pictures, and whose mu_s and sigma_s are of other features."""
    import torch
    from PIL import Image
    model, weights = drawn_inception(o, scratch)
    files = [os.path.join(scratch, x) for x in ("samples.npz", "plain.npz", "reference.npz")]
    seen = []
    for folder, file in zip(both_folders(o, scratch), files):
        x = np.stack([np.asarray(Image.open(os.path.join(folder, f))) for f in sorted(os.listdir(folder))])
        np.savez(file, arr_0=x, arr_1=np.arange(len(x)))
        ready = torch.from_numpy(np.stack([(tf1_resize(p, 299) - 128) / 128 for p in x]).transpose(0, 3, 1, 2))
        with torch.no_grad():
            for b in model.blocks:
                ready = b(ready)
        seen.append(moments(ready.flatten(1).numpy()))
        last = x
    (ma, ca), (mb, cb) = seen
    np.savez(files[2], arr_0=last, mu=mb + 0.01, sigma=1.1 * cb, mu_s=np.zeros(2023), sigma_s=np.eye(2023))
    how = ["--encoder", weights, "--resize", "tf-inception"]
    ok = close("ADM's layout, of pictures", fid(o, files[0], files[1], *how)["frechet"],
               frechet((ma, ca), (mb, cb)), 1e-3)
    return ok & close("ADM's layout, of mu and sigma", fid(o, files[0], files[2], *how)["frechet"],
                      frechet((ma, ca), (mb + 0.01, 1.1 * cb)), 1e-3)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("leeway")
    p.add_argument("--data", default=os.environ.get("LW_TEST_DATA"), help="folder with encoders/resnet_cifar10 and cifar10")
    p.add_argument("--only", choices=("formula", "adm", "others"))
    p.add_argument("--pictures", type=int, default=32, help="in each folder of `others`")
    p.add_argument("--threads", type=int, default=1, help="of torch")
    o = p.parse_args()
    o.leeway = os.path.abspath(o.leeway)
    ok = True
    with tempfile.TemporaryDirectory() as scratch:
        for what in (formula, adm, others):
            if o.only in (None, what.__name__):
                ok &= what(o, scratch)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
