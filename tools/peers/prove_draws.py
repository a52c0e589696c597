# SPDX-License-Identifier: Apache-2.0
"""The random numbers that Leeway's walks draw, so that both sides draw the same choices:
Philox4x32-10 with a counter of (0, choice, id of the walk) and a key from the seed."""
import numpy as np

from prove_net import MASK, fnv1a64, splitmix64

MODES = {"head": 0, "tail": 1, "both": 2}


def philox(counter, key):
    """The four words of each row: counter [4, N] and key [2] of uint64 that hold 32 bits."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c2 = (p1 >> np.uint64(32)) ^ c1 ^ k0, (p0 >> np.uint64(32)) ^ c3 ^ k1
        c1, c3 = p1 & low, p0 & low
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return c0, c1, c2, c3


def name_hash(name):
    """Leeway's hash of a stream's name."""
    h = fnv1a64(name)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = ((h ^ (h >> 33)) * factor) & MASK
    return h ^ (h >> 33)


def stream_key(seed, stream):
    mixed = int(splitmix64(np.array([seed ^ name_hash(stream)], np.uint64))[0])
    return np.uint64(mixed & 0xFFFFFFFF), np.uint64(mixed >> 32)


def normals(stream, step, row, count, seed=0):
    """[count] normal numbers: what a network's stream draws for a row at a step."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    same = np.ones_like(blocks)
    counter = (blocks, same * np.uint64(step), same * np.uint64(row & 0xFFFFFFFF),
               same * np.uint64(row >> 32))
    words = np.stack(philox(counter, stream_key(seed, stream)), -1).reshape(-1, 2)
    u = ((words[:, 0] >> np.uint64(1)) | np.uint64(1)).astype(np.float64) * 2.0 ** -31
    angle = words[:, 1].astype(np.float64) * (2.0 * np.pi * 2.0 ** -32)
    pairs = np.sqrt(-2.0 * np.log(u))[:, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    return pairs.reshape(-1)[:count]


def uniforms(ids, steps, seed=0):
    """[N, steps] in [0, 1): what walk ids[n] draws at each choice."""
    key = stream_key(seed, "walks")
    rows = np.repeat(np.array(ids, np.uint64), steps)
    step = np.tile(np.arange(steps, dtype=np.uint64), len(ids))
    counter = (np.zeros_like(rows), step, rows & np.uint64(0xFFFFFFFF), rows >> np.uint64(32))
    words = philox(counter, key)[0] >> np.uint64(8)
    return (words.astype(np.float64) * 2.0 ** -24).reshape(len(ids), steps)


def walk_id(mode, query, candidate):
    """query from 0; candidate 0 is the query itself."""
    return (query * 3 + MODES[mode] << 32) + candidate
