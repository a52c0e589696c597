# SPDX-License-Identifier: Apache-2.0
"""Published encoders with random weights, in folders as transformers (Inception: as safetensors) writes them: the work
of the encoder rows.

Inputs are what the network's first layer reads: the folders say mean 0.5 and deviation 0.5, with which Leeway's pictures
in [-1, 1] stay what they are. A result is one vector a picture.
"""
import json
import os
import sys
from dataclasses import dataclass

import live_peer

# resize, crop and numbers do not matter here, only that they are known
PREPARATION = {"image_processor_type": "ViTImageProcessor", "resample": 3, "do_rescale": True,
               "image_mean": [0.5] * 3, "image_std": [0.5] * 3}


@dataclass
class Net:
    title: str
    side: int
    make: object         # -> a network of transformers with random weights
    result: str          # name of the vector in its output; "": the network makes it; "picture": live_peer
    flops: float         # multiplications and additions of a picture
    files: bool = True   # weights, references and exports are prepared; else random weights on both sides, no error


def vit(width, hidden, depth, side, patch, more=0):
    """Products of a vision transformer: patches, four and two linear layers, attention."""
    grid = (side // patch) ** 2
    tokens = grid + more
    block = tokens * (8 * width * width + 4 * width * hidden) + 4 * tokens * tokens * width
    return 2.0 * grid * 3 * patch * patch * width + depth * block


def clip():
    import transformers as t
    return t.CLIPVisionModelWithProjection(t.CLIPVisionConfig(
        hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
        image_size=224, patch_size=32, projection_dim=512))


def dinov2():
    import transformers as t
    return t.Dinov2Model(t.Dinov2Config(hidden_size=768, num_hidden_layers=12,
                                        num_attention_heads=12, image_size=518, patch_size=14))


def siglip():
    import transformers as t
    return t.SiglipVisionModel(t.SiglipVisionConfig(
        hidden_size=1152, intermediate_size=4304, num_hidden_layers=27, num_attention_heads=16,
        image_size=384, patch_size=14))


def resnet50():
    import transformers as t
    return t.ResNetModel(t.ResNetConfig())


def mobilenet():
    import transformers as t
    return t.MobileNetV2Model(t.MobileNetV2Config())


def inception():
    """That of Frechet Inception distances, from pictures of its size to 2,048 numbers."""
    import torch
    from torchvision.models.inception import Inception3
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from golden import convnets
    net = Inception3(convnets.FID_CLASSES, aux_logits=False, init_weights=False)
    for p in net.parameters():
        if p.dim() == 4:
            torch.nn.init.kaiming_normal_(p)

    class Pooled(type(net)):
        def forward(self, x):
            return convnets.inception_taps(self, x)["pooled"]
    net.__class__ = Pooled
    return convnets.fid_form(net)


NETS = {
    "clip_b32": Net("CLIP B/32", 224, clip, "image_embeds", vit(768, 3072, 12, 224, 32, 1)),
    "dinov2_b14": Net("DINOv2 B/14", 224, dinov2, "pooler_output", vit(768, 3072, 12, 224, 14, 1)),
    "so400m": Net("SigLIP so400m/14", 384, siglip, "pooler_output",
                  vit(1152, 4304, 27, 384, 14) + 8 * 729 * 1152 ** 2 / 2),  # k, v of the head
    "mobilenet_v2": Net("MobileNetV2", 224, mobilenet, "pooler_output", 0.599e9),
    "inception_fid": Net("Inception-v3 (FID)", 299, inception, "", 10.93e9),  # border taps not counted
    "taef2_256": Net("taef2 there and back", 256, live_peer.RoundTrip, "picture", 66.1e9),
    "sd_vae_256": Net("SD-VAE there and back", 256, live_peer.KlTrip, "picture", 891.5e9),
    "live_128": Net("live U-Net in taef2's latents, frame to frame", 128, live_peer.Live, "picture", 16.8e9),
    "gpu_stress192": Net("gpu-stress:192, one evaluation", 64, live_peer.Stress, "picture", 142.6e9, False),
    "resnet50": Net("ResNet-50", 224, resnet50, "pooler_output", 8.178e9),
}


def write(name, folder):
    """The folder, seeded."""
    import torch
    torch.manual_seed(0)
    if NETS[name].result == "picture":
        live_peer.write(name, folder)
        return
    side, net = NETS[name].side, NETS[name].make().eval()
    if not NETS[name].result:
        from safetensors.torch import save_file
        os.makedirs(folder)
        save_file(net.state_dict(), os.path.join(folder, "model.safetensors"))
        return
    net.save_pretrained(folder)
    with open(os.path.join(folder, "preprocessor_config.json"), "w") as f:
        json.dump(dict(PREPARATION, size={"height": side, "width": side}), f)


def write_calibration(name, folder):
    """Pictures whose ranges both sides of an int8 row measure: noise, as what it is checked on is."""
    import numpy as np
    from PIL import Image
    rng, side = np.random.default_rng(3), NETS[name].side
    os.makedirs(folder, exist_ok=True)
    for i in range(16):
        pixels = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(os.path.join(folder, "%04d.png" % i))


def load(name, folder):
    """Pictures [N,3,H,W] to vectors [N,C], or to pictures."""
    import torch
    if NETS[name].result == "picture":
        return live_peer.load(name, folder)
    if not NETS[name].result:
        from safetensors.torch import load_file
        net = NETS[name].make()
        net.load_state_dict(load_file(os.path.join(folder, "model.safetensors")))
        return net.eval()
    import transformers as t

    class Vector(torch.nn.Module):
        def __init__(self):
            super().__init__()
            kind = getattr(t, json.load(open(os.path.join(folder, "config.json")))
                           ["architectures"][0])
            self.net = kind.from_pretrained(folder).eval()

        def forward(self, x):
            return self.net(pixel_values=x)[NETS[name].result].flatten(1)

    return Vector().eval()
