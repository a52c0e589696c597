#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the hashes of tests/kernels/{resample,blur}_pillow.def still hold for the installed Pillow?

Needs Pillow and numpy; the build and the tests need neither.

    python3 tools/resample_check.py                                       the committed rows
    python3 tools/resample_check.py --random 300 build/test_resample_picture build/test_blur   and random ones, by our programs
    python3 tools/resample_check.py --write                               makes the file anew

Pictures are bytes of a formula (golden/formula.py), so that no file is needed. Before version 13 Pillow resized lines first and
columns after them; since then it turns that around for some pictures (rows_first). Each order is also made with two
calls that resize one side each, so that any version of Pillow proves the rows of both.
"""
import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import PIL
from PIL import Image, ImageFilter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden import formula  # noqa: E402

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(HERE, "tests", "kernels", "resample_pillow.def")
BLUR_FILE = os.path.join(HERE, "tests", "kernels", "blur_pillow.def")
FILTERS = ("box", "bilinear", "hamming", "bicubic", "lanczos")
MODES = {1: "L", 3: "RGB", 4: "CMYK"}  # 4 channels, none of them alpha: Pillow would premultiply by it

# (h, w) to (h, w), 3 channels: six sizes by four filters
PAIRS = (((32, 32), (224, 224)), ((375, 500), (224, 299)), ((768, 1024), (192, 256)),
         ((224, 224), (32, 32)), ((517, 333), (384, 384)), ((480, 640), (299, 299)))
PAIR_FILTERS = ("bicubic", "bilinear", "lanczos", "box")
# and the corners: other channels, hamming, one pass only, single pixels, very tall, very wide
EXTRA = ((375, 500, 1, 224, 299, "bicubic"), (61, 47, 4, 33, 90, "bicubic"), (100, 80, 3, 41, 33, "hamming"),
         (90, 60, 3, 45, 60, "lanczos"), (90, 60, 3, 90, 30, "lanczos"), (1, 1, 3, 7, 5, "bicubic"),
         (9, 11, 3, 1, 1, "bicubic"), (1, 300, 1, 3, 17, "lanczos"), (90, 1, 1, 17, 3, "bilinear"),
         (64, 64, 3, 64, 64, "box"))
# Gaussian blur: radius, h, w, channels
BLURS = ((5, 224, 224, 3), (15, 224, 224, 3), (5, 32, 32, 3), (15, 32, 32, 3), (5, 375, 500, 3), (15, 500, 333, 3),
         (0.5, 61, 47, 4), (1, 1, 1, 3), (2, 1, 300, 1), (3.7, 90, 1, 1), (80, 20, 33, 3), (12.25, 70, 64, 4))


def resize(a, h, w, name):
    """Image.resize of each mode; two channels are two pictures."""
    c = a.shape[2]
    if c == 2:
        return np.concatenate([resize(a[:, :, i:i + 1], h, w, name) for i in range(2)], 2)
    image = Image.frombytes(MODES[c], (a.shape[1], a.shape[0]), a.tobytes())
    out = image.resize((w, h), getattr(Image.Resampling, name.upper()))
    return np.frombuffer(out.tobytes(), np.uint8).reshape(h, w, c)


def rows_first(form, h, w, to_h, to_w):
    return not (form == "pillow-13" and h - to_h > max(0, 2 * (w - to_w)))


def by_sides(a, form, h, w, name):
    if rows_first(form, a.shape[0], a.shape[1], h, w):
        return resize(resize(a, a.shape[0], w, name), h, w, name)
    return resize(resize(a, h, a.shape[1], name), h, w, name)


def installed_form(h, w):
    version = tuple(int(x) for x in PIL.__version__.split(".")[:2])
    if version >= (13, 0):
        return "pillow-13"
    return None if version >= (12, 2) and h > 100 * w else "pillow"  # these turn very tall pictures around


def row(form, name, h, w, c, to_h, to_w):
    """One line: shapes and the hash; proves it twice where the installed version is of this form."""
    a = formula.picture(h, w, c)
    y = by_sides(a, form, to_h, to_w, name)
    if installed_form(h, w) == form and not np.array_equal(y, resize(a, to_h, to_w, name)):
        raise SystemExit("Pillow %s resizes %dx%d to %dx%d (%s) unlike '%s'"
                         % (PIL.__version__, w, h, to_w, to_h, name, form))
    return form, name, h, w, c, to_h, to_w, formula.hash64(y.tobytes())


def blur_row(radius, h, w, c):
    """The same of GaussianBlur."""
    image = Image.frombytes(MODES[c], (w, h), formula.picture(h, w, c).tobytes())
    return radius, h, w, c, formula.hash64(image.filter(ImageFilter.GaussianBlur(radius)).tobytes())


def all_rows():
    shapes = [(h, w, 3, a, b, f) for (h, w), (a, b) in PAIRS for f in PAIR_FILTERS] + list(EXTRA)
    for h, w, c, a, b, f in shapes:
        yield row("pillow", f, h, w, c, a, b)
        if not rows_first("pillow-13", h, w, a, b):
            yield row("pillow-13", f, h, w, c, a, b)


def blur_lines():
    yield "/* SPDX-License-Identifier: Apache-2.0 */"
    yield "/* By tools/resample_check.py: B(radius, h, w, channels, hash of the result) */"
    for r in BLURS:
        yield "B(%s, %d, %d, %d, 0x%016x)" % (("%gf" % r[0] if r[0] % 1 else r[0],) + blur_row(*r)[1:])


def lines():
    yield "/* SPDX-License-Identifier: Apache-2.0 */"
    yield "/* By tools/resample_check.py: P(form, filter, h, w, channels, to h, to w, hash of the result) */"
    for form, name, h, w, c, a, b, x in all_rows():
        yield "P(%s, %s, %d, %d, %d, %d, %d, 0x%016x)" % (form.upper().replace("-", "_"), name.upper(),
                                                         h, w, c, a, b, x)


def random_rows(n, seed):
    draw = random.Random(seed)
    for _ in range(n):
        most = draw.choice((4, 20, 70, 300))
        h, w, a, b = (draw.randint(1, most) for _ in range(4))
        a, b = draw.choice(((a, b), (a, b), (a, b), (h, b), (a, w)))
        form = draw.choice(("pillow", "pillow-13"))
        yield row(form, draw.choice(FILTERS), h, w, draw.choice((1, 2, 3, 4)), a, b)


def random_blurs(n, seed):
    draw = random.Random(seed)
    for _ in range(n):
        most = draw.choice((4, 20, 70, 300))
        radius = draw.choice((draw.randint(1, 40), draw.randint(1, 160) / 8))
        yield blur_row(radius, draw.randint(1, most), draw.randint(1, most), draw.choice((1, 3, 4)))


def run_random(program, n, seed):
    blur = os.path.basename(program) == "test_blur"
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        for r in random_blurs(n, seed) if blur else random_rows(n, seed):
            f.write(("%g %d %d %d %x\n" if blur else "%s %s %d %d %d %d %d %x\n") % r)
        f.flush()
        command = [program, "--filter", "blur.pillow" if blur else "resample_picture.pillow"]
        name = "LW_BLUR_ROWS" if blur else "LW_RESAMPLE_ROWS"
        return subprocess.run(command, env=dict(os.environ, **{name: f.name}), check=False).returncode


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("program", nargs="*", help="test_resample_picture, test_blur: for --random")
    p.add_argument("--random", type=int, default=0, metavar="N", help="so many more pairs, at random")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--write", action="store_true")
    o = p.parse_args()
    wrong = 0
    for path, made in ((FILE, lines()), (BLUR_FILE, blur_lines())):
        made = list(made)
        if o.write:
            with open(path, "w") as f:
                f.write("\n".join(made) + "\n")
        with open(path) as f:
            committed = f.read().splitlines()
        differ = sum(a != b for a, b in itertools.zip_longest(committed, made))
        wrong += differ
        print("Pillow %s: %s: %d rows, %d differ" % (PIL.__version__, os.path.basename(path), len(made) - 2, differ))
    failed = o.random and any([run_random(p, o.random, o.seed) for p in o.program])
    sys.exit(1 if wrong or failed else 0)


if __name__ == "__main__":
    main()
