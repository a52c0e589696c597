# SPDX-License-Identifier: Apache-2.0
"""Pictures of every kind that is read, and the hash of the bytes of Pillow's convert("RGB"): pictures.json.

The files go into the corpora of the fuzz targets. What Pillow cannot write is put together here; a JPEG of YCCK is
TurboJPEG's.
"""
import ctypes
import io
import json
import os
import struct
import zlib

import numpy as np
from PIL import Image

from . import formula

H, W = 13, 11
RGB, RGBA = formula.picture(H, W, 3), formula.picture(H, W, 4)
SMOOTH = np.asarray(Image.fromarray(formula.picture(3, 3, 3)).resize((37, 21), Image.BICUBIC))
SMOOTH_ALPHA = np.dstack([SMOOTH, np.arange(21 * 37, dtype=np.uint8).reshape(21, 37)])


def saved(array, kind, **options):
    out = io.BytesIO()
    (array if isinstance(array, Image.Image) else Image.fromarray(array)).save(out, kind, **options)
    return out.getvalue()


def bmp(width, height, bits, compression, between, lines, colours=0):
    """A file of BITMAPINFOHEADER, masks or palette, and lines, which are padded."""
    lines = b"".join(l + b"\0" * (-len(l) % 4) for l in lines)
    offset = 54 + len(between)
    return (struct.pack("<2sIII", b"BM", offset + len(lines), 0, offset) +
            struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(lines), 0, 0, colours, 0) + between + lines)


def png16(array, colour):
    """16 bits a channel."""
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    rows = b"".join(b"\0" + r.astype(">u2").tobytes() for r in array)
    head = struct.pack(">IIBBBBB", array.shape[1], array.shape[0], 16, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def ycck(array):
    lib = ctypes.CDLL("libturbojpeg.so.0")
    lib.tjInitCompress.restype = ctypes.c_void_p
    out, size = ctypes.c_void_p(), ctypes.c_ulong()
    array = np.ascontiguousarray(array)
    assert lib.tjCompress2(ctypes.c_void_p(lib.tjInitCompress()), array.ctypes.data_as(ctypes.c_void_p),
                           array.shape[1], 0, array.shape[0], 11, ctypes.byref(out), ctypes.byref(size), 0, 90, 0) == 0
    return ctypes.string_at(out, size.value)


def rotated():
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(SMOOTH, "JPEG", exif=exif)


def files():
    noise = formula.picture(H, W, 1)[..., 0]
    wide = formula.picture(H, W, 8).astype(np.uint16).reshape(H, W, 4, 2)
    wide = wide[..., 0] * 256 + wide[..., 1]
    nibbles = [bytes(a << 4 | b for a, b in zip(l[::2], list(l[1::2]) + [0])) for l in noise[::-1] // 16]
    palette = bytes(RGBA.reshape(-1)[:64])
    few = Image.fromarray(RGB).quantize(17)
    yield "bmp/bit1.bmp", saved(Image.fromarray(noise).convert("1"), "BMP")
    yield "bmp/gray.bmp", saved(noise, "BMP")
    yield "bmp/palette.bmp", saved(few, "BMP")
    yield "bmp/palette16.bmp", bmp(W, H, 4, 0, palette, nibbles)
    yield "bmp/rgb.bmp", saved(RGB, "BMP")
    yield "bmp/rgba.bmp", saved(RGBA, "BMP")
    yield "bmp/top_first.bmp", bmp(W, -H, 24, 0, b"", [l.tobytes() for l in RGB])
    yield "bmp/masks.bmp", bmp(W, H, 32, 3, struct.pack("<III", 0xff << 24, 0xff0000, 0xff00),
                               [l.tobytes() for l in RGBA])
    yield "webp/lossless.webp", saved(RGB, "WEBP", lossless=True)
    yield "webp/lossless_alpha.webp", saved(RGBA, "WEBP", lossless=True, exact=True)
    yield "webp/lossy.webp", saved(SMOOTH, "WEBP", quality=70)
    yield "webp/lossy_alpha.webp", saved(SMOOTH_ALPHA, "WEBP", quality=70)
    yield "png/rgba16.png", png16(wide, 6)
    yield "png/la16.png", png16(wide[..., :2], 4)
    yield "jpeg/ycck.jpg", ycck(SMOOTH_ALPHA)
    yield "jpeg/rotated.jpg", rotated()


def broken():
    """What is refused."""
    whole = saved(SMOOTH, "WEBP", quality=70)
    second = Image.fromarray(SMOOTH[::-1].copy())
    yield "webp/truncated.webp", whole[:len(whole) * 2 // 3]
    yield "webp/animated.webp", saved(Image.fromarray(SMOOTH), "WEBP", save_all=True, append_images=[second])
    yield "webp/huge.webp", whole[:26] + struct.pack("<HH", 0x3fff, 0x3fff) + whole[30:]
    jpeg = saved(SMOOTH, "JPEG")
    size = jpeg.index(b"\xff\xc0") + 5
    yield "jpeg/huge.jpg", jpeg[:size] + struct.pack(">HH", 65500, 65500) + jpeg[size + 4:]
    yield "jpeg/long.jpg", jpeg[:size] + struct.pack(">HH", 4000, 37) + jpeg[size + 4:]
    rgb = saved(RGB, "BMP")
    yield "bmp/truncated.bmp", rgb[:-1]
    yield "bmp/huge.bmp", rgb[:18] + struct.pack("<ii", 30000, 30000) + rgb[26:]
    yield "bmp/short_palette.bmp", bmp(W, H, 4, 0, bytes(60), [bytes([0xff] * 6)] * H, 15)
    yield "bmp/rle.bmp", bmp(W, H, 8, 1, bytes(1024), [bytes(12)])


def make(data):
    corpus = os.path.join(os.path.dirname(os.path.dirname(data)), "fuzz", "corpus")
    rows = []
    for name, content in list(files()) + list(broken()):
        os.makedirs(os.path.dirname(os.path.join(corpus, name)), exist_ok=True)
        with open(os.path.join(corpus, name), "wb") as f:
            f.write(content)
    for name, _ in files():
        with Image.open(os.path.join(corpus, name)) as im:
            y = np.ascontiguousarray(im.convert("RGB"))
        rows.append({"file": name, "h": y.shape[0], "w": y.shape[1], "hash": "%016x" % formula.hash64(y.tobytes())})
    with open(os.path.join(data, "pictures.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
