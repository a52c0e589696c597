#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda_mutants.sh [BUILD]: are the tests of the GPU's kernels worth anything? Leaves out one barrier of them after the other
# and runs the op cases on the emulating driver: every mutant must die. Exit 1: one lived, or the kernels as they are fail.
set -u
build=${1:-build}
root=$(pwd)
dir=$(mktemp -d) || exit 4
trap 'rm -rf "$dir"' EXIT
kernels=src/backend/cuda/kernels
mkdir -p "$dir/$kernels" "$dir/gpu"

# make_gpu: a libcuda.so.1 of the kernels that lie in $dir. One that cannot be made is no mutant that died.
make_gpu() {
    for source in "$dir/$kernels"/*.cu; do
        object=$dir/$(basename "$source" .cu)
        printf '#include "%s"\n' "$source" >"$object.c"
        cc -std=gnu17 -O1 -fPIC -ffp-contract=off -I"$dir/src" -I"$root/src" -c "$object.c" -o "$object.o" || broken
    done
    cc -std=gnu17 -O1 -fPIC -shared -I"$dir/src" -I"$root/src" "$root/tests/cuda/emulated_driver.c" "$dir"/*.o -lm -lpthread \
        -o "$dir/gpu/libcuda.so.1" || broken
}
broken() {
    echo 'a mutant cannot be built'
    exit 1
}
passes() {
    LD_LIBRARY_PATH=$dir/gpu LW_OPS_DEVICE=cuda timeout 300 "$build/test_ops" >/dev/null 2>&1
}

cp "$kernels"/* "$dir/$kernels"
make_gpu
if ! passes; then
    echo 'the kernels as they are do not pass'
    exit 1
fi
lived=0
all=0
for f in "$kernels"/*.cu "$kernels"/cuda_port.h; do
    # shellcheck disable=SC2013 # line numbers
    for line in $(grep -n '^ *LW_\(SYNC\|SYNC_WARP\|COPY_WAIT\)();$' "$f" | cut -d: -f1); do
        sed "${line}d" "$f" >"$dir/$f"
        cmp -s "$f" "$dir/$f" && broken
        all=$((all + 1))
        make_gpu
        if passes; then
            lived=$((lived + 1))
            echo "lived: $f:$line"
        fi
    done
    cp "$f" "$dir/$f"
done
echo "$((all - lived)) of $all mutants died"
[ "$lived" -eq 0 ]
