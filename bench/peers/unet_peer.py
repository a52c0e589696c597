#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch eager against leeway on the shared U-Net (38,307,203 parameters), in one run.

Forward at batch 1 and 8, and one full training step (noise, forward, backward, clip, fused AdamW,
EMA) at batch 16, all f32. PyTorch is timed in NCHW and in channels_last and the better of the two
counts. With --leeway CMD the command is run once per round, between the PyTorch rounds, so that
both see the same machine; CMD must print JSON on stdout (format: see parse_leeway in peer_common.py).

    python3 bench/peers/unet_peer.py --leeway "build/leeway bench unet --threads 2 --json"
    python3 bench/peers/unet_peer.py --json out.json          # PyTorch alone

Needs torch and diffusers. Absolute milliseconds do not carry to another machine: quote ratios.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peer_common as peer  # noqa: E402

CASES = ("forward_b1", "forward_b8", "train_b16")
LAYOUTS = ("nchw", "channels_last")


def build_unet(dropout):
    """The U-Net of the shared configuration 'small'; same parameter count as leeway's."""
    from diffusers import UNet2DModel
    plain, attn = "DownBlock2D", "AttnDownBlock2D"
    net = UNet2DModel(
        sample_size=32, in_channels=3, out_channels=3, layers_per_block=2,
        block_out_channels=(128, 256, 256, 256),
        down_block_types=(plain, attn, plain, plain),
        up_block_types=("UpBlock2D", "UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=64, norm_num_groups=32, attn_norm_num_groups=32, norm_eps=1e-5,
        resnet_time_scale_shift="scale_shift", flip_sin_to_cos=True, freq_shift=0,
        downsample_padding=1, dropout=dropout)
    count = sum(p.numel() for p in net.parameters())
    assert count == 38307203, count
    return net


def forward_case(torch, net, batch, fmt):
    x = torch.randn(batch, 3, 32, 32).contiguous(memory_format=fmt)
    t = torch.randint(0, 1000, (batch,))

    def run():
        net.eval()
        with torch.inference_mode():
            net(x, t, return_dict=False)
    return run


def train_case(torch, net, batch, fmt):
    """DDPM step as users write it: fused AdamW, foreach clip and EMA."""
    params = [p for p in net.parameters()]
    ema = [p.detach().clone() for p in params]
    opt = torch.optim.AdamW(params, lr=2e-4, betas=(0.9, 0.999), weight_decay=0.0, fused=True)
    beta = torch.linspace(1e-4, 0.02, 1000)
    abar = torch.cumprod(1 - beta, 0)
    x0 = torch.randn(batch, 3, 32, 32).contiguous(memory_format=fmt)

    def run():
        net.train()
        t = torch.randint(0, 1000, (batch,))
        eps = torch.randn_like(x0)
        a = abar[t][:, None, None, None]
        xt = a.sqrt() * x0 + (1 - a).sqrt() * eps
        opt.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(net(xt, t, return_dict=False)[0], eps)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0, foreach=True)
        opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(ema, [p.detach() for p in params], 1 - 0.9999)
    return run


def main():
    p = peer.options(__doc__, CASES)
    p.add_argument("--dropout", type=float, default=0.1, help="training step only")
    o = p.parse_args()
    peer.clean_environment(o.tuned_malloc)
    import torch
    import diffusers
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    info = peer.environment(o, diffusers=diffusers.__version__, dropout=o.dropout)
    runs = {}
    for lay in LAYOUTS:
        fmt = torch.channels_last if lay == "channels_last" else torch.contiguous_format
        net = build_unet(o.dropout).to(memory_format=fmt)
        for c in o.cases.split(","):
            kind, b = c.split("_b")
            make = forward_case if kind == "forward" else train_case
            runs[c, "torch " + lay] = make(torch, net, int(b), fmt)
    peer.alternate(o, runs, info)


if __name__ == "__main__":
    main()
