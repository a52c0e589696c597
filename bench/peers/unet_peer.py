#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch eager against leeway on the shared U-Net (38,307,203 parameters), in one run.

Forward at batch 1 and 8, and one full training step (noise, forward, backward, clip, fused AdamW,
EMA) at batch 16, all f32. PyTorch is timed in NCHW and in channels_last and the better of the two
counts. With --leeway CMD the command is run once per round, between the PyTorch rounds, so that
both see the same machine; CMD must print JSON on stdout (format: see parse_leeway).

    python3 bench/peers/unet_peer.py --leeway "build/leeway bench unet --threads 2 --json"
    python3 bench/peers/unet_peer.py --json out.json          # PyTorch alone

Needs torch and diffusers. Absolute milliseconds do not carry to another machine: quote ratios.
"""
import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time

CASES = ("forward_b1", "forward_b8", "train_b16")
LAYOUTS = ("nchw", "channels_last")
# Each of these has been seen to make the peer 2x to 10x slower (or to change what is measured).
HARMFUL_ENV = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_PROC_BIND", "ATEN_CPU_CAPABILITY",
               "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_DEBUG_CPU_TYPE",
               "MKL_ENABLE_INSTRUCTIONS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Keep freed blocks in the process: without this a large part of a training step is page faults.
MALLOC_ENV = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184",
              "MALLOC_TOP_PAD_": "268435456"}


def clean_environment(tuned_malloc):
    """Re-execute once without the harmful variables (libraries read them when they load)."""
    if os.environ.get("LW_PEER_CLEAN") == "1":
        return
    env = {k: v for k, v in os.environ.items() if k not in HARMFUL_ENV}
    env["LW_PEER_CLEAN"] = "1"
    if tuned_malloc:
        env.update(MALLOC_ENV)
    os.execvpe(sys.executable, [sys.executable] + sys.argv, env)


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--leeway", metavar="CMD", help="command that prints leeway's timings as JSON")
    p.add_argument("--map", action="append", default=[], metavar="CASE=NAME",
                   help="name of a case in leeway's JSON, if it differs (repeatable)")
    p.add_argument("--cases", default=",".join(CASES))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5, help="alternations")
    p.add_argument("--seconds", type=float, default=3.0, help="time per case, layout and round")
    p.add_argument("--dropout", type=float, default=0.1, help="training step only")
    p.add_argument("--tuned-malloc", action="store_true",
                   help="let glibc keep freed memory (a favour to PyTorch)")
    p.add_argument("--json", metavar="FILE", help="write everything measured")
    return p.parse_args()


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


def measure(run, seconds):
    """Milliseconds of each call; one warm-up call that is not counted, at least 3 that are."""
    run()
    out, start = [], time.perf_counter()
    while len(out) < 3 or time.perf_counter() - start < seconds:
        t0 = time.perf_counter()
        run()
        out.append((time.perf_counter() - t0) * 1e3)
    return out


def parse_leeway(text, names):
    """Case -> list of milliseconds. Accepted: {"results"|"cases": [{"name": N, "ms": [..]} or
    {"name": N, "median_ms": x}]}, a bare list of those, or {"N": x, "N_ms": x}."""
    data = json.loads(text[min(i for i in (text.find("{"), text.find("[")) if i >= 0):])
    rows = data if isinstance(data, list) else data.get("results") or data.get("cases")
    out = {}
    for case, name in names.items():
        if rows:
            row = next((r for r in rows if r.get("name") == name), None)
            if row is None:
                continue
            ms = row.get("samples_ms") or row.get("ms") or row.get("median_ms")
        else:
            ms = data.get(name, data.get(name + "_ms"))
        if ms is not None:
            out[case] = list(ms) if isinstance(ms, list) else [float(ms)]
    if not out:
        sys.exit("no known case in leeway's JSON; names there must be %s (see --map)"
                 % ", ".join(names.values()))
    return out


def run_leeway(cmd, names):
    time.sleep(0.5)  # let PyTorch's spinning workers go to sleep
    env = {k: v for k, v in os.environ.items()
           if k not in MALLOC_ENV and k != "LW_PEER_CLEAN"}
    r = subprocess.run(shlex.split(cmd), stdout=subprocess.PIPE, text=True, env=env, check=True)
    return parse_leeway(r.stdout, names)


def summary(v):
    s = sorted(v)
    return {"median_ms": statistics.median(s), "min_ms": s[0], "max_ms": s[-1],
            "p10_ms": s[len(s) // 10], "p90_ms": s[(9 * len(s)) // 10], "n": len(s)}


def cpu_model():
    with open("/proc/cpuinfo") as f:
        return next((l.split(":", 1)[1].strip() for l in f if l.startswith("model name")), "?")


def report(res, lw_ver):
    print("%-12s %-24s %10s %10s %10s %5s" % ("case", "who", "median ms", "p10", "p90", "n"))
    ratios = {}
    for case, who in res.items():
        for name, v in who.items():
            s = summary(v)
            print("%-12s %-24s %10.2f %10.2f %10.2f %5d"
                  % (case, name, s["median_ms"], s["p10_ms"], s["p90_ms"], s["n"]))
        if "leeway" in who:
            best = min((w for w in who if w != "leeway"),
                       key=lambda w: statistics.median(who[w]))
            ratios[case] = (statistics.median(who[best]) / statistics.median(who["leeway"]), best)
    for case, (r, best) in ratios.items():
        print("%s: leeway is %.2f times as fast as PyTorch (%s)" % (case, r, best))
    return {c: {"ratio": r, "against": b} for c, (r, b) in ratios.items()}


def main():
    o = options()
    clean_environment(o.tuned_malloc)
    import torch
    import diffusers
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    cases = o.cases.split(",")
    names = {c: c for c in cases}
    names.update(m.split("=", 1) for m in o.map)
    info = {"torch": torch.__version__, "diffusers": diffusers.__version__,
            "python": platform.python_version(), "threads": torch.get_num_threads(),
            "aten": torch.backends.cpu.get_cpu_capability(), "cpu": cpu_model(),
            "dropout": o.dropout, "tuned_malloc": o.tuned_malloc,
            "load_before": os.getloadavg()}
    print("  ".join("%s=%s" % kv for kv in info.items()), flush=True)
    runs = {}
    for lay in LAYOUTS:
        fmt = torch.channels_last if lay == "channels_last" else torch.contiguous_format
        net = build_unet(o.dropout).to(memory_format=fmt)
        for c in cases:
            kind, b = c.split("_b")
            make = forward_case if kind == "forward" else train_case
            runs[c, lay] = make(torch, net, int(b), fmt)
    res = {c: {"torch " + lay: [] for lay in LAYOUTS} for c in cases}
    for rnd in range(o.rounds):
        for (c, lay), run in runs.items():
            res[c]["torch " + lay] += measure(run, o.seconds)
        if o.leeway:
            for c, ms in run_leeway(o.leeway, names).items():
                res[c].setdefault("leeway", []).extend(ms)
        print("round %d of %d, load %.2f" % (rnd + 1, o.rounds, os.getloadavg()[0]),
              file=sys.stderr, flush=True)
    info["load_after"] = os.getloadavg()
    ratios = report(res, info)
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"info": info, "ratios": ratios, "command": o.leeway,
                       "summary": {c: {w: summary(v) for w, v in r.items()}
                                   for c, r in res.items()}, "samples_ms": res}, f, indent=1)


if __name__ == "__main__":
    main()
