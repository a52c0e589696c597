# SPDX-License-Identifier: Apache-2.0
"""A peer in a process of its own: peer_worker.py torch|ort|openvino|mnn|ncnn OPTIONS. Started by run.py, which sends
requests as lines of JSON: about, open (a row), measure, check, close."""
import importlib
import json
import sys

import peer_common as peer
from peer_rows import Row


def main():
    out = peer.answers()
    who, options = sys.argv[1], json.loads(sys.argv[2])
    module = importlib.import_module("peer_" + who)
    files = peer.Files(options["work"], options["model"])
    now = {}

    def about():
        return module.about(options)

    def open_row(row):
        now["row"] = module.Variants(Row(**row), files, options)
        return {"variants": list(now["row"].run), "skipped": now["row"].skipped}

    def measure(name, warm, samples):
        return {"ms": peer.measure(now["row"].run[name], warm, samples)}

    def check(name):
        return {"error_f64": now["row"].check(name)}

    def close():
        now.clear()
        return {}

    peer.serve(out, {"about": about, "open": open_row, "measure": measure, "check": check,
                     "close": close})


if __name__ == "__main__":
    main()
