# SPDX-License-Identifier: Apache-2.0
"""The rows of the comparison: what is computed, how often, what is asked for, and its FLOPs.

One row is one line of the table. Sample counts are chosen so that all rows together, five rounds,
take about ten minutes on two cores of about 120 GFLOP/s each.
"""
import math
from dataclasses import dataclass

from encoder_peer import NETS

PARAMETERS = 38307203
SIZE, BASE, MULT, BLOCKS, ATTENTION_AT = 32, 128, (1, 2, 2, 2), 2, (16,)
TEMPERATURES = (0.02, 0.05, 0.2)


@dataclass
class Row:
    name: str
    kind: str            # forward, train, field, sample, startup, encoder
    title: str
    precision: str = "f32"
    batch: int = 1
    net: str = ""        # encoder: of encoder_peer.NETS
    shape: tuple = ()    # field: groups * slots, generated, unconditional, positive, channels
    steps: int = 0       # sample: evaluations per picture
    passes: int = 0      # mc: of each of `batch` pictures
    sites: str = ""      # mc: where dropout lies
    samples: int = 1     # per variant and round
    warm: int = 0        # calls before them that are not counted, each round
    share: float = 1     # of the rounds that this row takes
    must: float = 0      # ratio to the best peer that is asked for, and hoped for
    stretch: float = 0   # (startup: milliseconds)

    def turns(self, rounds):
        return max(1, math.ceil(rounds * self.share - 1e-9))


def forward(precision, batch, samples, warm, must=0, stretch=0, share=1.0):
    return Row("forward_%s_b%d" % (precision, batch), "forward",
               "U-Net forward, %s, batch %d" % (precision, batch), precision, batch,
               samples=samples, warm=warm, must=must, stretch=stretch, share=share)


def train(precision, must, stretch):
    return Row("train_%s_b16" % precision, "train", "training step, %s, batch 16" % precision,
               precision, 16, must=must, stretch=stretch, share=0.6)


def drift(name, title, shape, samples, warm, must, stretch, share=1.0):
    return Row("field_" + name, "field", title, shape=shape, samples=samples, warm=warm,
               must=must, stretch=stretch, share=share)


def encoder(net, precision, batch, samples, must, stretch, share=1.0):
    return Row("%s_%s" % (net, precision), "encoder",
               "%s forward, %s, batch %d" % (NETS[net].title, precision, batch), precision, batch,
               net, samples=samples, warm=1, must=must, stretch=stretch, share=share)


def alone(net, precision, samples, must=1.0, stretch=1.3):
    """One picture of an encoder that has a row of eight: weights are then most of what is read."""
    row = encoder(net, precision, 1, samples, must, stretch)
    row.name += "_b1"
    return row


def mc(name, title, pictures, passes, sites, must, stretch):
    return Row("mc_" + name, "mc", "%s: %d pictures x %d passes, bf16" % (title, pictures, passes),
               "bf16", pictures, "clip_b32", passes=passes, sites=sites, warm=0, must=must,
               stretch=stretch, share=0.6)


ROWS = [
    forward("f32", 1, 8, 2, 1.7, 2.0),
    forward("f32", 8, 2, 1, 2.1, 2.4, share=0.8),
    forward("f32", 32, 1, 0, 2.2, 2.5, share=0.6),
    forward("bf16", 1, 8, 2, 1.3, 1.6),
    forward("bf16", 8, 2, 1, 1.5, 1.9, share=0.8),
    forward("bf16", 32, 1, 0, 1.6, 2.0, share=0.6),
    forward("int8", 1, 8, 2, 1.3, 1.5),
    forward("int8", 8, 2, 1, 1.4, 1.6, share=0.8),
    train("f32", 1.8, 2.1),
    train("bf16", 1.7, 2.2),
    drift("slots", "drift field, 16 slots: 64 generated, 128 positive, 96 negative, 192 channels",
          (16, 64, 96, 128, 192), 30, 5, 3, 4),
    drift("4096x128", "drift field, 4,096 x 8,192 targets, 128 channels",
          (1, 4096, 0, 4096, 128), 1, 0, 10, 14, share=0.6),
    drift("4096x768", "drift field, 4,096 x 8,192 targets, 768 channels",
          (1, 4096, 0, 4096, 768), 1, 0, 5, 7, share=0.6),
    Row("sample_1", "sample", "one step, batch 1", steps=1, samples=10, warm=2, share=0.6),
    Row("sample_50", "sample", "DDIM, 50 steps, batch 1", steps=50, share=0.6),
    encoder("clip_b32", "f32", 8, 5, 1.05, 1.2),
    encoder("clip_b32", "bf16", 8, 8, 1.1, 1.3),
    encoder("clip_b32", "int8", 8, 8, 1.0, 1.3),
    encoder("dinov2_b14", "f32", 8, 1, 1.05, 1.2),
    encoder("dinov2_b14", "bf16", 8, 2, 1.1, 1.3),
    encoder("dinov2_b14", "int8", 8, 3, 1.0, 1.3),
    encoder("so400m", "bf16", 1, 1, 1.1, 1.3),
    encoder("mobilenet_v2", "f32", 8, 20, 1.0, 1.3),
    encoder("mobilenet_v2", "int8", 8, 20, 1.0, 1.3),
    encoder("resnet50", "f32", 8, 5, 1.4, 1.8),
    encoder("resnet50", "bf16", 8, 8, 1.0, 1.3),
    encoder("resnet50", "int8", 8, 10, 1.0, 1.3),
    alone("clip_b32", "f32", 25),
    alone("clip_b32", "bf16", 40),
    alone("clip_b32", "int8", 60),
    alone("dinov2_b14", "f32", 5),
    alone("dinov2_b14", "bf16", 10),
    alone("dinov2_b14", "int8", 15),
    alone("resnet50", "f32", 30),
    alone("resnet50", "bf16", 50),
    alone("resnet50", "int8", 80),
    encoder("inception_fid", "f32", 8, 3, 1.2, 1.6),
    encoder("taef2_256", "f32", 1, 3, 1.5, 2.0),
    encoder("taef2_256", "bf16", 1, 5, 1.5, 2.0),
    encoder("sd_vae_256", "f32", 1, 1, 1.3, 1.6),
    encoder("sd_vae_256", "bf16", 1, 1, 1.3, 1.6),
    encoder("live_128", "f32", 1, 10, 1.4, 1.8),
    encoder("live_128", "bf16", 1, 15, 1.4, 1.8),
    encoder("gpu_stress192", "bf16", 1, 3, 1.2, 1.5, share=0.6),
    mc("clip_b32_bf16", "CLIP B/32 with dropout at every linear module", 8, 16, "hf", 1.3, 1.6),
    mc("last3", "the same in the last 3 of 12 blocks", 4, 64, "last:3", 4.4, 5.4),
    Row("mc_note_loop", "mc_note", "decoding each pass: 200 pictures x 16 passes of CLIP B/32",
        "bf16", 200, "clip_b32", passes=16, sites="hf", share=0.2, must=10, stretch=30),
    Row("startup", "startup", "start to first picture", share=0.4, must=500,
        stretch=200),
]


