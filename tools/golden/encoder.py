# SPDX-License-Identifier: Apache-2.0
"""Frozen and trainable encoders: the small MAE ResNet, the cut ResNet-18, the CIFAR ResNet-20."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision

from . import formula
from .unet import relative

GROUPS, EPS = 8, 1e-6


class Block(nn.Module):
    def __init__(self, ci, co, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(ci, co, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(GROUPS, co, eps=EPS)
        self.conv2 = nn.Conv2d(co, co, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(GROUPS, co, eps=EPS)
        self.downsample = None
        if stride != 1 or ci != co:
            self.downsample = nn.Sequential(nn.Conv2d(ci, co, 1, stride, bias=False),
                                            nn.GroupNorm(GROUPS, co, eps=EPS))

    def forward(self, x):
        h = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(h + (x if self.downsample is None else self.downsample(x)))


class MaeNet(nn.Module):
    """Encoder with three stages of one block, decoder with skips, class head on pooled features."""

    def __init__(self, c=16, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, c, 3, 1, 1, bias=False)
        self.norm1 = nn.GroupNorm(GROUPS, c, eps=EPS)
        self.layer1 = nn.Sequential(Block(c, c, 1))
        self.layer2 = nn.Sequential(Block(c, 2 * c, 2))
        self.layer3 = nn.Sequential(Block(2 * c, 4 * c, 2))
        self.fc = nn.Linear(4 * c, classes)
        self.decoder = nn.ModuleList([nn.Conv2d(6 * c, 2 * c, 3, 1, 1),
                                      nn.Conv2d(3 * c, c, 3, 1, 1)])
        self.head = nn.Conv2d(c, 3, 1)

    def features(self, x):
        s1 = self.layer1(F.relu(self.norm1(self.conv1(x))))
        s2 = self.layer2(s1)
        return s1, s2, self.layer3(s2)

    def forward(self, x):
        s1, s2, s3 = self.features(x)
        h = s3
        for conv, skip in zip(self.decoder, (s2, s1)):
            h = F.interpolate(h, scale_factor=2.0, mode="nearest")
            h = F.relu(conv(torch.cat([h, skip], 1)))
        return self.head(h), self.fc(s3.mean((2, 3))), (s1, s2, s3)


def load_formula(net):
    for n, p in list(net.named_parameters()) + list(net.named_buffers()):
        if p.is_floating_point():
            p.data.copy_(torch.from_numpy(formula.parameter(n, tuple(p.shape))))
    return net


def mae(dtype):
    """Masked reconstruction loss (and cross-entropy of the same masked input), and gradients."""
    net = load_formula(MaeNet()).to(dtype)
    x = torch.from_numpy(formula.values("mae.x", (4, 3, 16, 16))).to(dtype)
    keep = torch.from_numpy(formula.uniform("mae.mask", 4 * 64) < 0).reshape(4, 1, 8, 8)
    mask = F.interpolate((~keep).to(dtype), scale_factor=2.0, mode="nearest")
    rec, logits, stages = net(x * (1 - mask))
    err = ((rec - x) ** 2 * mask).sum((1, 2, 3)) / (mask.sum((1, 2, 3)) + 1e-8)
    labels = torch.from_numpy(formula.integers("mae.labels", 4, 10))
    out = {"x": x, "mask": mask, "labels": labels, "reconstruction": rec, "logits": logits,
           "layer1": stages[0], "layer2": stages[1], "layer3": stages[2]}
    losses = {"mae": err.mean(), "classify": F.cross_entropy(logits, labels)}
    for tag, loss in losses.items():
        out["loss." + tag] = loss.reshape(1)
        names = [n for n, _ in net.named_parameters()]
        grads = torch.autograd.grad(loss, net.parameters(), retain_graph=True, allow_unused=True)
        for n, g in zip(names, grads):
            if g is not None:
                out["%s.grad.%s" % (tag, n)] = g
    res = {k: v.detach().numpy() for k, v in out.items()}
    res["x"] = np.float32(res["x"])
    res["mask"] = np.float32(res["mask"])
    return net, res


def golden_mae():
    """MAE gradients whole, classifier gradients as sketches."""
    net, res = mae(torch.float64)
    _, r32 = mae(torch.float32)
    dev = max((relative(r32[k], res[k]), k) for k in res if ".grad." in k)
    for k in [k for k in res if k.startswith("classify.grad.")]:
        res["classify.sketch." + k[14:]] = formula.sketch(k[14:], res.pop(k))
    names = "\n".join("%s %s" % (n, "x".join(map(str, p.shape))) for n, p in net.named_parameters())
    return res, {"names": names, "torch_f32.worst_gradient": dev,
                 "parameters": sum(p.numel() for p in net.parameters())}


def golden_resnet18():
    """conv1 is the centre 3x3 of the 7x7 kernel at stride 1, no max-pool, layer1, layer2, mean."""
    full = torchvision.models.resnet18(weights=None)
    net = load_formula(full).double().eval()
    kept = [n for n, _ in list(net.named_parameters()) + list(net.named_buffers())
            if n.startswith(("conv1", "bn1", "layer1", "layer2")) and "tracked" not in n]
    shapes = {n: tuple(t.shape) for n, t in net.state_dict().items()}
    x = torch.from_numpy(formula.values("resnet18.x", (4, 3, 32, 32))).double().requires_grad_()
    mean = torch.tensor([0.485, 0.456, 0.406]).double()[None, :, None, None]
    std = torch.tensor([0.229, 0.224, 0.225]).double()[None, :, None, None]
    h = ((x + 1) / 2 - mean) / std
    h = F.relu(net.bn1(F.conv2d(h, net.conv1.weight[:, :, 2:5, 2:5], padding=1)))
    s1 = net.layer1(h)
    s2 = net.layer2(s1)
    y = s2.mean((2, 3))
    gy = formula.unit("resnet18.gy", tuple(y.shape))
    gx, = torch.autograd.grad((y * torch.from_numpy(gy).double()).sum(), x)
    out = {"x": np.float32(x.detach().numpy()), "y": y, "gy": gy, "gx": gx,
           "sketch.stem": formula.sketch("stem", h.detach()),
           "sketch.layer1": formula.sketch("layer1", s1.detach()),
           "sketch.layer2": formula.sketch("layer2", s2.detach())}
    out = {k: v.detach().numpy() if torch.is_tensor(v) else v for k, v in out.items()}
    names = "\n".join("%s %s" % (n, "x".join(map(str, shapes[n]))) for n in kept)
    return out, {"names": names, "parameters": sum(int(np.prod(shapes[n])) for n in kept
                                                   if "running" not in n)}


class CifarBlock(nn.Module):
    def __init__(self, ci, co, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(ci, co, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(co)
        self.conv2 = nn.Conv2d(co, co, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(co)
        self.grow = ci != co

    def forward(self, x):
        h = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.grow:  # option A: every second pixel, zeros in the new channels on both sides
            q = h.shape[1] // 4
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, q, q))
        return F.relu(h + x)


class CifarNet(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        stage = lambda ci, co, s: nn.Sequential(CifarBlock(ci, co, s), *[
            CifarBlock(co, co, 1) for _ in range(n - 1)])
        self.layer1, self.layer2, self.layer3 = stage(16, 16, 1), stage(16, 32, 2), stage(32, 64, 2)
        self.linear = nn.Linear(64, 10)


def golden_cifar():
    """ResNet-20 in evaluation mode on pixels in [-1, 1]; features, logits, gradient to the image."""
    net = load_formula(CifarNet()).double().eval()
    x = torch.from_numpy(formula.values("cifar.x", (3, 3, 32, 32))).double().requires_grad_()
    mean = torch.tensor([0.485, 0.456, 0.406]).double()[None, :, None, None]
    std = torch.tensor([0.229, 0.224, 0.225]).double()[None, :, None, None]
    h = F.relu(net.bn1(net.conv1(((x + 1) / 2 - mean) / std)))
    out = {}
    for i, layer in enumerate((net.layer1, net.layer2, net.layer3), 1):
        h = layer(h)
        out["sketch.layer%d" % i] = formula.sketch("layer%d" % i, h.detach())
    f = h.mean((2, 3))
    logits = net.linear(f)
    gl = formula.unit("cifar.gy", tuple(f.shape))
    gx, = torch.autograd.grad((f * torch.from_numpy(gl).double()).sum(), x)
    out.update(x=np.float32(x.detach().numpy()), features=f.detach().numpy(),
               logits=logits.detach().numpy(), gy=gl, gx=gx.numpy())
    return out, {}
