# SPDX-License-Identifier: Apache-2.0
"""The networks that exist as code alone (src/models/image/models_rehearsal.h), written again with PyTorch's layers.

    python3 -m golden.rehearsal    # in tools/: their parameters, and those of the classes as published
"""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from . import formula
from .networks import fill

SIDE, BATCH = 32, 2


def conv3(c, o, stride=1):
    return nn.Conv2d(c, o, 3, stride, 1)


def up4(c, o):
    return nn.ConvTranspose2d(c, o, 4, 2, 1)


def plane(x, t, length):
    return torch.cat([x, (t / length)[:, None, None, None].expand(-1, 1, *x.shape[2:])], 1)


def heads_of(x, heads):
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def attention(q, k, v, heads):
    y = F.scaled_dot_product_attention(heads_of(q, heads), heads_of(k, heads), heads_of(v, heads))
    return y.transpose(1, 2).flatten(2)


# ---- gpu-stress ----------------------------------------------------------------------------------

class Convs(nn.Module):
    def __init__(self, c, o):
        super().__init__()
        self.conv_layers = nn.ModuleList(conv3(o if i else c, o) for i in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _ in range(4))

    def forward(self, x):
        for conv, norm in zip(self.conv_layers, self.norms):
            x = F.silu(norm(conv(x)))
        return x


class Attend(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(c, c) for _ in range(4))
        self.ffn = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c))
        self.norm1, self.norm2 = nn.LayerNorm(c), nn.LayerNorm(c)

    def forward(self, x):
        shape, x = x.shape, x.flatten(2).transpose(1, 2)
        h = self.norm1(x)
        x = x + self.out_proj(attention(self.q_proj(h), self.k_proj(h), self.v_proj(h), 16))
        return (x + self.ffn(self.norm2(x))).transpose(1, 2).reshape(shape)


class StressUNet(nn.Module):
    def __init__(self, c, b):
        super().__init__()
        widths = [b, 2 * b, 4 * b, 8 * b]
        for i, w in enumerate(widths):
            setattr(self, "enc%d" % (i + 1), Convs(widths[i - 1] if i else c, w))
            setattr(self, "dec%d" % (i + 1), Convs(2 * w, widths[max(i - 1, 0)]))
            if i:
                setattr(self, "attn%d" % i, Attend(w))
        self.bottleneck = nn.Sequential(Convs(8 * b, 16 * b), Attend(16 * b), Convs(16 * b, 8 * b))
        self.output = nn.Conv2d(b, 3, 1)

    def forward(self, x):
        kept = []
        for i in range(4):
            x = getattr(self, "enc%d" % (i + 1))(F.max_pool2d(x, 2) if i else x)
            x = getattr(self, "attn%d" % i)(x) if i else x
            kept.append(x)
        x = self.bottleneck(F.max_pool2d(x, 2))
        for i in (3, 2, 1, 0):
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = getattr(self, "dec%d" % (i + 1))(torch.cat([x, kept[i]], 1))
        return self.output(x)