def named(word):
    """The row of this name, else those whose names begin so."""
    exact = [r for r in ROWS if r.name == word]
    return exact or [r for r in ROWS if word == "all" or r.name.startswith(word)]


def choose(words):
    """Rows by names or beginnings of names; 'all' is all of them."""
    unknown = [w for w in words if not named(w)]
    if unknown:
        raise SystemExit("no such row: %s; there are %s"
                         % (", ".join(unknown), ", ".join(r.name for r in ROWS)))
    return [r for r in ROWS if any(r in named(w) for w in words)]


# ---- FLOPs -----------------------------------------------------------------------------------

def taps(side, stride):
    """Pairs (output, tap) along one axis that meet the picture, 3 wide, one pixel of border."""
    return 3 * side - 2 if stride == 1 else 3 * (side // 2) - 1


class Count:
    """Walks the U-Net layer by layer: FLOPs of one picture (nominal, and without the border taps
    that multiply zeros) and parameters, which prove that the walk is the network."""

    def __init__(self):
        self.nominal = self.real = self.params = 0

    def conv(self, cin, cout, side, kernel=3, stride=1):
        out = side // stride
        self.nominal += 2 * cin * cout * kernel * kernel * out * out
        self.real += 2 * cin * cout * (taps(side, stride) ** 2 if kernel == 3 else out * out)
        self.params += cin * cout * kernel * kernel + cout

    def linear(self, cin, cout, rows=1):
        self.nominal += 2 * cin * cout * rows
        self.real += 2 * cin * cout * rows
        self.params += cin * cout + cout

    def norm(self, channels):
        self.params += 2 * channels

    def resnet(self, cin, cout, side):
        self.norm(cin)
        self.conv(cin, cout, side)
        self.linear(4 * BASE, 2 * cout)
        self.norm(cout)
        self.conv(cout, cout, side)
        if cin != cout:
            self.conv(cin, cout, side, kernel=1)

    def attention(self, channels, side):
        tokens = side * side
        self.norm(channels)
        for _ in range(4):  # q, k, v, out
            self.linear(channels, channels, tokens)
        self.nominal += 4 * tokens * tokens * channels
        self.real += 4 * tokens * tokens * channels


def count_unet():
    """FLOPs of one picture and parameters of the shared U-Net."""
    c, side, width, skips = Count(), SIZE, BASE, [BASE]
    c.linear(BASE, 4 * BASE)
    c.linear(4 * BASE, 4 * BASE)
    c.conv(3, BASE, side)
    for i, m in enumerate(MULT):
        for _ in range(BLOCKS):
            c.resnet(width, m * BASE, side)
            width = m * BASE
            if side in ATTENTION_AT:
                c.attention(width, side)
            skips.append(width)
        if i + 1 < len(MULT):
            c.conv(width, width, side, stride=2)
            side //= 2
            skips.append(width)
    c.resnet(width, width, side)
    c.attention(width, side)
    c.resnet(width, width, side)
    for i, m in reversed(list(enumerate(MULT))):
        for _ in range(BLOCKS + 1):
            c.resnet(width + skips.pop(), m * BASE, side)
            width = m * BASE
            if side in ATTENTION_AT:
                c.attention(width, side)
        if i > 0:
            side *= 2
            c.conv(width, width, side)
    c.norm(width)
    c.conv(width, 3, side)
    assert c.params == PARAMETERS and not skips, (c.params, skips)
    return c


def flops(row):
    """Multiplications and additions that a direct computation of the row needs."""
    if row.kind == "field":
        b, n, nu, npos, c = row.shape
        return 2.0 * b * n * (n + nu + npos) * c * (1 + len(TEMPERATURES))
    if row.kind == "encoder":
        return NETS[row.net].flops * row.batch
    if row.kind in ("mc", "mc_note"):
        late = int(row.sites[5:]) / 12 if row.sites.startswith("last:") else 1.0
        return NETS[row.net].flops * row.batch * (row.passes * late + 1 - late)
    per = float(count_unet().real)
    if row.kind == "sample":
        return per * row.steps
    return per * row.batch * (3 if row.kind == "train" else 1)


def type_of(row):
    return row.precision if row.kind in ("forward", "train", "encoder", "mc", "mc_note") else "f32"
