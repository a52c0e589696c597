#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the table of tests/unit/test_eval_series.c: numbers of a series of frames as eval_series.h defines them, by
numpy."""
import numpy

W, H, N = 7, 5, 14


def frame(t):
    i = numpy.arange(H * W * 3).reshape(H, W, 3)
    return (i * 37 + t * 13 + i * t % 11 * 5) * (20 - t) // 20 % 256


def main():
    v = [frame(t) / 127.5 - 1 for t in range(N)]
    for t, x in enumerate(v):
        past = [(x * y).sum() / numpy.sqrt((x * x).sum() * (y * y).sum()) for y in v[max(t - 5, 0):t]]
        row = [x.var(),
               numpy.stack(v[max(t - 9, 0):t + 1]).var(0).mean(),
               numpy.linalg.norm(x.mean((0, 1)) - v[0].mean((0, 1))),
               max(past) if past else 0,
               (numpy.abs(numpy.diff(x, axis=1)).mean() + numpy.abs(numpy.diff(x, axis=0)).mean()) / 2,
               x.std((0, 1)).mean()]
        print("    {{" + ", ".join(f"{n:.12g}" for n in row) + "}},")
    first, last = (numpy.mean([x.var() for x in part]) for part in (v[:2], v[-2:]))
    print(f"ratio {last / first:.12g}, deviation {numpy.sqrt(last):.12g}")


main()
