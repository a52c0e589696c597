# SPDX-License-Identifier: Apache-2.0
"""What the peer comparisons share: a clean environment, timing, leeway's JSON, the report."""
import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time

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


def others_busy(seconds=1.0):
    """Share of all cores that is busy while this process sleeps: above a few per cent, the
    two-thread figures below are worthless (a barrier waits for the slower core)."""
    def ticks():
        with open("/proc/stat") as f:
            v = [int(x) for x in f.readline().split()[1:9]]
        return sum(v), v[3] + v[4]
    total, idle = ticks()
    time.sleep(seconds)
    total2, idle2 = ticks()
    return 1 - (idle2 - idle) / max(total2 - total, 1)


def cpu_model():
    with open("/proc/cpuinfo") as f:
        return next((l.split(":", 1)[1].strip() for l in f if l.startswith("model name")), "?")


def report(res):
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


def options(description, cases):
    p = argparse.ArgumentParser(description=description.splitlines()[0])
    p.add_argument("--leeway", metavar="CMD", help="command that prints leeway's timings as JSON")
    p.add_argument("--map", action="append", default=[], metavar="CASE=NAME",
                   help="name of a case in leeway's JSON, if it differs (repeatable)")
    p.add_argument("--cases", default=",".join(cases))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5, help="alternations")
    p.add_argument("--seconds", type=float, default=3.0, help="time per case, variant and round")
    p.add_argument("--tuned-malloc", action="store_true",
                   help="let glibc keep freed memory (a favour to PyTorch)")
    p.add_argument("--json", metavar="FILE", help="write everything measured")
    return p


def environment(o, **more):
    import torch
    info = {"torch": torch.__version__, "python": platform.python_version(),
            "threads": torch.get_num_threads(), "aten": torch.backends.cpu.get_cpu_capability(),
            "cpu": cpu_model(), "tuned_malloc": o.tuned_malloc, "load_before": os.getloadavg()}
    info.update(more)
    print("  ".join("%s=%s" % kv for kv in info.items()), flush=True)
    return info


def alternate(o, runs, info):
    """runs: (case, who) -> callable. Times all of them o.rounds times, leeway in between."""
    names = {c: c for c in dict.fromkeys(c for c, _ in runs)}
    names.update(m.split("=", 1) for m in o.map)
    res = {c: {} for c in names}
    info["others_busy"] = []
    for rnd in range(o.rounds):
        info["others_busy"].append(others_busy())
        for (c, who), run in runs.items():
            res[c].setdefault(who, []).extend(measure(run, o.seconds))
        if o.leeway:
            for c, ms in run_leeway(o.leeway, names).items():
                res[c].setdefault("leeway", []).extend(ms)
        print("round %d of %d, others used %.0f %% of the cores before it"
              % (rnd + 1, o.rounds, 100 * info["others_busy"][-1]),
              file=sys.stderr, flush=True)
    if max(info["others_busy"]) > 0.1:
        print("WARNING: other processes were running; the figures are not evidence")
    ratios = report(res)
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"info": info, "ratios": ratios, "command": o.leeway,
                       "summary": {c: {w: summary(v) for w, v in r.items()}
                                   for c, r in res.items()}, "samples_ms": res}, f, indent=1)
