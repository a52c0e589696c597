#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2's published weights on the thousand ImageNet crops: classes, and PyTorch's answers.

    LW_TEST_DATA=/data python3 tools/imagenet_check.py build/leeway

Every picture must get the class that PyTorch gives it (top1.tsv); of the labels 85.9 % are first and
97.1 % among the first five. Needs numpy. tests/jobs/test_encode.c takes a sample of it.
"""
import csv
import os
import subprocess
import sys
import tempfile

import numpy as np


def logits(leeway, data, split, out):
    """A folder's every tenth picture is held out."""
    weights = os.path.join(data, "encoders/mobilenet_v2/mobilenet_v2_1.0_224.safetensors")
    crops = os.path.join(data, "images/imagenet1k_sample_224")
    subprocess.run([leeway, "encode", weights, "--data", "folder:" + crops, "--split", split,
                    "--layer", "logits", "--output", out, "--quiet"], check=True,
                   stdout=sys.stderr)
    return np.load(out)


def main():
    leeway, data = sys.argv[1], os.environ["LW_TEST_DATA"]
    with open(os.path.join(data, "images/imagenet1k_sample_224/top1.tsv"), encoding="utf-8") as f:
        said = np.array([int(r["mobilenet_v2"]) for r in csv.DictReader(f, delimiter="\t")])
    all_rows = np.arange(len(said))
    have = np.zeros((len(said), 1001), np.float32)
    with tempfile.TemporaryDirectory() as scratch:
        for split, rows in (("train", all_rows % 10 != 9), ("held-out", all_rows % 10 == 9)):
            have[rows] = logits(leeway, data, split, os.path.join(scratch, "logits.npy"))
    first = have.argmax(1) - 1  # class 0 is the background
    five = np.argsort(-have, axis=1)[:, :5] - 1
    top1, top5 = (first == all_rows).sum(), (five == all_rows[:, None]).any(1).sum()
    same = (first == said).sum()
    print("%d pictures: %d as PyTorch, %d right, %d among the first five"
          % (len(said), same, top1, top5))
    return 0 if (same, top1, top5) == (1000, 859, 971) else 1


if __name__ == "__main__":
    sys.exit(main())
