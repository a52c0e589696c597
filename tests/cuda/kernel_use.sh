#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kernel_use.sh FOLDER KERNELS.def NVCC: what ptxas said of every kernel while the program was built (FOLDER/*.use): each of
# them for 8.0 and 9.0, those of family wgmma for 9.0a alone; at most 80 registers (three blocks of 256 threads on a
# multiprocessor), nothing spilled, no local memory (ew has 32 bytes, for sines and cosines of arguments beyond 1e5), no wgmma
# that is serialized, nor one before which ptxas puts a fence of its own. Kernels whose shared memory is said at their launch may
# take what is left to them by as many blocks as that memory has room for. Products of the drift field take up to 128 (two
# blocks): each thread keeps 64 sums. Attention of bf16 may take 168 (three warps on a quarter of a multiprocessor): its queries,
# scores and sums of 32 queries a warp are 128.
# 77 (skipped) without NVCC.
[ -n "$3" ] || { echo 'built without nvcc: there is no machine code to look at'; exit 77; }
dir=$(mktemp -d) || exit 4
trap 'rm -rf "$dir"' EXIT
# What lies in the program is an image of each kind of GPU, and behind a header that gives its kind (2: machine code), the length
# of the header and of the image, and the GPU. Machine code of sm_90 comes in words of 16 bytes, whose lowest 12 bits say what
# it is: HMMA (23c) multiplies on tensor cores, HGMMA (9f0) by a warpgroup there, LDGSTS (fae) copies to shared memory by itself,
# LDG (981) loads from the GPU's memory; bits 9 to 11 of the second half are 6 for 16 bytes at a time. MEMBAR (992) is a fence, of
# the whole GPU where the second half's lowest bits are a000.
# in_code FAMILY PRODUCTS COPIES WIDE [FENCES]: at least so many products on tensor cores, copies, and loads or copies of 16 bytes;
# at most so many fences of the whole GPU
in_code() {
    blob=$folder/cuda_$1.fatbin at=16
    family=$1 products=$2 copies=$3 wide=$4 fences=${5:-0}
    while :; do
        # shellcheck disable=SC2046
        set -- $(od -An -v -t u4 -w32 -j "$at" -N 32 "$blob")
        [ $# -eq 8 ] || { echo "no machine code of sm_90 in $blob"; exit 1; }
        [ $(($1 % 65536)) -eq 2 ] && [ "$8" -eq 90 ] && break
        at=$((at + $2 + $3))
    done
    od -An -v -t x2 -w16 -j $((at + $2)) -N "$3" "$blob" |
        awk -v family="$family" -v products="$products" -v copies="$copies" -v wide="$wide" -v fences="$fences" '
        {o = substr($1, 2); is_wide = substr($5, 2, 1) ~ /[cd]/
            mma += o == "23c" || o == "9f0"; copy += o == "fae"; load += (o == "981" || o == "fae") && is_wide
            fence += o == "992" && $5 == "a000"}
        END {printf "%s: %d products on tensor cores, %d copies to shared memory, ", family, mma, copy
            printf "%d loads and copies of 16 bytes", load
            print fence ? ", " fence " fences of the whole GPU" : ""
            exit !(mma >= products && copy >= copies && load >= wide && fence <= fences)}' || exit 1
}
folder=$1
# before the last barrier of two kinds of clusters; nvcc before 12.8 has none of shared memory alone
of_clusters=2
case $("$3" --version) in *'release 12.'[0-7],*) of_clusters=4 ;; esac
in_code mma 24 3 3
in_code drift_mma 112 10 10
in_code flash 512 48 48
in_code wgmma 16 16 240 $of_clusters
in_code ffma 0 24 128 2
in_code flash_f32 0 9 9
in_code product 0 6 6
in_code norm 0 0 32
in_code move 0 0 8
in_code ew 0 0 1
in_code pixels 0 0 1
# K(family, name, args, threads) and KS(family, name, args, threads, bytes), bytes as a sum of products of two
sed -n 's/^KS\{0,1\}(\([a-z0-9_]*\), \([a-z0-9_]*\), [a-z_]*, \([A-Za-z0-9_]*\)\(, *\([0-9 *+]*\)\)\{0,1\})$/\1 \2 \3 \5/p' "$2" \
    >"$dir/kernels"
[ "$(grep -c '^KS\{0,1\}(' "$2")" -eq "$(grep -c . "$dir/kernels")" ] || { echo "a line of $2 was not understood"; exit 1; }
cat "$1"/cuda_*.use | awk -v list="$dir/kernels" '
    function sum_of(text,   n, t, k, f, sum) {
        for (n = split(text, t, "+"); n > 0; n--) {
            k = split(t[n], f, "*")
            sum += f[1] * (k > 1 ? f[2] : 1)
        }
        return sum
    }
    BEGIN {
        while ((getline line <list) > 0) {
            n = split(line, f, " ")
            bytes = line; sub(/^[^ ]+ [^ ]+ [^ ]+ ?/, "", bytes)
            arches[f[2]] = f[1] == "wgmma" ? "90a" : "80 90"
            if (n > 3) { # 228 KiB, of which each block takes another
                bytes = sum_of(bytes)
                least = int(65536 / (f[3] * int(233472 / (bytes + 1024))) / 8) * 8
                room[f[2]] = least > 255 ? 255 : least
            }
            all++
        }
        if (all < 30) {print "only " all " kernels in the list"; bad = 1}}
    /instructions are serialized|arrive is injected/ {print; bad = 1}
    /Compiling entry function/ {kernel = $0; sub(/.*function .lw_kernel_/, "", kernel); arch = kernel
        sub(/\047.*/, "", kernel); sub(/.*for .sm_/, "", arch); sub(/\047.*/, "", arch)}
    /bytes spill stores/ {
        match($0, /[0-9]+ bytes spill stores/); stores = substr($0, RSTART, RLENGTH) + 0
        if (stores) {printf "%s, sm_%s: %d bytes spilled\n", kernel, arch, stores; bad = 1}
        if ($1 > (kernel ~ /^ew(_single)?$/ ? 32 : 0)) {
            printf "%s, sm_%s: a stack of %d bytes\n", kernel, arch, $1; bad = 1}}
    /Used [0-9]+ registers/ {match($0, /Used [0-9]+/); used = substr($0, RSTART + 5, RLENGTH - 5) + 0
        limit = kernel ~ /^drift_(distances|distances_bf16|gather)$|^few_columns$/ ? 128 : kernel ~ /^flash_/ ? 168 : 80
        if (kernel in room && kernel !~ /^flash_/) limit = room[kernel]
        seen[kernel, arch] = used; if (limit == 80 && used > most) {most = used; who = kernel}
        if (used > limit) {printf "%s, sm_%s: %d registers of %d\n", kernel, arch, used, limit; bad = 1}}
    END {for (k in arches) {
            n = split(arches[k], a, " ")
            for (i = 1; i <= n; i++) if (!((k, a[i]) in seen)) {printf "nothing is known of %s for sm_%s\n", k, a[i]; bad = 1}}
        for (k in room) if (k !~ /^flash_/) printf "%s may take %d registers\n", k, room[k]
        printf "%d kernels, but for those at most %d registers (%s)\n", all, most, who; exit bad}'
