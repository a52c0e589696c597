# SPDX-License-Identifier: Apache-2.0
"""The shared U-Net in PyTorch, through diffusers, with the weights of a model folder."""
import torch

import peer_rows

NCHW, LAST = torch.contiguous_format, torch.channels_last


def load(folder, dropout=0.0):
    """diffusers' network of a folder that it or Leeway wrote; evaluation mode."""
    from diffusers import UNet2DModel, utils
    utils.logging.set_verbosity_error()
    net = UNet2DModel.from_pretrained(folder, low_cpu_mem_usage=False, dropout=dropout)
    count = sum(p.numel() for p in net.parameters())
    if net.config.sample_size == peer_rows.SIZE and count != peer_rows.PARAMETERS:
        raise ValueError("%s has %d parameters, the shared U-Net has %d"
                         % (folder, count, peer_rows.PARAMETERS))
    return net.eval().requires_grad_(False)


class Plain(torch.nn.Module):
    """x, t -> y: no output class, no keyword arguments. For export and compilation."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, t):
        return self.net(x, t, return_dict=False)[0]


class GivenTime(torch.nn.Module):
    """x, sines and cosines of the times -> y. In bf16 times are rounded to multiples of up to 4, .2 of the output off, so runtimes
    that round a whole graph get them from outside; and some have no layer that casts integers."""

    class Given(torch.nn.Module):
        def forward(self, timesteps):
            return self.value

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.sinusoid, net.time_proj = net.time_proj, self.Given()

    def forward(self, x, emb):
        self.net.time_proj.value = emb
        return self.net(x, torch.zeros(1), return_dict=False)[0]


def step(net, x0, bf16, compiled=False):
    """One DDPM step as users write it: fused AdamW, foreach clip and average. compiled: network and
    loss's gradient by torch.compile, at the first call."""
    net.train().requires_grad_(True)
    call = torch.compile(net) if compiled else net
    params = list(net.parameters())
    average = [p.detach().clone() for p in params]
    opt = torch.optim.AdamW(params, lr=2e-4, betas=(0.9, 0.999), weight_decay=0.0, fused=True)
    bar = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0)

    def run():
        t = torch.randint(0, 1000, (x0.shape[0],))
        eps = torch.randn_like(x0)
        a = bar[t][:, None, None, None]
        xt = a.sqrt() * x0 + (1 - a).sqrt() * eps
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            y = call(xt, t, return_dict=False)[0]
        loss = torch.nn.functional.mse_loss(y.float(), eps)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0, foreach=True)
        opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, [p.detach() for p in params], 1 - 0.9999)
        return loss
    return run