class Stress(nn.Module):
    condition = 3

    def __init__(self, b):
        super().__init__()
        self.unets = nn.ModuleList([StressUNet(4, b), StressUNet(3, b // 2)])
        self.temporal_processor = nn.Sequential(Convs(6, b), Attend(b), Convs(b, 3))

    def forward(self, x, t, condition):
        y = self.unets[1](self.unets[0](plane(x, t, 50)))
        return self.temporal_processor(torch.cat([y, condition], 1))


# ---- gpu-intensive-lsd ---------------------------------------------------------------------------

def parts_of(c):
    return next(n for n in range(8, 0, -1) if c % n == 0)


class Inner(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.qkv, self.proj = nn.Linear(c, 3 * c, bias=False), nn.Linear(c, c)


class Places(nn.Module):
    def __init__(self, c, groups):
        super().__init__()
        self.norm, self.attention = nn.GroupNorm(groups, c), Inner(c)

    def forward(self, x):
        h = self.norm(x).flatten(2).transpose(1, 2)
        qkv = self.attention.qkv(h).chunk(3, -1)
        h = self.attention.proj(attention(*qkv, parts_of(x.shape[1])))
        return x + h.transpose(1, 2).reshape(x.shape)


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        groups = parts_of(c)
        self.conv1, self.conv2 = conv3(c, c), conv3(c, c)
        self.norm1, self.norm2 = nn.GroupNorm(groups, c), nn.GroupNorm(groups, c)
        self.attention = Places(c, groups)

    def forward(self, x):
        h = self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))
        return self.attention(h) + x


class LSD(nn.Module):
    """published: the layers as the class declares them, which cannot run, with its other parts."""
    condition = 6

    def __init__(self, b, published=False):
        super().__init__()
        three = lambda c: nn.ModuleList(Res(c) for _ in range(3))
        self.base = b
        self.time_embed = nn.Sequential(nn.Linear(b, 4 * b), nn.SiLU(), nn.Linear(4 * b, 4 * b))
        self.enc_conv_in = conv3(6 if published else 9, b)
        for i, w in enumerate((b, 2 * b, 4 * b)):
            setattr(self, "enc_level%d" % (i + 1), three(w))
            setattr(self, "enc_down%d" % (i + 1), conv3(w, 2 * w, 2))
            arriving = 2 * w if published or i == 2 else 4 * w
            setattr(self, "dec_up%d" % (i + 1), up4(arriving, w))
            setattr(self, "dec_level%d" % (i + 1), three(2 * w))
            if not published:
                setattr(self, "time_proj%d" % (i + 1), nn.Linear(4 * b, w))
        self.bottleneck = nn.ModuleList(Res(8 * b) for _ in range(6))
        last = b if published else 2 * b
        self.out_conv = nn.Sequential(nn.GroupNorm(parts_of(last), last), nn.SiLU(), conv3(last, 3))
        if published:
            self.context_memory = three(3)
            self.temporal_blend = nn.Sequential(conv3(6, b), Res(b), Res(b), conv3(b, 1))

    def forward(self, x, t, condition):
        half = self.base // 2
        angle = t[:, None] * torch.exp(-np.log(10000.0) * torch.arange(half).double() / (half - 1))
        time = self.time_embed(torch.cat([angle.sin(), angle.cos()], 1))
        x, kept = self.enc_conv_in(torch.cat([x, condition], 1)), []
        for i in ("1", "2", "3"):
            kept.append(x)
            for block in getattr(self, "enc_level" + i):
                x = block(x)
            x = x + getattr(self, "time_proj" + i)(time)[:, :, None, None]
            x = getattr(self, "enc_down" + i)(x)
        for block in self.bottleneck:
            x = block(x)
        for i in ("3", "2", "1"):
            x = torch.cat([getattr(self, "dec_up" + i)(x), kept.pop()], 1)
            for block in getattr(self, "dec_level" + i):
                x = block(x)
        return self.out_conv(x)


# ---- simple-optimized-unet -----------------------------------------------------------------------

class Mixed(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(c, 3 * c), nn.Linear(c, c)

    def forward(self, x):
        shape, x = x.shape, x.flatten(2).transpose(1, 2)
        y = self.out_proj(attention(*self.in_proj(x).chunk(3, -1), shape[1] // 64))
        return y.transpose(1, 2).reshape(shape)


class Simple(nn.Module):
    condition = 0

    def __init__(self, b):
        super().__init__()
        self.conv_in, self.conv_out = conv3(4, b), conv3(b, 3)
        self.enc1, self.enc2 = conv3(b, 2 * b, 2), conv3(2 * b, 4 * b, 2)
        self.bottleneck_conv, self.attention = conv3(4 * b, 8 * b), Mixed(8 * b)
        self.dec2, self.dec1 = up4(8 * b, 2 * b), up4(2 * b, b)

    def forward(self, x, t, condition):
        first = F.silu(self.conv_in(plane(x, t, 100)))
        second = F.silu(self.enc1(first))
        x = self.attention(F.silu(self.bottleneck_conv(F.silu(self.enc2(second)))))
        x = F.silu(self.dec2(x)) + second
        return torch.tanh(self.conv_out(F.silu(self.dec1(x)) + first))


NETWORKS = {"gpu-stress": Stress, "gpu-intensive-lsd": LSD, "simple-optimized-unet": Simple}


# Width 12 has no 8 groups and heads at the first level.
CASES = ("gpu-stress:16", "gpu-intensive-lsd:16", "gpu-intensive-lsd:12", "simple-optimized-unet:16")


def make():
    out = {}
    for name in CASES:
        cls = NETWORKS[name.split(":")[0]]
        net = fill(cls(int(name.split(":")[1])))
        x = formula.values("x", (BATCH, 3, SIDE, SIDE))
        c = formula.values("condition", (BATCH, max(cls.condition, 1), SIDE, SIDE))
        with torch.no_grad():
            y = net(torch.from_numpy(x).double(), torch.tensor([10.0, 40.0]).double(),
                    torch.from_numpy(c).double())
        out[name] = y.numpy()
        print("%s: y has mean %.3g, deviation %.3g" % (name, y.mean(), y.std()))
    return out


def count(net):
    return sum(p.numel() for p in net.parameters())


def main():
    with torch.device("meta"):
        for name, cls in NETWORKS.items():
            for b in (16, 64, 96, 128, 160, 192):
                print(name, b, count(cls(b)))
        for b in (64, 96, 128, 160, 192):
            print("gpu-intensive-lsd as published", b, count(LSD(b, True)))


if __name__ == "__main__":
    main()
