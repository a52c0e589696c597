#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Published weights against what their publishers say of them: accuracies, golden outputs, round trips.

    python3 tools/weights_check.py build/leeway DATA                  # everything that is there
    python3 tools/weights_check.py build/leeway DATA --only taef2 --pictures pictures

DATA is a folder with encoders/, cifar10/ and images/ (LW_TEST_DATA of the tests). CIFAR ResNets: `leeway
encode` over the 10,000 test pictures. taef2: `leeway run` to latents and `decoder:` back, on photographs and
on every 40th picture of imagenet1k_sample_224, beside PyTorch with the same weights; --pictures keeps
PNGs, the picture left and what came back right.

Needs numpy and safetensors; taef2 also torch and Pillow.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file

# top-1 on the test pictures, of the repository that published them
CIFAR = {"resnet20": 91.73, "resnet32": 92.63, "resnet56": 93.39}


def relative(have, want):
    have, want = have.astype(np.float64), want.astype(np.float64)
    return np.linalg.norm(have - want) / np.linalg.norm(want)


def line(ok, text):
    print(text + ("" if ok else "   WRONG"), flush=True)
    return ok


def resnets(o, scratch):
    folder = os.path.join(o.data, "encoders", "resnet_cifar10")
    golden = load_file(os.path.join(folder, "golden_test256.safetensors"))
    sums = load_file(os.path.join(folder, "fid_check_resnet56.safetensors"))
    ok = True
    print("CIFAR ResNets     top-1    published  features  logits (first 256, against their golden outputs)")
    for name, published in CIFAR.items():
        out = os.path.join(scratch, "features.safetensors")
        subprocess.run([o.leeway, "encode", "--model", os.path.join(folder, name + ".safetensors"),
                        "--data", "cifar10:" + os.path.join(o.data, "cifar10"), "--split", "held-out",
                        "--layer", "logits,pooled", "--batch-size", "64", "--output", out, "--quiet"],
                       check=True, stdout=sys.stderr)
        got = load_file(out)
        right = 100 * np.mean(got["logits"].argmax(1) == got["labels"])
        far = [relative(got[k][:256], golden["%s.%s" % (name, g)])
               for k, g in (("pooled", "features"), ("logits", "logits"))]
        ok &= line(abs(right - published) < 0.005 and max(far) < 1e-4,
                   "%-16s  %6.2f   %6.2f     %.1e   %.1e" % (name, right, published, *far))
        if name == "resnet56":
            x = got["pooled"].astype(np.float64)
            far = relative(x.mean(0), sums["test.mu"]), relative(np.cov(x.T), sums["test.cov"])
            ok &= line(max(far) < 1e-5, "  mean and covariance of its features: %.1e %.1e" % far)
    return ok


# ---- taef2 ---------------------------------------------------------------------------------------

def block(w, at, x):
    import torch.nn.functional as F
    p = "%d.pool." % at
    if p + "0.weight" in w:
        h = F.group_norm(F.conv2d(x, w[p + "0.weight"]), 4, w[p + "1.weight"], w[p + "1.bias"])
        x = x + F.conv2d(F.relu(h), w[p + "3.weight"])
    h = x
    for i in (0, 2, 4):
        h = F.conv2d(F.relu(h) if i else h, w["%d.conv.%d.weight" % (at, i)],
                     w["%d.conv.%d.bias" % (at, i)], padding=1)
    return F.relu(h + x)


def sequence(w, x, decode):
    """PyTorch on the places 0, 1, ... of the file; those without tensors are known by where they are."""
    import torch
    import torch.nn.functional as F
    last = max(int(k.split(".")[0]) for k in w)
    for at in range(last + 1):
        if "%d.conv.0.weight" % at in w:
            x = block(w, at, x)
        elif "%d.weight" % at in w:
            bias = w.get("%d.bias" % at)
            x = F.conv2d(x, w["%d.weight" % at], bias, padding=1,
                         stride=1 if decode or bias is not None else 2)
        elif at == 0:
            x = 3 * torch.tanh(x / 3)
        elif at == 2:
            x = F.relu(x)
        else:
            x = F.interpolate(x, scale_factor=2)
    return x


