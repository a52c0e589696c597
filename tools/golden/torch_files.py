#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny files of torch.save for tests/unit/test_formats_torch.c and tests/fuzz/corpus/torch.

usage: torch_files.py DIRECTORY      (needs torch)
"""
import collections
import os
import sys
import zipfile

import torch


class Runs:
    """What a hostile file does: pickled, it calls os.getcwd when it is loaded."""

    def __reduce__(self):
        return os.getcwd, ()


class Calls:
    """Pickled, it calls `what` with `args` when it is loaded: hostile files leave a file `pwned`."""

    def __init__(self, what, *args):
        self.call = what, args

    def __reduce__(self):
        return self.call


def compressed(path, to):
    """The same archive, its entries compressed: a few bytes that would become many."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)

    def save(name, value, **how):
        torch.save(value, os.path.join(out, name), **how)

    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    state = collections.OrderedDict()
    state["plain.weight"] = base.clone()
    state["turned.weight"] = base[0].t()  # strides 1, 4
    state["part.weight"] = base[:, 1:3, 1]  # an offset, strides 12, 4
    state["half.weight"] = torch.tensor([1.5, -2.0], dtype=torch.float16)
    state["bf16.weight"] = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    state["double.weight"] = torch.tensor([0.1], dtype=torch.float64)
    state["num_batches_tracked"] = torch.tensor(7)
    state["bytes"] = torch.tensor([1, 255], dtype=torch.uint8)
    state["chars"] = torch.tensor([-1, 2], dtype=torch.int8)
    state["truth"] = torch.tensor([True, False])
    state["empty"] = torch.zeros(0, 3)
    save("state.pth", state)
    layer = torch.nn.Linear(2, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.copy_(torch.tensor([5.0, 6.0]))
    save("module.bin", layer.state_dict())  # has _metadata
    save("wrapped.pth", {"epoch": 3, "best": 0.5, "state_dict": layer.state_dict(), "name": "x"})
    save("parameters.pt", dict(layer.named_parameters()))
    save("protocol4.pt", layer.state_dict(), pickle_protocol=4)
    save("protocol5.pt", layer.state_dict(), pickle_protocol=5)
    save("old.pth", layer.state_dict(), _use_new_zipfile_serialization=False)
    save("runs.pth", {"a": torch.zeros(1), "b": Runs()})
    one = torch.zeros(1)
    save("hostile_system.pth", {"a": one, "b": Calls(os.system, "touch pwned")})
    save("hostile_eval.pth", {"a": one, "b": Calls(eval, "open('pwned', 'w')")})
    save("hostile_chain.pth", {"a": Calls(getattr, Calls(__import__, "os"), "system")})
    save("hostile_key.pth", {Calls(os.system, "touch pwned"): one})
    save("hostile_protocol4.pth", {"a": Calls(os.system, "touch pwned")}, pickle_protocol=4)
    save("bomb.pth", {"a": torch.zeros(1 << 20)})
    compressed(os.path.join(out, "bomb.pth"), os.path.join(out, "hostile_bomb.pth"))
    os.remove(os.path.join(out, "bomb.pth"))
    save("expanded.pth", {"a": torch.zeros(1).expand(1000)})
    save("whole_module.pth", layer)
    save("no_tensors.pth", {"epoch": 3})
    torch.jit.save(torch.jit.script(layer), os.path.join(out, "script.pt"))


if __name__ == "__main__":
    main()
