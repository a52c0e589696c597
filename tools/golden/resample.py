# SPDX-License-Identifier: Apache-2.0
"""The float resizes, channels last: C.y of the picture integers(C.x, 256).

float-aa: PyTorch's antialiased interpolation in double where it has the filter, else Pillow's mode F. torch: PyTorch's
interpolation of float32, because its coordinates are of the tensor's type. tf-inception: the resize inside the
TorchScript Inception of StyleGAN's metrics, in double.
"""
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from . import formula

CHANNELS = 2
SIZES = (((9, 7), (17, 23)), ((37, 50), (14, 21)), ((20, 9), (7, 31)), ((8, 8), (8, 5)))


def picture(case, h, w):
    x = formula.integers(case + ".x", h * w * CHANNELS, 256)
    return x.reshape(h, w, CHANNELS).astype(np.float64)


def nchw(x, kind):
    return torch.from_numpy(x).permute(2, 0, 1)[None].to(kind)


def interpolated(x, size, mode, kind, antialias):
    y = F.interpolate(nchw(x, kind), size=size, mode=mode, align_corners=False, antialias=antialias)
    return y[0].permute(1, 2, 0).numpy()


def mode_f(x, size, name):
    way = getattr(Image.Resampling, name.upper())
    return np.stack([np.asarray(Image.fromarray(x[:, :, c].astype(np.float32)).resize(size[::-1], way))
                     for c in range(CHANNELS)], 2)


def inception(x, size):
    """Half a pixel is taken off the grid, so that output o lies on input o * from / to."""
    t = nchw(x, torch.float64)
    theta = torch.eye(2, 3, dtype=torch.float64)
    theta[0, 2] += theta[0, 0] / x.shape[1] - theta[0, 0] / size[1]
    theta[1, 2] += theta[1, 1] / x.shape[0] - theta[1, 1] / size[0]
    grid = F.affine_grid(theta[None], [1, CHANNELS, *size], align_corners=False)
    y = F.grid_sample(t, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return y[0].permute(1, 2, 0).numpy()


def make():
    out = {}
    for (h, w), size in SIZES:
        def put(form, name, fn):
            case = "%s.%s.%dx%d_%dx%d" % (form, name, h, w, *size)
            out[case] = np.asarray(fn(picture(case, h, w)), dtype=np.float32)
        for name in ("bilinear", "bicubic"):
            put("float-aa", name, lambda x, n=name: interpolated(x, size, n, torch.float64, True))
            put("torch", name, lambda x, n=name: interpolated(x, size, n, torch.float32, False))
        for name in ("box", "hamming", "lanczos"):
            put("float-aa", name, lambda x, n=name: mode_f(x, size, n))
        put("tf-inception", "bilinear", lambda x: inception(x, size))
    return out
