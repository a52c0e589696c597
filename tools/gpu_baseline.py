# SPDX-License-Identifier: Apache-2.0
"""What PyTorch takes on an NVIDIA GPU for what gpu_check.sh times: milliseconds by the driver's events.

gpu_baseline.py [--output FILE] [--seconds S] [PART..]: parts are ceilings, unet, compiled, field; compiled takes minutes. FILE
is written anew behind each figure, with date, driver and versions, so that a run that is cut off keeps what it has. Exit 6:
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

sys.path.insert(0, str(pathlib.Path(__file__).parent / "golden"))
import spec_unet  # noqa: E402

PARTS = ("ceilings", "unet", "compiled", "field")
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
            name = "unet %s batch %d" % (str(dtype)[6:], batch)
            r.measure(name + " eager", lambda: net(x, t))  # noqa: B023
            if not r.late():
                r.measure(name + " graph", graph_of(lambda: net(x, t)))  # noqa: B023


def part_compiled(r):
    for batch in (1, 128):
        if not r.late():
            net, x, t = unet(batch, torch.bfloat16, "cuda")
            call = torch.compile(net, mode="max-autotune", fullgraph=True)
            r.measure("unet bfloat16 batch %d compiled" % batch, lambda: call(x, t))  # noqa: B023


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
    r.measure("field 16 slots eager", lambda: drift(x, pos, unc, weight))
    r.measure("field 16 slots graph", graph_of(lambda: drift(x, pos, unc, weight)))


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
