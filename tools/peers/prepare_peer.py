#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A picture's way to a network (decode, resize and crop, normalise) by Leeway and by Pillow, in turns, one thread each.

    ninja -C build bench_prepare
    python3 tools/peers/prepare_peer.py build/bench_prepare PICTURE.jpg [--rounds 7] [--repeats 40]

Needs Pillow and numpy. Prints medians of processor time, and refuses to compare when the prepared bytes differ. The
picture is first made 500 x 375 (--keep: as it is). Pillow's side decodes from memory, resizes, crops and normalises in
two numpy operations that need no division.
"""
import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import PIL
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from golden import formula  # noqa: E402

EDGE = 224
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
STD = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)
FILTERS = {"bicubic": 3, "bilinear": 2, "lanczos": 1}
GAIN, SHIFT = (1 / (255 * STD)).astype(np.float32), (MEAN / STD).astype(np.float32)


def prepared(data, code):
    im = Image.open(io.BytesIO(data)).convert("RGB")
    w, h = im.size
    size = (EDGE, int(EDGE * h / w)) if w <= h else (int(EDGE * w / h), EDGE)
    im = im.resize(size, code)
    left, top = (size[0] - EDGE) // 2, (size[1] - EDGE) // 2
    return np.asarray(im.crop((left, top, left + EDGE, top + EDGE)))


def pillow_turn(data, code, repeats):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        x = prepared(data, code)
        middle = time.process_time()
        y = x.astype(np.float32)
        y *= GAIN
        y -= SHIFT
        times.append((1e3 * (middle - start), 1e3 * (time.process_time() - middle)))
    return times


def leeway_turn(command, repeats):
    out = subprocess.run(command + [str(repeats)], check=True, capture_output=True, text=True).stdout.split("\n")
    rows = [line for line in out if line and not line.startswith("hash")]
    return [tuple(map(float, row.split())) for row in rows], out[len(rows)].split()[1]


def row(folder, program, path, data, name, o):
    config = os.path.join(folder, name + ".json")
    with open(config, "w") as f:
        json.dump({"image_processor_type": "CLIPImageProcessor", "resample": FILTERS[name]}, f)
    ours, theirs, same = [], [], True
    want = "%016x" % formula.hash64(prepared(data, FILTERS[name]).tobytes())
    for _ in range(o.rounds):
        theirs += pillow_turn(data, FILTERS[name], o.repeats)[1:]
        times, got = leeway_turn([program, config, path], o.repeats)
        ours += times[1:]
        same = same and got == want
    a, b = (statistics.median(sum(t) for t in x) for x in (ours, theirs))
    print("%-9s Leeway %.3f ms (normalising %.3f), Pillow %s %.3f ms (%.3f): %.2f times as fast, %s"
          % (name, a, statistics.median(t[1] for t in ours), PIL.__version__, b,
             statistics.median(t[1] for t in theirs), b / a, "same bytes" if same else "BYTES DIFFER"))
    return same


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("program")
    p.add_argument("picture")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--repeats", type=int, default=40)
    p.add_argument("--keep", action="store_true", help="the picture as it is")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = o.picture
        if not o.keep:
            path = os.path.join(folder, "500x375.jpg")
            Image.open(o.picture).convert("RGB").resize((500, 375), 1).save(path, quality=90)
        with open(path, "rb") as f:
            data = f.read()
        same = [row(folder, o.program, path, data, name, o) for name in FILTERS]
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
