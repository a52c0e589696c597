# SPDX-License-Identifier: Apache-2.0
"""Families of networks as tiny configurations of the libraries that publish them.

Everything a test needs is in one file: the names and shapes of the tensors and the shape of the input (their values
are the formula's), the config.json, every tap (whole up to 512 numbers, else a sketch) and sketches of the gradient of
sum(tap * gy) with respect to every picture. Apart, because it needs transformers, timm and diffusers.
"""
import json

import numpy as np
import torch

from . import formula

GRAY = (0.1307,), (0.3081,)
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALF = (0.5,) * 3, (0.5,) * 3


def fill(net, named=str):
    """Formula weights of the names in the file, double, evaluation mode."""
    for n, p in list(net.named_parameters()) + list(net.named_buffers()):
        if p.is_floating_point():
            p.data.copy_(torch.from_numpy(formula.parameter(named(n), tuple(p.shape))))
    return net.double().eval()


def names(net, named=str):
    return "\n".join("%s %s" % (named(n), "x".join(map(str, t.shape)))
                     for n, t in net.state_dict().items() if t.dim() > 0)


def normalised(x, numbers=IMAGENET):
    mean, std = (torch.tensor(v).double()[None, :, None, None] for v in numbers)
    return ((x + 1) / 2 - mean) / std


def answers(taps, shape, gradient):
    """taps: x -> {name: tensor}; what a file holds of them, and what it says of x."""
    x = torch.from_numpy(formula.values("x", shape)).double().requires_grad_()
    out = taps(x)
    gy = torch.from_numpy(formula.unit("gy", tuple(out[gradient].shape))).double()
    gx, = torch.autograd.grad((out[gradient] * gy).sum(), x)
    res = {"gx.%d" % i: formula.sketch("gx", g) for i, g in enumerate(gx)}
    for k, v in out.items():
        v = v.detach()
        res.update({"tap." + k: v.numpy()} if v.numel() <= 512
                   else {"sketch." + k: formula.sketch(k, v)})
    return res, {"x": "x".join(map(str, shape)), "gradient": gradient}


def case(net, taps, shape, gradient, named=str, **meta):
    res, about = answers(taps, shape, gradient)
    return res, dict(meta, names=names(net, named), **about)


def resnet_timm(in_chans=3, numbers=IMAGENET, **meta):
    """torchvision's and timm's names; narrow bottlenecks behind the stem of 64."""
    from timm.models.resnet import Bottleneck, ResNet  # pylint: disable=import-outside-toplevel
    net = fill(ResNet(Bottleneck, [1, 2, 1, 1], num_classes=7, channels=(4, 4, 6, 6), in_chans=in_chans))

    def taps(x):
        h = net.maxpool(net.act1(net.bn1(net.conv1(normalised(x, numbers)))))
        out = {"s0": h}
        for i, layer in enumerate((net.layer1, net.layer2, net.layer3, net.layer4), 1):
            out["s%d" % i] = h = layer(h)
        out["pooled"] = net.global_pool(h)
        out["logits"] = net.fc(out["pooled"])
        return out
    return case(net, taps, (2, in_chans, 41, 50), "pooled", **meta)


def resnet_gray():
    """timm's in_chans, with the mean and deviation of one channel."""
    config = {"architecture": "resnet50", "num_classes": 7, "global_pool": "avg",
              "model_args": {"in_chans": 1, "layers": [1, 2, 1, 1], "channels": [4, 4, 6, 6]},
              "pretrained_cfg": {"input_size": [1, 41, 50], "interpolation": "bilinear",
                                 "crop_pct": 1.0, "mean": GRAY[0], "std": GRAY[1]}}
    return resnet_timm(1, GRAY, config=json.dumps(config, sort_keys=True))


def resnet_hf(kind, head, **more):
    from transformers import ResNetConfig, ResNetForImageClassification, ResNetModel  # pylint: disable=import-outside-toplevel
    config = ResNetConfig(embedding_size=8, hidden_sizes=[12, 16, 24], depths=[1, 2, 1],
                          layer_type=kind, num_labels=5, **more)
    net = fill((ResNetForImageClassification if head else ResNetModel)(config))
    body = net.resnet if head else net

    def taps(x):
        res = body(normalised(x), output_hidden_states=True)
        out = {"s%d" % i: h for i, h in enumerate(res.hidden_states)}
        out["pooled"] = res.pooler_output.flatten(1)
        if head:
            out["logits"] = net.classifier(res.pooler_output)
        return out
    text = json.loads(config.to_json_string(use_diff=False))
    return case(net, taps, (2, 3, 41, 50), "pooled",
                config=json.dumps(text, sort_keys=True))


def kl_encoder(net, x):
    out, h = {}, net.encoder.conv_in(x)
    for i, block in enumerate(net.encoder.down_blocks):
        for res in block.resnets:
            h = res(h, None)
        out["s%d" % i] = h
        for down in block.downsamplers or []:
            h = down(h)
    dist = net.encode(x).latent_dist
    c = net.config
    return dict(out, mean=dist.mean, logvar=dist.logvar,
                latent=(dist.mean - (c.shift_factor or 0)) * c.scaling_factor)


