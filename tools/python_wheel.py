#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a wheel and a source archive of python/leeway, with nothing but Python's own library.

    python3 tools/python_wheel.py build/libleeway.so.0 dist      # wheel with that library inside
    python3 tools/python_wheel.py --no-library dist              # pure: finds the system's library

The wheel is for this machine's architecture and a glibc of at least this machine's. The same inputs
give the same bytes.
"""
import argparse
import base64
import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WHEN = (1980, 1, 1, 0, 0, 0)


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
        return re.search(r"project\(leeway[^)]*VERSION ([0-9.]+)", f.read()).group(1)


def read(*path):
    with open(os.path.join(ROOT, *path), "rb") as f:
        return f.read()


def metadata(v):
    return ("Metadata-Version: 2.1\nName: leeway\nVersion: %s\n"
            "Summary: Image generators on the CPU: sampling, forward passes, drift fields\n"
            "License: Apache-2.0\nRequires-Python: >=3.8\nRequires-Dist: numpy>=1.20\n"
            "Description-Content-Type: text/markdown\n\n" % v).encode() + read("python", "README.md")


def platform_tag():
    libc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")
    return "linux_%s" % os.uname().machine, "glibc %s.%s" % tuple(libc[:2])


def wheel(v, library, out):
    tag = "py3-none-%s" % (platform_tag()[0] if library else "any")
    info = "leeway-%s.dist-info/" % v
    files = {"leeway/__init__.py": read("python", "leeway", "__init__.py"),
             info + "METADATA": metadata(v),
             info + "LICENSE": read("LICENSE"),
             info + "WHEEL": ("Wheel-Version: 1.0\nGenerator: tools/python_wheel.py\n"
                              "Root-Is-Purelib: %s\nTag: %s\n"
                              % ("false" if library else "true", tag)).encode()}
    if library:
        with open(library, "rb") as f:
            files["leeway/libleeway.so.0"] = f.read()
    rows = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append("%s,sha256=%s,%d" % (name, digest, len(content)))
    files[info + "RECORD"] = ("\n".join(rows + [info + "RECORD,,"]) + "\n").encode()
    path = os.path.join(out, "leeway-%s-%s.whl" % (v, tag))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            z.writestr(entry, content)
    return path


def source(v, out):
    """What pip builds a pure wheel from: setuptools' way, described in pyproject.toml."""
    top = "leeway-%s/" % v
    project = ('[build-system]\nrequires = ["setuptools>=61"]\n'
               'build-backend = "setuptools.build_meta"\n\n'
               '[project]\nname = "leeway"\nversion = "%s"\nreadme = "README.md"\n'
               'requires-python = ">=3.8"\ndependencies = ["numpy>=1.20"]\n\n'
               '[tool.setuptools]\npackages = ["leeway"]\n' % v).encode()
    files = {"PKG-INFO": metadata(v), "pyproject.toml": project, "LICENSE": read("LICENSE"),
             "README.md": read("python", "README.md"),
             "leeway/__init__.py": read("python", "leeway", "__init__.py")}
    path = os.path.join(out, "leeway-%s.tar.gz" % v)
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, content in files.items():
            entry = tarfile.TarInfo(top + name)
            entry.size, entry.mode = len(content), 0o644
            t.addfile(entry, io.BytesIO(content))
    return path


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("library", nargs="?", help="libleeway.so.0 to put into the wheel")
    p.add_argument("output", help="directory for both files")
    p.add_argument("--no-library", action="store_true", help="a wheel that finds the system's")
    o = p.parse_args()
    if bool(o.library) == o.no_library:
        p.error("name a libleeway.so.0, or say --no-library")
    if o.library and not os.path.isfile(o.library):
        p.error("%s: no such file" % o.library)
    os.makedirs(o.output, exist_ok=True)
    print(wheel(version(), o.library, o.output))
    print(source(version(), o.output))
    if o.library:
        print("needs at least %s, and the libraries that `ldd %s` names" % (platform_tag()[1], o.library),
              file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
