# SPDX-License-Identifier: Apache-2.0
"""A run in which nobody may use more than a level of instructions: what each is told, and what its own log says."""
import os
import subprocess
import sys
import tempfile
import zipfile

# oneMKL has no such switch on all processors; that of Intel's is set, and its log says no level elsewhere.
# PyTorch's compiler would ask C++ for all that the machine has.
LIMITS = {"avx2": {"LW_ISA": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2",
                   "MKL_ENABLE_INSTRUCTIONS": "AVX2", "TORCHINDUCTOR_CPP_MARCH": "haswell"}}
LIMITED = ("torch",)  # the others choose their kernels by the processor alone, or their log does not say
PROBE = """
import torch
print("aten,cpu,isa:" + torch.backends.cpu.get_cpu_capability())
last = dict(memory_format=torch.channels_last)
torch.nn.functional.conv2d(torch.ones(8, 128, 32, 32).to(**last), torch.ones(128, 128, 3, 3).to(**last))
"""


def said_by_torch(env):
    """The level that PyTorch and its oneDNN say they use: ("AVX2", "Intel AVX2")."""
    out = subprocess.run([sys.executable, "-c", PROBE], env=dict(env, ONEDNN_VERBOSE="1"),
                         capture_output=True, text=True).stdout
    levels = [line.split("isa:")[1].strip() for line in out.splitlines() if ",cpu,isa:" in line]
    return tuple(sorted(levels))


def check(isa, env):
    """Ends the program unless PyTorch's own log says that it keeps to the level; returns what it says."""
    said = said_by_torch(env)
    if len(said) != 2 or any(isa.upper() not in s or "512" in s for s in said):
        sys.exit("--isa %s: PyTorch and oneDNN say they use %s" % (isa, ", ".join(said) or "nothing"))
    return said


def limited():
    return bool(os.environ.get("ATEN_CPU_CAPABILITY"))


def refuse_object(path):
    """Raises where a shared object has instructions of AVX-512 after all."""
    code = subprocess.Popen(["objdump", "-d", path], stdout=subprocess.PIPE, text=True)
    wide = any("%zmm" in line for line in code.stdout)
    code.kill()
    code.wait()
    if wide:
        raise RuntimeError("not comparable: compiled with instructions of AVX-512")


def refuse_wide(path):
    """The same of what was compiled: a package of shared objects, or a folder with some anywhere in it."""
    if not limited():
        return
    with tempfile.TemporaryDirectory() as unpacked:
        if not os.path.isdir(path):
            with zipfile.ZipFile(path) as package:
                package.extractall(unpacked)
            path = unpacked
        for folder, _, names in os.walk(path):
            for name in names:
                if name.endswith(".so"):
                    refuse_object(os.path.join(folder, name))
