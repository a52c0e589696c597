#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# format.sh [--check]: clang-format 14 over the C files of the tree.
set -eu
cd -- "$(dirname -- "$0")/.."
mode=-i
[ "${1:-}" != --check ] || mode='--dry-run -Werror'
# shellcheck disable=SC2086
git ls-files 'src/*.[ch]' 'src/*.inc' 'include/*.h' 'tests/*.[ch]' 'bench/*.[ch]' 'examples/*.c' |
    xargs clang-format $mode
