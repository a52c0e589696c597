# SPDX-License-Identifier: Apache-2.0
"""From nothing to one picture in a file: startup_peer.py diffusers|compiled|ort MODEL OUT THREADS.
One evaluation. Imports no more than its way needs, and ends without tearing anything down."""
import os
import sys


def with_diffusers(model, threads):
    import torch
    torch.set_num_threads(threads)
    import unet_peer
    net = unet_peer.load(model)
    with torch.inference_mode():
        return net(torch.randn(1, 3, 32, 32), 0, return_dict=False)[0][0].numpy()


def compiled(path, threads):
    import torch
    torch.set_num_threads(threads)
    with torch.inference_mode():
        x = torch.randn(1, 3, 32, 32).contiguous(memory_format=torch.channels_last)
        return torch._inductor.aoti_load_package(path)(x, torch.zeros(1, dtype=torch.long)
                                                       )[0].numpy()


def with_ort(path, threads):
    import numpy as np
    import peer_ort
    x = np.random.default_rng().standard_normal((1, 3, 32, 32), dtype=np.float32)
    return peer_ort.session(path, threads, 1).run(None, {"x": x, "t": np.zeros(1, np.int64)})[0][0]


def main():
    way, model, out, threads = sys.argv[1:]
    y = {"diffusers": with_diffusers, "compiled": compiled, "ort": with_ort}[way](
        model, int(threads))
    from PIL import Image
    pixels = ((y.transpose(1, 2, 0) + 1) * 127.5).round().clip(0, 255).astype("uint8")
    Image.fromarray(pixels).save(out)
    os._exit(0)


if __name__ == "__main__":
    main()
