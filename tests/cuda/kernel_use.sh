#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kernel_use.sh FOLDER KERNELS.def NVCC SRC: what ptxas said of every kernel while the program was built (FOLDER/*.use): each of
# them for 8.0 and 9.0, at most 80 registers (three blocks of 256 threads on a multiprocessor), nothing spilled.
# 77 (skipped) without NVCC.
[ -n "$3" ] || { echo 'built without nvcc: there is no machine code to look at'; exit 77; }
kernels=$(sed -n 's/^K([a-z]*, \([a-z0-9_]*\),.*/\1/p' "$2")
# Machine code of sm_90 comes in words of 16 bytes, whose lowest 12 bits say what it is: HMMA multiplies on tensor cores,
# LDGSTS copies to shared memory by itself.
dir=$(mktemp -d) || exit 4
trap 'rm -rf "$dir"' EXIT
"$3" -std=c++17 -O3 -arch=sm_90 -I"$4" -cubin "$4/backend/cuda/kernels/cuda_mma.cu" -o "$dir/mma.cubin" || exit 1
od -An -v -t x2 -w16 "$dir/mma.cubin" | awk '{o = substr($1, 2); mma += o == "23c"; copy += o == "fae"}
    END {printf "%d products on tensor cores, %d copies to shared memory\n", mma, copy; exit !(mma >= 24 && copy >= 3)}' || exit 1
cat "$1"/cuda_*.use | awk -v kernels="$kernels" '
    BEGIN {n = split(kernels, want, "\n"); if (n < 30) {print "only " n " kernels in the list"; bad = 1}}
    /Compiling entry function/ {kernel = $0; sub(/.*function .lw_kernel_/, "", kernel); arch = kernel
        sub(/\047.*/, "", kernel); sub(/.*for .sm_/, "", arch); arch += 0}
    /bytes spill stores/ {
        match($0, /[0-9]+ bytes spill stores/); stores = substr($0, RSTART, RLENGTH) + 0
        if (stores) {printf "%s, sm_%d: %d bytes spilled\n", kernel, arch, stores; bad = 1}}
    /Used [0-9]+ registers/ {match($0, /Used [0-9]+/); used = substr($0, RSTART + 5, RLENGTH - 5) + 0
        seen[kernel, arch] = used; if (used > most) {most = used; who = kernel}
        if (used > 80) {printf "%s, sm_%d: %d registers\n", kernel, arch, used; bad = 1}}
    END {for (i = 1; i <= n; i++) for (a = 80; a <= 90; a += 10) if (!((want[i], a) in seen)) {
            printf "nothing is known of %s for sm_%d\n", want[i], a; bad = 1}
        printf "%d kernels, at most %d registers (%s)\n", n, most, who; exit bad}'
