# SPDX-License-Identifier: Apache-2.0
"""What PyTorch takes on an NVIDIA GPU for what gpu_check.sh times: milliseconds by the driver's events.

gpu_baseline.py [--output FILE] [--seconds S] [PART..]: parts are ceilings, unet, sampling, field, vit, live, compiled;
compiled takes minutes.
FILE is written anew behind each figure, with date, driver and versions, so that a run that is cut off keeps what it has. Exit 6:
no PyTorch, or none that sees a GPU.
"""
import argparse
import datetime
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(print("gpu_baseline: PyTorch is not installed here, there is nothing to compare with") or 6)

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent / "golden")]
import spec_unet  # noqa: E402
from golden import rehearsal  # noqa: E402

PARTS = ("ceilings", "unet", "sampling", "field", "vit", "live", "compiled")
BATCHES = (1, 8, 128)
TEMPERATURES = (0.02, 0.05, 0.2)


class Results:
    def __init__(self, path, seconds):
        self.path, self.end = path, time.monotonic() + seconds
        driver = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                capture_output=True, text=True, check=False).stdout.strip()
        self.tree = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                     "gpu": driver, "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "rows": {}}

    def late(self):
        return time.monotonic() > self.end

    def put(self, name, row):
        self.tree["rows"][name] = row
        self.path.write_text(json.dumps(self.tree, indent=1) + "\n")
        print("%-40s %s" % (name, row), flush=True)

    def measure(self, name, call):
        if not self.late():
            self.put(name, times_of(call))

    def measure_both(self, name, call):
        """As it is, and as one recorded graph."""
        self.measure(name + " eager", call)
        if not self.late():
            self.measure(name + " graph", graph_of(call))


def times_of(call, warm=5, samples=50, seconds=3.0):
    """p50, p95 and p99 in ms, each run between two events."""
    for _ in range(warm):
        call()
    torch.cuda.synchronize()
    ms, began = [], time.monotonic()
    while len(ms) < samples and (len(ms) < 3 or time.monotonic() - began < seconds):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        call()
        b.record()
        b.synchronize()
        ms.append(a.elapsed_time(b))
    at = sorted(ms)
    return {"p50": statistics.median(at), "p95": at[int(0.95 * (len(at) - 1))], "p99": at[int(0.99 * (len(at) - 1))],
            "n": len(at)}


def graph_of(call):
    """The same as one recorded graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


class Attention(spec_unet.Attn):
    """The same by PyTorch's fused kernel."""

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.gn(x)).reshape(b, 3, self.heads, c // self.heads, h * w).transpose(3, 4).unbind(1)
        o = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(o.transpose(2, 3).reshape(b, c, h, w))


class UNet(spec_unet.SpecUNet):
    """`leeway bench unet`'s network; t is given as its sines and cosines."""

    def embed(self, t, labels):
        return self.t2(F.silu(self.t1(t)))


def unet(batch, dtype, device):
    spec_unet.Attn = Attention
    form = torch.channels_last if dtype == torch.bfloat16 else torch.contiguous_format
    net = UNet(128, (1, 2, 2, 2), 2, (16,), 4, 32, 32).eval().requires_grad_(False)
    x = torch.randn(batch, 3, 32, 32, device=device, dtype=dtype).to(memory_format=form)
    return net.to(device, dtype, memory_format=form), x, torch.randn(batch, 128, device=device, dtype=dtype)


def part_ceilings(r):
    a = torch.randn(2**28, device="cuda")
    b = torch.empty_like(a)
    t = times_of(lambda: b.copy_(a), samples=10)
    r.put("copy", {"gbytes_per_second": 2 * a.nbytes / t["p50"] * 1e-6})
    for dtype in (torch.float32, torch.bfloat16):
        a = torch.randn(8192, 8192, device="cuda", dtype=dtype)
        t = times_of(lambda: a @ a, samples=10)  # noqa: B023
        r.put("product %s" % str(dtype)[6:], {"tflops": 2 * 8192**3 / t["p50"] * 1e-9})


def part_unet(r):
    for dtype in (torch.float32, torch.bfloat16):
        for batch in BATCHES:
            net, x, t = unet(batch, dtype, "cuda")
            r.measure_both("unet %s batch %d" % (str(dtype)[6:], batch), lambda: net(x, t))  # noqa: B023


def part_sampling(r):
    """DDIM of 50 steps, one picture: each step an evaluation and a move, all of them one graph."""
    bar = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64), 0)[torch.arange(980, -1, -20)]
    moves = [(a.sqrt().item(), (1 - a).sqrt().item(), b.sqrt().item(), (1 - b).sqrt().item())
             for a, b in zip(bar, torch.cat([bar[1:], torch.ones(1, dtype=torch.float64)]), strict=True)]
    for dtype in (torch.float32, torch.bfloat16):
        net, noise, t = unet(1, dtype, "cuda")

        def sample(net=net, noise=noise, t=t):
            x = noise
            for keep, add, keep_next, add_next in moves:
                eps = net(x, t)
                x = ((x - add * eps) / keep).clamp(-1, 1) * keep_next + add_next * eps
            return x
        r.measure_both("ddim50 %s batch 1" % str(dtype)[6:], sample)


