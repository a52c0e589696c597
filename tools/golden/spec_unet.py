# SPDX-License-Identifier: Apache-2.0
"""The shared U-Net written from its description, without diffusers.

Its only purpose is to show that diffusers' UNet2DModel, with the configuration of unet.py, IS this
network: the skip stack, the packed q|k|v projection and the block order are written here from the
text, the weights are copied from the diffusers model, and both must agree to rounding in double.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Res(nn.Module):
    def __init__(self, ci, co, temb, groups):
        super().__init__()
        self.gn1, self.conv1 = nn.GroupNorm(groups, ci), nn.Conv2d(ci, co, 3, padding=1)
        self.temb = nn.Linear(temb, 2 * co)
        self.gn2, self.conv2 = nn.GroupNorm(groups, co), nn.Conv2d(co, co, 3, padding=1)
        self.skip = nn.Conv2d(ci, co, 1) if ci != co else None

    def forward(self, x, temb):
        h = self.conv1(F.silu(self.gn1(x)))
        scale, shift = self.temb(F.silu(temb))[:, :, None, None].chunk(2, 1)
        h = self.gn2(h) * (1 + scale) + shift
        h = self.conv2(F.silu(h))
        return (self.skip(x) if self.skip is not None else x) + h


class Attn(nn.Module):
    def __init__(self, c, heads, groups):
        super().__init__()
        self.heads = heads
        self.gn = nn.GroupNorm(groups, c)
        self.qkv, self.out = nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.gn(x)).reshape(b, 3, self.heads, c // self.heads, h * w).unbind(1)
        a = torch.softmax(torch.einsum("bhdi,bhdj->bhij", q, k) / math.sqrt(c // self.heads), -1)
        o = torch.einsum("bhij,bhdj->bhdi", a, v).reshape(b, c, h, w)
        return x + self.out(o)


class SpecUNet(nn.Module):
    def __init__(self, base, mult, blocks, attn_res, heads, groups, size, classes=0):
        super().__init__()
        temb = 4 * base
        self.base = base
        self.t1, self.t2 = nn.Linear(base, temb), nn.Linear(temb, temb)
        self.cls = nn.Embedding(classes, temb) if classes else None
        self.conv_in = nn.Conv2d(3, base, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        stack, c = [base], base
        for i, m in enumerate(mult):
            for _ in range(blocks):
                at = Attn(m * base, heads, groups) if size >> i in attn_res else None
                self.down.append(nn.ModuleList([Res(c, m * base, temb, groups), at]))
                c = m * base
                stack.append(c)
            if i + 1 < len(mult):
                self.down.append(nn.ModuleList([nn.Conv2d(c, c, 3, stride=2, padding=1)]))
                stack.append(c)
        self.mid = nn.ModuleList([Res(c, c, temb, groups), Attn(c, heads, groups),
                                  Res(c, c, temb, groups)])
        for i, m in reversed(list(enumerate(mult))):
            for _ in range(blocks + 1):
                at = Attn(m * base, heads, groups) if size >> i in attn_res else None
                self.up.append(nn.ModuleList([Res(c + stack.pop(), m * base, temb, groups), at]))
                c = m * base
            if i:
                self.up.append(nn.ModuleList([nn.Conv2d(c, c, 3, padding=1)]))
        self.gn_out, self.conv_out = nn.GroupNorm(groups, c), nn.Conv2d(c, 3, 3, padding=1)

    def embed(self, t, labels):
        half = self.base // 2
        f = torch.exp(-math.log(1e4) * torch.arange(half, dtype=torch.float64) / half)
        a = t.double()[:, None] * f
        e = self.t2(F.silu(self.t1(torch.cat([a.cos(), a.sin()], 1).to(self.t1.weight.dtype))))
        return e + self.cls(labels) if self.cls is not None else e

    def forward(self, x, t, labels=None):
        temb = self.embed(t, labels)
        h = self.conv_in(x)
        stack = [h]
        for part in self.down:
            h = part[0](h) if len(part) == 1 else part[0](h, temb)
            h = part[1](h) if len(part) == 2 and part[1] is not None else h
            stack.append(h)
        h = self.mid[2](self.mid[1](self.mid[0](h, temb)), temb)
        for part in self.up:
            if len(part) == 1:
                h = part[0](F.interpolate(h, scale_factor=2.0, mode="nearest"))
                continue
            h = part[0](torch.cat([h, stack.pop()], 1), temb)
            h = part[1](h) if part[1] is not None else h
        return self.conv_out(F.silu(self.gn_out(h)))


def _copy(dst, src):
    dst.weight.data.copy_(src.weight.data.reshape(dst.weight.shape))
    dst.bias.data.copy_(src.bias.data)


def _copy_res(dst, src):
    _copy(dst.gn1, src.norm1)
    _copy(dst.conv1, src.conv1)
    _copy(dst.temb, src.time_emb_proj)
    _copy(dst.gn2, src.norm2)
    _copy(dst.conv2, src.conv2)
    if dst.skip is not None:
        _copy(dst.skip, src.conv_shortcut)


def _copy_attn(dst, src):
    _copy(dst.gn, src.group_norm)
    w = torch.cat([src.to_q.weight, src.to_k.weight, src.to_v.weight])
    dst.qkv.weight.data.copy_(w.data[:, :, None, None])
    dst.qkv.bias.data.copy_(torch.cat([src.to_q.bias, src.to_k.bias, src.to_v.bias]).data)
    _copy(dst.out, src.to_out[0])


def copy_from_diffusers(dst, src):
    """Weights of a UNet2DModel into a SpecUNet (shapes are checked by copy_)."""
    _copy(dst.t1, src.time_embedding.linear_1)
    _copy(dst.t2, src.time_embedding.linear_2)
    if dst.cls is not None:
        dst.cls.weight.data.copy_(src.class_embedding.weight.data)
    _copy(dst.conv_in, src.conv_in)
    _copy(dst.gn_out, src.conv_norm_out)
    _copy(dst.conv_out, src.conv_out)
    _copy_res(dst.mid[0], src.mid_block.resnets[0])
    _copy_attn(dst.mid[1], src.mid_block.attentions[0])
    _copy_res(dst.mid[2], src.mid_block.resnets[1])
    for parts, blocks, ends in ((dst.down, src.down_blocks, "downsamplers"),
                                (dst.up, src.up_blocks, "upsamplers")):
        parts = iter(parts)
        for block in blocks:
            atts = getattr(block, "attentions", None)
            for j, res in enumerate(block.resnets):
                part = next(parts)
                _copy_res(part[0], res)
                if atts is not None:
                    _copy_attn(part[1], atts[j])
            if getattr(block, ends) is not None:
                _copy(next(parts)[0], getattr(block, ends)[0].conv)
