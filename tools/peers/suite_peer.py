# SPDX-License-Identifier: Apache-2.0
"""A suite of `leeway bench` beside callables of PyTorch, eager and compiled, in turns: what mae_peer.py and dit_peer.py
have in common. Each round is one process of Leeway and one turn of every setting of PyTorch."""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

from peer_common import PEER_ENV, clean_env


def as_peers():
    """Begins the program again where its environment is not the peers', which is read at the start of a process."""
    if any(os.environ.get(k) != v for k, v in PEER_ENV.items()):
        os.execve(sys.executable, [sys.executable] + sys.argv, clean_env(PEER_ENV))


def leeway(command, suite, name, threads):
    """Median milliseconds of a case."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "bench.json")
        subprocess.run(shlex.split(command) + ["bench", suite, "--filter", suite + "." + name, "--save", path, "--warm-up", "1",
                                               "--samples", "3", "--no-reference", "--threads", str(threads)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env=clean_env())
        with open(path, encoding="utf-8") as f:
            case = json.load(f)["results"][0]
    return case["median_ms"]


def once(run):
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def settings(make, compile_too):
    """Name -> callable, warm; what cannot be made is said."""
    out = {}
    for name, of in make.items():
        for how in ("", "compiled ") if compile_too else ("",):
            try:
                what = of()
                run = what.compiled() if how else next(what.settings())
                run()
                out[how + name] = run
            except Exception as e:  # pylint: disable=broad-except
                print("  %s%s: %s" % (how, name, str(e).split("\n")[0][:200]), file=sys.stderr)
    return out


def measure(o, suite, name, make):
    ms = {"leeway": []}
    peers = settings(make, not o.no_compile)
    for _ in range(o.rounds):
        ms["leeway"].append(leeway(o.leeway, suite, name, o.threads))
        time.sleep(0.3)
        for peer, run in peers.items():
            run()
            ms.setdefault(peer, []).extend(once(run) for _ in range(3))
            time.sleep(0.3)
    return {k: statistics.median(v) for k, v in ms.items()}, ms


def main(suite, description, rows):
    """rows(small) -> (name, must, stretch, {setting: make}) of each; make() -> an object with settings() and compiled()."""
    p = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    p.add_argument("--leeway", default="build/leeway")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--rows", default="", help="only those whose name has this in it")
    p.add_argument("--small", action="store_true")
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--out")
    o = p.parse_args()
    import torch  # behind as_peers()
    torch.set_num_threads(o.threads)
    torch.set_flush_denormal(True)
    table = {}
    for name, must, stretch, make in rows(o.small):
        if o.rows not in name:
            continue
        ms, samples = measure(o, suite, name, make)
        best = min((v, k) for k, v in ms.items() if k != "leeway")
        table[name] = dict(ms=ms, samples=samples, ratio=best[0] / ms["leeway"], best=best[1], must=must,
                           stretch=stretch)
        print("%s: leeway %.1f ms; %s; %.2f times the best (%s), asked for %.1f / %.1f" % (
            name, ms["leeway"], ", ".join("%s %.1f" % (k, v) for k, v in ms.items() if k != "leeway"),
            best[0] / ms["leeway"], best[1], must, stretch), flush=True)
    if o.out:
        with open(o.out, "w", encoding="utf-8") as f:
            json.dump(dict(torch=torch.__version__, threads=o.threads, rows=table), f, indent=1)

