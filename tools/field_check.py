#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `leeway field` with an independent numpy program in double, on random inputs.

    python3 tools/field_check.py build/leeway [--seed 1] [--tolerance 3e-4]

Covers one group, groups, slots, unconditional negatives with weights, with and without
normalisation over the generated samples, and both parity variants. Needs numpy only.
Exit code 0 when every relative L2 error is within the tolerance, else 1.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden import drift  # noqa: E402

THREE = (0.2, 0.05, 0.02)
#        name                        G   N    Nu  Np   T  C    over_x variant         taus
CASES = [("one group", 0, 48, 0, 80, 0, 32, True, "official", THREE),
         ("groups", 5, 16, 0, 64, 0, 48, True, "official", THREE),
         ("uncond weights", 4, 24, 9, 33, 0, 17, True, "official", THREE),
         ("uncond, rows only", 4, 24, 9, 33, 0, 17, False, "official", THREE),
         ("groups, rows only", 3, 20, 0, 30, 0, 64, False, "official", THREE),
         ("slots", 2, 12, 5, 20, 9, 24, True, "official", THREE),
         ("one temperature", 3, 20, 0, 20, 0, 40, True, "official", (0.05,)),
         ("few channels", 2, 64, 7, 64, 0, 3, True, "official", THREE),
         ("wide", 1, 32, 0, 40, 0, 768, True, "official", THREE),
         ("large group", 1, 300, 0, 500, 0, 64, True, "official", THREE),
         ("plain", 1, 40, 0, 40, 0, 8, True, "plain", (1.0,)),
         ("tau times dim", 1, 40, 0, 40, 0, 64, True, "tau-times-dim", THREE)]


def arguments(directory, x, p, u, w, over_x, variant, taus):
    """Writes the npy files and returns the options of `leeway field`."""
    def put(name, a):
        path = os.path.join(directory, name + ".npy")
        np.save(path, a)
        return path
    args = ["--gen", put("gen", x), "--pos", put("pos", p),
            "--temperatures", ",".join(map(str, taus)), "--drift-variant", variant,
            "--output", os.path.join(directory, "F.npy"), "--json"]
    if u is not None:
        args += ["--uncond", put("uncond", u), "--uncond-weight", put("weight", w)]
    return args + ([] if over_x else ["--disable-normalize-over-x"])


def run_case(command, case, rng):
    """Relative errors of F and of each reported number."""
    _, g, n, nu, npos, slots, c, over_x, variant, taus = case
    x, p, u, w = drift.random_case(rng, g, n, nu, npos, slots, c)
    return compare(command, x, p, u, w, over_x, variant, taus)


def compare(command, x, p, u, w, over_x, variant, taus):
    ref = drift.field(x, p, u, w, taus, over_x, variant)
    with tempfile.TemporaryDirectory() as d:
        args = arguments(d, x, p, u, w, over_x, variant, taus)
        r = subprocess.run(command + ["field"] + args, stdout=subprocess.PIPE, text=True)
        if r.returncode:
            sys.exit("leeway field ended with code %d" % r.returncode)
        f = np.load(os.path.join(d, "F.npy")).astype(np.float64)
    said = json.loads(r.stdout)
    assert f.shape == ref["F"].shape, (f.shape, ref["F"].shape)
    err = {"F": np.linalg.norm(f - ref["F"]) / np.linalg.norm(ref["F"])}
    for key, want in (("S", ref["S"]), ("sigma", ref["sigma"]), ("loss", ref["loss"]),
                      ("lambda", ref["lam"]), ("raw_mean_v2", ref["raw"])):
        if key in ("S", "sigma") and variant != "official":
            continue
        err[key] = np.max(np.abs(np.asarray(said[key], dtype=np.float64) / want - 1))
    return err


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("leeway", help="the command, e.g. build/leeway")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--tolerance", type=float, default=3e-4)
    o = p.parse_args()
    drift.check_example()
    command, worst = shlex.split(o.leeway), 0.0
    x, pos, u, w = (np.float32(a) for a in drift.example())
    tests = [("worked example", lambda r: compare(command, x, pos, u, w, True, "official", THREE))]
    tests += [(c[0], lambda r, c=c: run_case(command, c, r)) for c in CASES]
    for i, (name, fn) in enumerate(tests):
        err = fn(np.random.default_rng([o.seed, i]))
        worst = max(worst, *err.values())
        print("%-20s %s" % (name, "  ".join("%s %.1e" % kv for kv in err.items())), flush=True)
    print("worst relative error %.1e, tolerance %.1e: %s"
          % (worst, o.tolerance, "ok" if worst <= o.tolerance else "FAILED"))
    return 0 if worst <= o.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
