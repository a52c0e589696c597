# SPDX-License-Identifier: Apache-2.0
"""Values that both sides compute: weights and inputs from (name, index), bit for bit.

    h = FNV-1a 64 of the name's bytes                  (offset 0xcbf29ce484222325, prime 0x100000001b3)
    z = h + (i + 1) * 0x9E3779B97F4A7C15               (all arithmetic modulo 2^64)
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9
    z = (z ^ z >> 27) * 0x94D049BB133111EB
    z =  z ^ z >> 31
    u = (z >> 40) / 2^23 - 1                           exact in float32, in [-1, 1)

i is the row-major index in PyTorch's layout (OIHW for convolutions). A value is
(float32)(offset + scale * u), computed in double. See docs/golden.md for the scales.
"""
import numpy as np

U64 = np.uint64


def fnv1a(name):
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = ((h ^ c) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


MASK = 0xFFFFFFFFFFFFFFFF


def hash64(data):
    """lw_hash64 of bytes: FNV-1a 64 and two rounds of mixing."""
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & MASK
    h = ((h ^ (h >> 33)) * 0xFF51AFD7ED558CCD) & MASK
    h = ((h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53) & MASK
    return h ^ (h >> 33)


def picture(h, w, c):
    """[h,w,c] bytes: the high byte of z, of the name resample.HxWxC hashed by hash64."""
    z = mixed(hash64(b"resample.%dx%dx%d" % (h, w, c)), h * w * c)
    return (z >> U64(56)).astype(np.uint8).reshape(h, w, c)


def mixed(h, n):
    """z of the first n elements, as 64-bit words."""
    with np.errstate(over="ignore"):
        z = U64(h) + (np.arange(n, dtype=U64) + U64(1)) * U64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
        return z ^ (z >> U64(31))


def uniform(name, n):
    """n doubles in [-1, 1), each exactly representable in float32."""
    return (mixed(fnv1a(name), n) >> U64(40)).astype(np.float64) / 8388608.0 - 1.0


def values(name, shape, offset=0.0, scale=1.0):
    """float32 array of the formula (double arithmetic, rounded once)."""
    n = int(np.prod(shape)) if len(shape) else 1
    return (offset + scale * uniform(name, n)).astype(np.float32).reshape(shape)


def scales(name, shape):
    """(offset, scale) of a model parameter, from its name and shape alone."""
    if name == "class_embedding.weight":
        return 0.0, 0.5
    if len(shape) >= 2:
        fan_in = int(np.prod(shape[1:]))
        return 0.0, float(np.sqrt(3.0 / fan_in))  # variance 1 / fan_in
    if name.endswith("running_var"):
        return 1.0, 0.5
    if name.endswith("running_mean"):
        return 0.0, 0.2
    if name.endswith(".weight"):
        return 1.0, 0.25
    return 0.0, 0.1


def parameter(name, shape):
    offset, scale = scales(name, shape)
    return values(name, shape, offset, scale)


def unit(name, shape):
    """Inputs: uniform with variance 1 (scale sqrt(3)); stands in for normal noise."""
    return values(name, shape, 0.0, float(np.sqrt(3.0)))


def integers(name, n, below):
    """n integers in [0, below): floor((u + 1) / 2 * below)."""
    return np.floor((uniform(name, n) + 1.0) * 0.5 * below).astype(np.int64)


SKETCHES = 8


def sketch(name, tensor):
    """[norm, then 8 projections] of a tensor on formula vectors 'sketch:<k>:<name>'.

    For an error e the mean of its squared projections estimates |e|^2 / 3, so
    sqrt(3 * mean((p - p_ref)^2)) / norm_ref estimates the relative L2 error of the whole tensor
    without storing it.
    """
    g = np.asarray(tensor, dtype=np.float64).reshape(-1)
    out = [np.sqrt(np.dot(g, g))]
    for k in range(SKETCHES):
        out.append(np.dot(g, uniform("sketch:%d:%s" % (k, name), g.size)))
    return np.array(out)


def formula_rows():
    """A few values for the test of the C twin of this file."""
    u = uniform("conv_in.weight", 4)
    return {"formula.conv_in.weight.u": u,
            "formula.empty.u": uniform("", 3),
            "formula.param.16x3x3x3": parameter("conv_in.weight", (16, 3, 3, 3)),
            "formula.int1000": integers("t", 6, 1000).astype(np.int32)}
