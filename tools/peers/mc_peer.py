# SPDX-License-Identifier: Apache-2.0
"""Noisy passes of CLIP B/32 in PyTorch: the work of the mc rows.

Dropout lies on the output of every linear module of the vision model (Leeway's list `hf`), or of its last
blocks. A result is the score trace_pre of each picture: the variance of its features over passes, mean over
dimensions. Draws are random on both sides: scores are compared as means over pictures, within what so few passes tell.
"""
import os
import re

import numpy as np

NET, SIDE, RATE = "clip_b32", 224, 0.01
NOTE_BATCH = 32          # what the loop that decodes each time takes at once
WANT_PASSES = 128        # of the score that others are compared with


def dropped(linear):
    """The module with dropout on its output."""
    import torch  # by those who need it only: run.py reads this file too

    class Dropped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = linear

        def forward(self, x):
            return torch.nn.functional.dropout(self.linear(x), RATE, training=True, inplace=True)
    return Dropped()


def disturb(net, sites):
    """Wraps the sites: "hf" or "last:N"; how many there are."""
    import torch
    found = [(name, m) for name, m in net.named_modules()
             if isinstance(m, torch.nn.Linear) and "visual_projection" not in name]
    block = lambda name: int(re.search(r"layers\.(\d+)\.", name).group(1))
    if sites.startswith("last:"):
        first = max(block(n) for n, _ in found) + 1 - int(sites[5:])
        found = [(n, m) for n, m in found if block(n) >= first]
    for name, m in found:
        parent, leaf = name.rsplit(".", 1)
        setattr(net.get_submodule(parent), leaf, dropped(m))
    return len(found)


class Moments:
    """Sums in double, as the loop keeps them: the variance over passes has the divisor T."""

    def __init__(self, pictures):
        self.sum = self.square = 0
        self.passes = 0

    def add(self, features):
        """[pictures, D], of one pass."""
        x = features.double()
        self.sum, self.square, self.passes = self.sum + x, self.square + x * x, self.passes + 1

    def trace(self):
        mean = self.sum / self.passes
        return (self.square / self.passes - mean * mean).mean(1).numpy()


def one_by_one(net, x, passes):
    """A pass is a forward of all pictures."""
    m = Moments(len(x))
    for _ in range(passes):
        m.add(net(x))
    return m.trace()


def folded(net, x, passes, rows=64):
    """Passes and pictures are rows of one batch."""
    m, at = Moments(len(x)), max(1, rows // len(x))
    for first in range(0, passes, at):
        n = min(at, passes - first)
        y = net(x.repeat(n, 1, 1, 1)).reshape(n, len(x), -1)
        for k in range(n):
            m.add(y[k])
    return m.trace()


def compiled(net):
    import torch
    torch._inductor.config.freezing = True
    return torch.compile(net, dynamic=False)


def unbiased(trace, passes):
    """Of a mean of variances with divisor T: what many passes would give."""
    return float(np.mean(trace)) * passes / (passes - 1)


# ---- pictures --------------------------------------------------------------------------------

def draw(seed, height, width):
    """Smooth shapes under a little noise, as bytes."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    out = np.zeros((height, width, 3), np.float32)
    for k in range(3):
        for _ in range(4):
            a, b, c = rng.uniform(0.005, 0.06, 2).tolist() + [rng.uniform(0, 6)]
            out[..., k] += rng.uniform(10, 40) * np.sin(a * x + b * y + c)
    out += 128 + rng.uniform(-8, 8, out.shape)
    return np.clip(out, 0, 255).astype(np.uint8)


def write_pictures(folder, n, height, width, kind):
    from PIL import Image
    os.makedirs(folder, exist_ok=True)
    for i in range(n):
        more = {"quality": 92} if kind == "jpg" else {}
        Image.fromarray(draw(i, height, width)).save(
            os.path.join(folder, "%04d.%s" % (i, kind)), **more)


def paths(folder):
    return [os.path.join(folder, n) for n in sorted(os.listdir(folder))]


def pixels(folder):
    """As the folder of the network says: mean and deviation of one half."""
    from PIL import Image
    import torch
    x = np.stack([np.asarray(Image.open(p).convert("RGB")) for p in paths(folder)])
    return torch.from_numpy((x.transpose(0, 3, 1, 2).astype(np.float32) / 255 - 0.5) / 0.5)


# ---- the loop of the note --------------------------------------------------------------------

def note_loop(net, processor, folder, passes):
    """Every pass opens, decodes and prepares every picture again."""
    import torch
    from PIL import Image
    names, m = paths(folder), Moments(0)
    with torch.no_grad():
        for _ in range(passes):
            found = []
            for at in range(0, len(names), NOTE_BATCH):
                images = [Image.open(p).convert("RGB") for p in names[at:at + NOTE_BATCH]]
                found.append(net(processor(images=images, return_tensors="pt")["pixel_values"]))
            m.add(torch.cat(found))
    return m.trace()
