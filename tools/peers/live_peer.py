# SPDX-License-Identifier: Apache-2.0
"""The autoencoder of live video in PyTorch, with random weights: taef2's round trip of a picture in [-1, 1], the work of
the rows taef2_256. Files are those of its authors: names by place in the sequence."""
import os

import torch
from torch import nn

WIDTH, LATENT = 64, 32
FILES = "taef2_encoder.safetensors", "taef2_decoder.safetensors"


def three(i, o, **more):
    return nn.Conv2d(i, o, 3, padding=1, **more)


class Block(nn.Module):
    def __init__(self, pool=False, n=WIDTH):
        super().__init__()
        self.conv = nn.Sequential(three(n, n), nn.ReLU(), three(n, n), nn.ReLU(), three(n, n))
        self.pool = nn.Sequential(nn.Conv2d(n, 4 * n, 1, bias=False), nn.GroupNorm(4, 4 * n), nn.ReLU(),
                                  nn.Conv2d(4 * n, n, 1, bias=False)) if pool else None

    def forward(self, x):
        if self.pool is not None:
            x = x + self.pool(x)
        return torch.relu(self.conv(x) + x)


class Bound(nn.Module):
    def forward(self, x):
        return 3 * torch.tanh(x / 3)


def halves():
    """Encoder and decoder; 66 GFLOP a round trip at 256 x 256."""
    n = WIDTH
    encoder, decoder = [three(3, n), Block()], [Bound(), three(LATENT, n), nn.ReLU()]
    for pool in (False, False, True):
        encoder += [three(n, n, stride=2, bias=False)] + [Block(pool) for _ in range(3)]
    for pool in (True, False, False):
        decoder += [Block(pool) for _ in range(3)] + [nn.Upsample(scale_factor=2), three(n, n, bias=False)]
    return (nn.Sequential(*encoder, three(n, LATENT)),
            nn.Sequential(*decoder, Block(), three(n, 3)))


class RoundTrip(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = halves()

    def forward(self, x):
        return self.decoder(self.encoder((x + 1) / 2)) * 2 - 1


def write(folder):
    from safetensors.torch import save_file
    os.makedirs(folder)
    net = RoundTrip()
    for name, half in zip(FILES, (net.encoder, net.decoder)):
        save_file({k: v.contiguous() for k, v in half.state_dict().items()}, os.path.join(folder, name))


def load(folder):
    from safetensors.torch import load_file
    net = RoundTrip()
    for name, half in zip(FILES, (net.encoder, net.decoder)):
        half.load_state_dict(load_file(os.path.join(folder, name)))
    return net.eval()