def kl_decoder(net, z):
    c = net.config
    return {"y": net.decode(z / c.scaling_factor + (c.shift_factor or 0)).sample}


def older(name):
    """What diffusers called the middle's attention before version 0.15."""
    for new, old in (("to_q", "query"), ("to_k", "key"), ("to_v", "value"), ("to_out.0", "proj_attn")):
        name = name.replace("attentions.0.%s." % new, "attentions.0.%s." % old)
    return name


def kl(decode, named=str, **more):
    from diffusers import AutoencoderKL  # pylint: disable=import-outside-toplevel
    net = AutoencoderKL(block_out_channels=(8, 12), down_block_types=("DownEncoderBlock2D",) * 2,
                        up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=4,
                        **dict({"latent_channels": 3, "layers_per_block": 1}, **more))
    fill(net, named)
    config = json.dumps(dict(net.config, _class_name="AutoencoderKL"), sort_keys=True)
    if decode:
        return case(net, lambda z: kl_decoder(net, z), (2, net.config.latent_channels, 5, 7), "y",
                    named, config=config, word="decoder:")
    return case(net, lambda x: kl_encoder(net, x), (2, 3, 14, 10), "latent", named, config=config)


class TinyBlock(torch.nn.Module):
    """Of taef2: with a pool, which adds what a grouped norm of its own sees."""

    def __init__(self, n, pool):
        super().__init__()
        nn = torch.nn
        three = lambda: nn.Conv2d(n, n, 3, padding=1)
        self.conv = nn.Sequential(three(), nn.ReLU(), three(), nn.ReLU(), three())
        self.pool = nn.Sequential(nn.Conv2d(n, 4 * n, 1, bias=False), nn.GroupNorm(4, 4 * n), nn.ReLU(),
                                  nn.Conv2d(4 * n, n, 1, bias=False)) if pool else None

    def forward(self, x):
        if self.pool is not None:
            x = x + self.pool(x)
        return torch.relu(self.conv(x) + x)


class Bound(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x / 3) * 3


def tiny_plain(decode):
    """The authors' names: places in one sequence."""
    nn, n = torch.nn, 6
    block, up = lambda pool: TinyBlock(n, pool), nn.Upsample(scale_factor=2)
    three = lambda i, o, **more: nn.Conv2d(i, o, 3, padding=1, **more)
    if decode:
        net = fill(nn.Sequential(Bound(), three(5, n), nn.ReLU(), block(True), block(True), up,
                                 three(n, n, bias=False), block(False), three(n, 3)))
        return case(net, lambda z: {"y": net(z) * 2 - 1}, (2, 5, 4, 6), "y")
    net = fill(nn.Sequential(three(3, n), block(False), three(n, n, stride=2, bias=False), block(True),
                             block(True), three(n, 5)))

    def taps(x):
        x = (x + 1) / 2
        return {"s0": net[:2](x), "s1": net[:5](x), "latent": net(x)}
    return case(net, taps, (2, 3, 8, 12), "latent")


def tiny(decode):
    """diffusers' names, both halves in one file."""
    from diffusers import AutoencoderTiny  # pylint: disable=import-outside-toplevel
    net = fill(AutoencoderTiny(encoder_block_out_channels=(6, 6), decoder_block_out_channels=(6, 6),
                               num_encoder_blocks=(1, 2), num_decoder_blocks=(2, 1),
                               latent_channels=5, scaling_factor=0.5, shift_factor=0.25))
    config = json.dumps(dict(net.config, _class_name="AutoencoderTiny"), sort_keys=True)
    if decode:
        return case(net, lambda z: {"y": net.decode(z / 0.5 + 0.25).sample}, (2, 5, 4, 6), "y",
                    config=config, word="decoder:")
    return case(net, lambda x: {"latent": (net.encode(x).latents - 0.25) * 0.5}, (2, 3, 8, 12),
                "latent", config=config)


def mobilenet_torchvision():
    """torchvision's names, padding on both sides; a quarter of the width."""
    from torchvision.models import MobileNetV2  # pylint: disable=import-outside-toplevel
    net = fill(MobileNetV2(num_classes=7, width_mult=0.25))

    def taps(x):
        ends, h, out = (1, 3, 6, 10, 13, 16, 17), normalised(x), {}
        for i, layer in enumerate(net.features):
            h = layer(h)
            if i == 0 or i in ends:
                out["s%d" % (ends.index(i) + 1 if i else 0)] = h
        out["pooled"] = h.mean((2, 3))
        out["logits"] = net.classifier(out["pooled"])
        return out
    return case(net, taps, (2, 3, 41, 50), "pooled")


def inverted_taps(net, numbers):
    """timm's networks of inverted residuals."""
    def taps(x):
        h = net.bn1(net.conv_stem(normalised(x, numbers)))
        out = {"s0": h}
        for i, stage in enumerate(net.blocks, 1):
            out["s%d" % i] = h = stage(h)
        out["pooled"] = net.global_pool(net.bn2(net.conv_head(h)))
        out["logits"] = net.classifier(out["pooled"])
        return out
    return taps


