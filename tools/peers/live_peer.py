# SPDX-License-Identifier: Apache-2.0
"""Networks of live video in PyTorch, with random weights. taef2's round trip of a picture in [-1, 1]: the rows taef2_256,
in files as those of its authors (names by place in the sequence). The same around a U-Net in its latents, one DDIM step
from half of the noise, as `leeway stream --latents` goes from frame to frame: the rows live_128. gpu-stress:192 of
docs/live.md: gpu_stress192, without files."""
import os
import sys

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


def write_halves(folder, gain=1.0, middle=0.0):
    """gain, middle: of the last layer, so that pictures lie between black and white, where bytes are compared."""
    from safetensors.torch import save_file
    os.makedirs(folder)
    net = RoundTrip()
    with torch.no_grad():
        net.decoder[-1].weight *= gain
        net.decoder[-1].bias += middle
    for name, half in zip(FILES, (net.encoder, net.decoder)):
        save_file({k: v.contiguous() for k, v in half.state_dict().items()}, os.path.join(folder, name))


def load_halves(folder):
    from safetensors.torch import load_file
    net = RoundTrip()
    for name, half in zip(FILES, (net.encoder, net.decoder)):
        half.load_state_dict(load_file(os.path.join(folder, name)))
    return net.eval()


# ---- a U-Net in its latents ----------------------------------------------------------------------

SIDE, TIMES, STRENGTH = 16, 1000, 0.5
UNET = dict(sample_size=SIDE, in_channels=LATENT, out_channels=LATENT, block_out_channels=(32, 64, 64),
            layers_per_block=2, down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"), attention_head_dim=16, norm_num_groups=8,
            attn_norm_num_groups=8, resnet_time_scale_shift="scale_shift")  # 1,760,768 parameters


class Live(nn.Module):
    """A picture to that of one evaluation at the last time of the half of the schedule that is undone."""

    def __init__(self, folder):
        super().__init__()
        import numpy as np
        from diffusers import UNet2DModel
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import prove_draws
        trip = load_halves(folder)
        self.encoder, self.decoder = trip.encoder, trip.decoder
        self.unet = UNet2DModel.from_pretrained(os.path.join(folder, "unet"), low_cpu_mem_usage=False)
        noise = prove_draws.normals("sample.noise", 0, 0, SIDE * SIDE * LATENT, 0).reshape(SIDE, SIDE, LATENT)
        bar = np.cumprod(1 - np.linspace(1e-4, 0.02, TIMES))[int(STRENGTH * TIMES) - 1]
        self.register_buffer("noise", torch.from_numpy(noise).permute(2, 0, 1)[None].float().contiguous())
        self.register_buffer("time", torch.tensor([int(STRENGTH * TIMES) - 1]))
        self.signal, self.loud = float(bar ** 0.5), float((1 - bar) ** 0.5)

    def forward(self, x):
        z = self.signal * self.encoder((x + 1) / 2) + self.loud * self.noise
        z = (z - self.loud * self.unet(z, self.time, return_dict=False)[0]) / self.signal
        return self.decoder(z) * 2 - 1


# ---- gpu-stress ----------------------------------------------------------------------------------

class Stress(nn.Module):
    """The network of tools/golden, at time 40 and with the frame itself as the one before."""

    def __init__(self):
        super().__init__()
        sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        from golden import rehearsal
        self.net = rehearsal.Stress(192)
        self.register_buffer("time", torch.tensor([40.0]))

    def forward(self, x):
        return self.net(x, self.time, x)


# ---- folders -------------------------------------------------------------------------------------

# ---- the autoencoder of Stable Diffusion ---------------------------------------------------------

KL = dict(down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4,
          block_out_channels=[128, 256, 512, 512], layers_per_block=2, latent_channels=4, norm_num_groups=32,
          scaling_factor=0.18215)


class KlTrip(nn.Module):
    """A picture to its mean latent and back."""

    def __init__(self, folder):
        super().__init__()
        from diffusers import AutoencoderKL
        self.net = AutoencoderKL.from_pretrained(folder)

    def forward(self, x):
        return self.net.decode(self.net.encode(x).latent_dist.mode()).sample


def write(name, folder):
    if name == "sd_vae_256":
        from diffusers import AutoencoderKL
        return AutoencoderKL(**KL).save_pretrained(folder)
    if name == "gpu_stress192":
        return os.makedirs(folder)
    live = name == "live_128"
    write_halves(folder, *((4.0, 0.5) if live else ()))
    if live:
        from diffusers import UNet2DModel
        net = UNet2DModel(**UNET)
        net.save_pretrained(os.path.join(folder, "unet"))
    return None


def load(name, folder):
    if name == "gpu_stress192":
        torch.manual_seed(0)
        return Stress().eval().requires_grad_(False)
    if name == "sd_vae_256":
        return KlTrip(folder).eval().requires_grad_(False)
    return (Live(folder) if name == "live_128" else load_halves(folder)).eval().requires_grad_(False)
