#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kernel_use.sh FOLDER KERNELS.def NVCC SRC: what ptxas said of every kernel while the program was built (FOLDER/*.use): each of
# them for 8.0 and 9.0, at most 80 registers (three blocks of 256 threads on a multiprocessor), nothing spilled. Products of the
# drift field take up to 128 (two blocks): each thread keeps 64 sums. Attention of bf16 may take 168 (three warps on a quarter
# of a multiprocessor): its queries, scores and sums of 32 queries a warp are 128.
# 77 (skipped) without NVCC.
[ -n "$3" ] || { echo 'built without nvcc: there is no machine code to look at'; exit 77; }
kernels=$(sed -n 's/^K([a-z_]*, \([a-z0-9_]*\),.*/\1/p' "$2")
# Machine code of sm_90 comes in words of 16 bytes, whose lowest 12 bits say what it is: HMMA multiplies on tensor cores,
# LDGSTS copies to shared memory by itself.
dir=$(mktemp -d) || exit 4
trap 'rm -rf "$dir"' EXIT
# tensor_cores FILE.cu PRODUCTS COPIES: at least so many of them
tensor_cores() {
    "$nvcc" -std=c++17 -O3 -arch=sm_90 -I"$src" -cubin "$src/backend/cuda/kernels/$1" -o "$dir/code.cubin" || exit 1
    od -An -v -t x2 -w16 "$dir/code.cubin" | awk -v file="$1" -v products="$2" -v copies="$3" '
        {o = substr($1, 2); mma += o == "23c"; copy += o == "fae"}
        END {printf "%s: %d products on tensor cores, %d copies to shared memory\n", file, mma, copy
            exit !(mma >= products && copy >= copies)}' || exit 1
}
nvcc=$3 src=$4
tensor_cores cuda_mma.cu 24 3
tensor_cores cuda_drift_mma.cu 112 10
tensor_cores cuda_attention.cu 512 48
cat "$1"/cuda_*.use | awk -v kernels="$kernels" '
    BEGIN {n = split(kernels, want, "\n"); if (n < 30) {print "only " n " kernels in the list"; bad = 1}}
    /Compiling entry function/ {kernel = $0; sub(/.*function .lw_kernel_/, "", kernel); arch = kernel
        sub(/\047.*/, "", kernel); sub(/.*for .sm_/, "", arch); arch += 0}
    /bytes spill stores/ {
        match($0, /[0-9]+ bytes spill stores/); stores = substr($0, RSTART, RLENGTH) + 0
        if (stores) {printf "%s, sm_%d: %d bytes spilled\n", kernel, arch, stores; bad = 1}}
    /Used [0-9]+ registers/ {match($0, /Used [0-9]+/); used = substr($0, RSTART + 5, RLENGTH - 5) + 0
        limit = kernel ~ /^drift_(distances|distances_bf16|gather)$/ ? 128 : kernel ~ /^flash_/ ? 168 : 80
        seen[kernel, arch] = used; if (limit == 80 && used > most) {most = used; who = kernel}
        if (used > limit) {printf "%s, sm_%d: %d registers\n", kernel, arch, used; bad = 1}}
    END {for (i = 1; i <= n; i++) for (a = 80; a <= 90; a += 10) if (!((want[i], a) in seen)) {
            printf "nothing is known of %s for sm_%d\n", want[i], a; bad = 1}
        printf "%d kernels, at most %d registers (%s)\n", n, most, who; exit bad}'