def mobilenet_timm():
    from timm.models.efficientnet import mobilenetv2_035  # pylint: disable=import-outside-toplevel
    net = fill(mobilenetv2_035(num_classes=7))
    return case(net, inverted_taps(net, IMAGENET), (2, 3, 33, 40), "pooled")


def efficientnet_lite_timm(architecture, shape, numbers):
    """timm's folder: TensorFlow's padding and epsilon by the architecture's name."""
    import timm  # pylint: disable=import-outside-toplevel
    net = fill(timm.create_model(architecture, num_classes=7))
    config = {"architecture": architecture, "num_classes": 7, "num_features": net.num_features,
              "pretrained_cfg": {"mean": numbers[0], "std": numbers[1]}}
    return case(net, inverted_taps(net, numbers), shape, "pooled", config=json.dumps(config, sort_keys=True))


def flat_names(net):
    """timm's names -> those of efficientnet_lite_pytorch, where blocks count through."""
    stems = {"conv_stem": "_conv_stem", "bn1": "_bn0", "conv_head": "_conv_head", "bn2": "_bn1", "classifier": "_fc"}
    blocks = [(s, i) for s, stage in enumerate(net.blocks) for i in range(len(stage))]

    def named(name):
        words = name.split(".")
        if words[0] != "blocks":
            return ".".join([stems[words[0]]] + words[1:])
        n = blocks.index((int(words[1]), int(words[2])))
        part = words[3]
        if n == 0:  # depthwise, then conv_pw
            part = {"conv_pw": "conv_pwl", "bn1": "bn2", "bn2": "bn3"}.get(part, part)
        flat = {"conv_pw": "_expand_conv", "conv_dw": "_depthwise_conv", "conv_pwl": "_project_conv",
                "bn1": "_bn0", "bn2": "_bn1", "bn3": "_bn2"}[part]
        return ".".join(["_blocks.%d" % n, flat] + words[4:])
    return named


def efficientnet_lite_flat():
    import timm  # pylint: disable=import-outside-toplevel
    net = timm.create_model("tf_efficientnet_lite2", num_classes=7)
    named = flat_names(net)
    fill(net, named)
    return case(net, inverted_taps(net, HALF), (1, 3, 42, 51), "pooled", named)


def mobilenet_hf(head, multiplier=0.35, **more):
    """TensorFlow's padding, unless config.json says otherwise; numbers in [-1,1]."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification, MobileNetV2Model  # pylint: disable=import-outside-toplevel
    config = MobileNetV2Config(depth_multiplier=multiplier, num_labels=5, **more)
    net = fill((MobileNetV2ForImageClassification if head else MobileNetV2Model)(config))
    body = net.mobilenet_v2 if head else net

    def taps(x):
        res = body(x, output_hidden_states=True)
        out = {"s%d" % i: res.hidden_states[k]
               for i, k in zip(range(2, 8), (1, 4, 8, 11, 14, 15))}
        out["pooled"] = res.pooler_output
        if head:
            out["logits"] = net.classifier(res.pooler_output)
        return out
    text = json.loads(config.to_json_string(use_diff=False))
    return case(net, taps, (2, 3, 42, 51), "pooled", config=json.dumps(text, sort_keys=True))


CASES = {
    "taesd_encoder": lambda: tiny_plain(False),
    "taesd_decoder": lambda: tiny_plain(True),
    "tiny_encoder": lambda: tiny(False),
    "tiny_decoder": lambda: tiny(True),
    "kl_encoder": lambda: kl(False),
    "kl_decoder": lambda: kl(True),
    "kl_older_encoder": lambda: kl(False, older, scaling_factor=0.5, shift_factor=0.25),
    "kl_plain_encoder": lambda: kl(False, use_quant_conv=False, mid_block_add_attention=False,
                                   latent_channels=4),
    "kl_plain_decoder": lambda: kl(True, use_post_quant_conv=False, mid_block_add_attention=False,
                                   layers_per_block=2, scaling_factor=0.5, shift_factor=0.25),
    "resnet_timm": resnet_timm,
    "resnet_gray": resnet_gray,
    "resnet_bottleneck": lambda: resnet_hf("bottleneck", True, downsample_in_bottleneck=True),
    "resnet_basic": lambda: resnet_hf("basic", False, downsample_in_first_stage=True),
    "mobilenet_torchvision": mobilenet_torchvision,
    "mobilenet_timm": mobilenet_timm,
    "efficientnet_lite_timm": lambda: efficientnet_lite_timm("tf_efficientnet_lite0", (2, 3, 42, 51), HALF),
    "efficientnet_lite_both": lambda: efficientnet_lite_timm("efficientnet_lite1", (1, 3, 33, 40), IMAGENET),
    "efficientnet_lite_flat": efficientnet_lite_flat,
    "mobilenet_hf": lambda: mobilenet_hf(True),
    "mobilenet_hf_body": lambda: mobilenet_hf(False, tf_padding=False, layer_norm_eps=1e-4),
    # a stem as wide as the first block
    "mobilenet_hf_narrow": lambda: mobilenet_hf(False, 0.25),
}