class Block(torch.nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads, lin, norm = heads, torch.nn.Linear, torch.nn.LayerNorm
        self.norm1, self.qkv, self.out = norm(c, 1e-6), lin(c, 3 * c), lin(c, c)
        self.norm2, self.fc1, self.fc2 = norm(c, 1e-6), lin(c, 4 * c), lin(4 * c, c)
        self.scale1, self.scale2 = (torch.nn.Parameter(torch.ones(c)) for _ in range(2))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        o = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c)
        x = x + self.scale1 * self.out(o)
        return x + self.scale2 * self.fc2(F.gelu(self.fc1(self.norm2(x))))


class ViT(torch.nn.Module):
    """DINOv2 B/14 for 224 x 224."""

    def __init__(self, c=768, depth=12, heads=12):
        super().__init__()
        self.patches = torch.nn.Conv2d(3, c, 14, 14)
        self.token = torch.nn.Parameter(torch.zeros(1, 1, c))
        self.places = torch.nn.Parameter(torch.randn(1, 257, c) * 0.02)
        self.blocks = torch.nn.Sequential(*(Block(c, heads) for _ in range(depth)))
        self.norm = torch.nn.LayerNorm(c, 1e-6)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.norm(self.blocks(torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places))


def vit(dtype):
    return ViT().eval().requires_grad_(False).to("cuda", dtype), torch.randn(128, 3, 224, 224, device="cuda", dtype=dtype)


def part_vit(r):
    for dtype in (torch.float32, torch.bfloat16):
        net, x = vit(dtype)
        r.measure_both("vit b14 %s batch 128" % str(dtype)[6:], lambda: net(x))  # noqa: B023


def live(dtype, width=192, device="cuda"):
    """gpu-stress:192 of docs/live.md and what it is given: a frame, its time, the frame before."""
    with torch.device(device):
        net, x = rehearsal.Stress(width).eval().requires_grad_(False), torch.randn(1, 3, 64, 64)
    x = x.to(dtype).to(memory_format=torch.channels_last)
    return net.to(dtype, memory_format=torch.channels_last), x, torch.full((1,), 40.0, device=device, dtype=dtype)


def part_live(r):
    """In half precision, which the notes ask for and Leeway has not, beside bf16."""
    for dtype in (torch.float16, torch.bfloat16):
        net, x, t = live(dtype)
        r.measure_both("gpu-stress:192 %s batch 1" % str(dtype)[6:], lambda: net(x, t, x))  # noqa: B023


def part_compiled(r):
    for batch in (1, 128):
        if not r.late():
            net, x, t = unet(batch, torch.bfloat16, "cuda")
            call = torch.compile(net, mode="max-autotune", fullgraph=True)
            r.measure("unet bfloat16 batch %d compiled" % batch, lambda: call(x, t))  # noqa: B023
    if not r.late():
        net, x = vit(torch.bfloat16)
        call = torch.compile(net, mode="max-autotune", fullgraph=True)
        r.measure("vit b14 bfloat16 batch 128 compiled", lambda: call(x))
    if not r.late():
        net, x, t = live(torch.bfloat16)
        call = torch.compile(net, mode="max-autotune", fullgraph=True)
        r.measure("gpu-stress:192 bfloat16 batch 1 compiled", lambda: call(x, t, x))


def drift(x, pos, unc, weight):
    """The drift field of slots [rows, slots, numbers] at every temperature, both ways normalised."""
    x, pos, neg = (v.transpose(0, 1) for v in (x, pos, torch.cat([x, unc])))
    dp, dn = torch.cdist(x, pos), torch.cdist(x, neg)
    dn.diagonal(dim1=1, dim2=2).add_(1e6)
    out = []
    for t in TEMPERATURES:
        tau = t * math.sqrt(x.shape[-1])
        logits = torch.cat([-dp / tau, -dn / tau + weight], 2)
        a = (logits.softmax(-1) * logits.softmax(-2)).clamp_min(1e-12).sqrt()
        ap, an = a.split([pos.shape[1], neg.shape[1]], 2)
        out.append((ap * an.sum(2, True)) @ pos - (an * ap.sum(2, True)) @ neg)
    return out


def part_field(r):
    x, pos, unc = (torch.randn(n, 16, 192, device="cuda") for n in (64, 128, 32))
    weight = torch.cat([torch.zeros(64), torch.full((32,), math.log(2.0))]).cuda()
    r.measure_both("field 16 slots", lambda: drift(x, pos, unc, weight))
    x2, pos2, none = (torch.randn(n, 1, 768, device="cuda") for n in (4096, 4096, 0))
    even = torch.zeros(4096, device="cuda")
    r.measure_both("field 4096", lambda: drift(x2, pos2, none, even))


@torch.inference_mode()
def main():
    o = argparse.ArgumentParser(description=__doc__)
    o.add_argument("--output", type=pathlib.Path, default=pathlib.Path("gpu_baseline.json"))
    o.add_argument("--seconds", type=float, default=400.0)
    o.add_argument("parts", nargs="*", metavar="PART")
    o = o.parse_args()
    if set(o.parts) - set(PARTS):
        sys.exit("gpu_baseline: parts are " + ", ".join(PARTS))
    if not torch.cuda.is_available():
        print("gpu_baseline: PyTorch %s sees no GPU" % torch.__version__)
        sys.exit(6)
    torch.backends.cudnn.benchmark = True
    r = Results(o.output, o.seconds)
    for part in o.parts or PARTS:
        if not r.late():
            globals()["part_" + part](r)


if __name__ == "__main__":
    main()
