#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The latents that `leeway train --latents` keeps beside diffusers' AutoencoderKL with the same noise.

    python3 tools/latents_check.py build/leeway PICTURES FOLDER [--limit 3] [--small]

PICTURES: a folder of pictures of 224x224, of which the first are taken. FOLDER is a new one. The autoencoder is Stable
Diffusion's at full size with drawn weights (--small: a narrow one). Each picture and its mirror image is encoded, and
the latent is (mean + deviation x noise) x 0.18215, the noise drawn here from the row's number. Exit code 1: a latent is
off by more than 1e-4 of the largest number. Needs torch and diffusers.
"""
import argparse
import glob
import os
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "peers")]
import torch  # noqa: E402
from diffusers import AutoencoderKL  # noqa: E402
from PIL import Image  # noqa: E402
from prove_draws import normals  # noqa: E402

SIDE, PAGE, LIMIT = 224, 4096, 1e-4
NET = ("--base-channels 8 --channel-mult 1 --attn-resolutions 28 --norm-groups 4 --num-res-blocks 1 "
       "--batch-size 1").split()


def autoencoder(small):
    torch.manual_seed(1)
    width = (32, 32, 64, 64) if small else (128, 256, 512, 512)
    net = AutoencoderKL(block_out_channels=width, layers_per_block=2, down_block_types=("DownEncoderBlock2D",) * 4,
                        up_block_types=("UpDecoderBlock2D",) * 4, sample_size=SIDE)
    return net.eval()


def pictures(source, folder, limit):
    """The first of a folder, written as PNG so that nobody decodes otherwise: [n,3,SIDE,SIDE] in [-1,1]."""
    out, names = [], sorted(glob.glob(os.path.join(source, "**", "*.*"), recursive=True))
    os.makedirs(os.path.join(folder, "one"))
    for name in names:
        if len(out) == limit or not name.lower().endswith((".png", ".jpg", ".jpeg")):
            continue
        image = Image.open(name).convert("RGB").resize((SIDE, SIDE))
        image.save(os.path.join(folder, "one", "%04d.png" % len(out)))
        out.append(np.asarray(image, np.float32) / 127.5 - 1)
    return np.stack(out).transpose(0, 3, 1, 2)


def kept(cache):
    """The file's two arrays of latents, [2][rows,h,w,c]."""
    path, = glob.glob(os.path.join(cache, "latents-*.data"))
    rows = int(np.fromfile(path, np.int64, 1, offset=24)[0])  # some pictures are held out
    row = (SIDE // 8) ** 2 * 4
    both, at = [], PAGE
    for _ in range(2):
        both.append(np.fromfile(path, np.float32, rows * row, offset=at).reshape(rows, SIDE // 8, SIDE // 8, 4))
        at = (at + rows * row * 4 + 63) // 64 * 64
    return both


def moments(net, picture):
    with torch.no_grad():
        d = net.encode(torch.from_numpy(np.ascontiguousarray(picture[None]))).latent_dist
    return [t[0].permute(1, 2, 0).double().numpy() for t in (d.mean, d.std)]


def compare(net, x, both):
    """Largest difference, number and share of noise; which picture a row is of is the one it is nearest to."""
    worst = most = by_noise = 0.0
    for mirrored, rows in enumerate(both):
        of = [moments(net, p[:, :, ::-1] if mirrored else p) for p in x]
        for i, row in enumerate(rows):
            noise = normals("autoencoder.noise", 0, 2 * i + mirrored, row.size).reshape(row.shape)
            wanted = [(mean + std * noise) * net.config.scaling_factor for mean, std in of]
            k = min(range(len(x)), key=lambda k: np.abs(row - wanted[k]).max())
            worst, most = max(worst, np.abs(row - wanted[k]).max()), max(most, np.abs(wanted[k]).max())
            by_noise = max(by_noise, np.abs(of[k][1] * noise).max() * net.config.scaling_factor)
    return worst, most, by_noise


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("leeway")
    p.add_argument("pictures")
    p.add_argument("folder")
    p.add_argument("--limit", type=int, default=3)
    p.add_argument("--small", action="store_true")
    o = p.parse_args()
    os.makedirs(o.folder)
    net = autoencoder(o.small)
    net.save_pretrained(os.path.join(o.folder, "vae"))
    x = pictures(o.pictures, os.path.join(o.folder, "pictures"), o.limit)
    cache = os.path.join(o.folder, "cache")
    subprocess.run([os.path.abspath(o.leeway), "train", "ddpm", "--data", "folder:" + os.path.join(o.folder, "pictures"),
                    "--image-size", str(SIDE), "--latents", "sd-vae:" + os.path.join(o.folder, "vae"), "--steps", "1",
                    "--output-dir", os.path.join(o.folder, "run"), "--no-progress"] + NET, check=True,
                   env=dict(os.environ, LW_CACHE=cache))
    both = kept(cache)
    worst, most, by_noise = compare(net, x, both)
    print("%d latents of %dx%dx4: largest difference %.2g, largest number %.3g (noise up to %.3g)" % (
        sum(map(len, both)), SIDE // 8, SIDE // 8, worst, most, by_noise))
    return 0 if worst <= LIMIT * most and by_noise > 0.1 * most else 1


if __name__ == "__main__":
    sys.exit(main())
