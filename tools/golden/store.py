# SPDX-License-Identifier: Apache-2.0
"""Writing golden files: small safetensors, deterministic bytes."""
import os

import numpy as np
from safetensors.numpy import save_file

LIMIT = 5 * 1000 * 1000


def narrow(a, doubles):
    """Doubles stay doubles up to that many elements; larger arrays are stored as float32."""
    a = np.ascontiguousarray(a)
    if a.dtype == np.int64:
        return a.astype(np.int32)
    if a.dtype == np.float64 and a.size > doubles:
        return a.astype(np.float32)
    return a


def save(directory, name, tensors, meta=None, doubles=4096):
    path = os.path.join(directory, name + ".safetensors")
    meta = {k: str(v) for k, v in (meta or {}).items()}
    save_file({k: narrow(v, doubles) for k, v in tensors.items()}, path, metadata=meta)
    os.chmod(path, 0o644)
    print("%-28s %4d tensors %9d bytes" % (name, len(tensors), os.path.getsize(path)), flush=True)


def check_total(directory):
    total = sum(os.path.getsize(os.path.join(directory, f)) for f in os.listdir(directory))
    print("total %d bytes" % total)
    if total >= LIMIT:
        raise SystemExit("the golden files are over %d bytes" % LIMIT)