def run(o, source, x, scratch):
    paths = [os.path.join(scratch, n) for n in ("x.npy", "y.npy")]
    np.save(paths[0], x)
    subprocess.run([o.leeway, "run", source, "--input", paths[0], "--output", paths[1], "--quiet"],
                   check=True, stdout=sys.stderr)
    return np.load(paths[1])


def photographs(data):
    """Name -> [h,w,3] bytes, the middle of at most 512 x 512, sides multiples of 8."""
    from PIL import Image
    folder = os.path.join(data, "images", "photos")
    crops = os.path.join(data, "images", "imagenet1k_sample_224")
    paths = [os.path.join(folder, n) for n in sorted(os.listdir(folder))]
    paths += [os.path.join(crops, n) for n in sorted(os.listdir(crops)) if n.endswith(".jpg")][::40]
    for path in paths:
        im = np.asarray(Image.open(path).convert("RGB"))
        h, w = (min(n, 512) // 8 * 8 for n in im.shape[:2])
        top, left = (im.shape[0] - h) // 2, (im.shape[1] - w) // 2
        yield os.path.basename(path), im[top:top + h, left:left + w]


def psnr(a, b):
    return -10 * np.log10(np.mean((a.astype(np.float64) - b) ** 2))


def taef2(o, scratch):
    import torch
    from PIL import Image
    folder = os.path.join(o.data, "encoders", "taef2")
    encoder, decoder = (os.path.join(folder, "taef2_%scoder.safetensors" % n) for n in ("en", "de"))
    weights = [{k: torch.from_numpy(v.astype(np.float32)) for k, v in load_file(p).items()}
               for p in (encoder, decoder)]
    golden = load_file(os.path.join(folder, "golden1.safetensors"))
    pictures = [("golden", golden["input_rgb_u8_hwc"])] + list(photographs(o.data))
    ok, all_psnr = True, []
    print("taef2                     sides     latent   picture  PSNR of PyTorch's round trip, of ours")
    for name, im in pictures:
        x = (im.astype(np.float32) / 255).transpose(2, 0, 1)[None]
        with torch.no_grad():
            z = sequence(weights[0], torch.from_numpy(x), False)
            y = sequence(weights[1], z, True).numpy()
        z, latent = z.numpy(), run(o, encoder, 2 * x - 1, scratch)
        back = (run(o, "decoder:" + decoder, latent, scratch) + 1) / 2
        if name == "golden":
            z, y = golden["latent"], golden["decoded"]
        far, theirs, ours = (relative(latent, z), relative(back, y)), psnr(np.clip(y, 0, 1), x), \
            psnr(np.clip(back, 0, 1), x)
        all_psnr.append(ours)
        ok &= line(max(far) < 1e-4 and abs(theirs - ours) < 0.01,
                   "%-24s %4d x %3d  %.1e  %.1e  %.2f dB  %.2f dB" %
                   (name[:24], im.shape[1], im.shape[0], *far, theirs, ours))
        if o.pictures:
            os.makedirs(o.pictures, exist_ok=True)
            side = np.concatenate([x, np.clip(back, 0, 1)], 3)[0].transpose(1, 2, 0)
            Image.fromarray(np.uint8(np.round(side * 255))).save(
                os.path.join(o.pictures, os.path.splitext(name)[0] + ".png"))
    print("  mean %.2f dB, lowest %.2f dB" % (np.mean(all_psnr), min(all_psnr)))
    return ok


PARTS = {"resnets": resnets, "taef2": taef2}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("leeway", help="the program")
    p.add_argument("data", help="the folder with encoders/")
    p.add_argument("--only", default="", help="comma-separated: " + ", ".join(PARTS))
    p.add_argument("--pictures", help="folder for PNGs of taef2's round trips")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        good = [PARTS[n](o, scratch) for n in (o.only.split(",") if o.only else PARTS)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
