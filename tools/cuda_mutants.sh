#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda_mutants.sh [BUILD] [barriers|packed|drift|attention|tiles|texts]: are the tests of the GPU's kernels worth anything? Leaves out one barrier of
# them after the other, and breaks in one way after the other how weights of products of bf16 are packed, in kernels and on the
# host, and how the drift field, attention on tensor cores and tiles of products are computed; runs the op cases and the tests of the device and of its drift field on the
# emulating driver: every mutant must die. Exit 1: one lived, or what there is fails as it is. BUILD was made with Ninja and
# has leeway-check and test_device. texts: only that what each would replace is still there; takes no time.
set -u
build=$(cd -- "${1:-build}" && pwd) || exit 4
only=${2:-}
case $only in
'' | barriers | packed | drift | attention | tiles | texts) ;;
*)
    echo "cuda_mutants.sh: there is no part '$only': name barriers, packed, drift, attention, tiles or texts"
    exit 2
    ;;
esac
texts=$([ "$only" = texts ] && echo 1)
root=$(pwd)
dir=$(mktemp -d) || exit 4
trap 'rm -rf "$dir"' EXIT
kernels=src/backend/cuda/kernels
mkdir -p "$dir/$kernels" "$dir/gpu" "$dir/host"
tests=$build
lived=0
all=0

broken() {
    echo "a mutant cannot be built: $1"
    exit 1
}
# make_gpu SOURCE..: a libcuda.so.1 of these kernels anew and the others as they were. One that cannot be made is no mutant
# that died.
make_gpu() {
    [ -z "$texts" ] || return 0
    for source in "$@"; do
        object=$dir/$(basename "$source" .cu)
        printf '#include "%s"\n' "$source" >"$object.c"
        cc -std=gnu17 -O1 -fPIC -ffp-contract=off -I"$dir/src" -I"$root/src" -c "$object.c" -o "$object.o" || broken "$source"
    done
    cc -std=gnu17 -O1 -fPIC -shared -I"$dir/src" -I"$root/src" -I"$root/tests" "$root"/tests/cuda/emulated_*.c "$dir"/*.o -lm -lpthread \
        -o "$dir/gpu/libcuda.so.1" || broken libcuda.so.1
}
# remake FILE: what this file is part of
remake() {
    case $1 in
    */cuda_halo.h) make_gpu "$dir/$kernels/cuda_wgmma.cu" ;;
    */cuda_tiles.h) make_gpu "$dir/$kernels/cuda_wgmma.cu" "$dir/$kernels/cuda_ffma.cu" ;;
    *.h) make_gpu "$dir/$kernels"/*.cu ;;
    *) make_gpu "$dir/$1" ;;
    esac
}
# make_tests FILE: the tests with FILE of $dir/host in place of their own, by the commands that made them.
make_tests() {
    (
        cd "$build" || exit
        ninja -t commands leeway-check | grep -F " -c $root/$1" |
            sed "s# -MD -MT [^ ]* -MF [^ ]*##; s# -o [^ ]*# -o $dir/host/mutant.o#; s# -c [^ ]*# -c $dir/host/mutant.c#" | sh || exit
        for t in leeway-check test_device; do
            ninja -t commands $t | tail -n 1 | sed "s# -o $t # $dir/host/mutant.o -o $dir/host/$t #" | sh || exit
        done
    ) || broken "$1"
}
# of_tiles FILE: do cases of tiles say all about it?
of_tiles() {
    case $1 in */cuda_tiles.h | */cuda_halo.h | */cuda_wgmma.cu | */cuda_ffma.cu) ;; *) false ;; esac
}
passes_tiles() { # a short one that most die of, then small ones
    passes_device '*projection*' &&
        passes_ops few_tiles,narrow,apart,deep,twice,rgb_tiles,dx_tiles,conv1_tiles,halo_splits,halo_eight &&
        LW_EMULATED_MULTIPROCESSORS=1 passes_ops conv3_halo,half_tiles && passes_ops some_tiles,splits_tiles,many_tiles
}
passes_ops() { # passes_ops PARTS: cases with one of these in their names; ops.: all
    LD_LIBRARY_PATH=$dir/gpu timeout 300 "$tests/leeway-check" --device cuda --first --filter "$1" >/dev/null 2>&1
}
passes_drift() {
    LD_LIBRARY_PATH=$dir/gpu timeout 300 "$build/leeway-check" --device cuda --first --filter drift. >/dev/null 2>&1
}
passes_device() {
    # shellcheck disable=SC2086 # none or one
    LD_LIBRARY_PATH=$dir/gpu timeout 120 "$tests/test_device" cuda "$@" >/dev/null 2>&1
}
passes() { # passes FILE: what says most about it comes first, so that mutants die soon
    case ${1:-} in
    */cuda_flash*.cu | */cuda_attention.cu) passes_ops attention && passes_drift && passes_device && passes_ops ops. ;;
    */cuda_mma.cu | */cuda_lower_*) passes_device && passes_ops ops. && passes_drift ;;
    *) if of_tiles "${1:-}"; then passes_tiles; else passes_drift && passes_device && passes_ops ops.; fi ;;
    esac
}
judge() { # judge WHAT [FILE]
    all=$((all + 1))
    if passes "${2:-}"; then
        lived=$((lived + 1))
        echo "lived: $1"
    fi
}
# mutate FILE TO FROM INSTEAD [K]: FILE with the text INSTEAD for FROM, where it stands for the K-th time, as TO
mutate() {
    FROM=$3 INSTEAD=$4 K=${5:-1} awk '
        BEGIN {from = ENVIRON["FROM"]}
        (at = index($0, from)) && ++n == ENVIRON["K"] {
            $0 = substr($0, 1, at - 1) ENVIRON["INSTEAD"] substr($0, at + length(from))
            done = 1
        }
        {print}
        END {exit !done}' "$1" >"$2" || broken "$1 has no '$3'"
}
in_kernel() { # in_kernel NAME FROM INSTEAD [K]
    f=$kernels/$1
    mutate "$f" "$dir/$f" "$2" "$3" "${4:-1}"
    [ -z "$texts" ] || return 0
    case $left in '' | "$f") ;; *) remake "$left" ;; esac
    remake "$f"
    judge "$1: $2 -> $3" "$f"
    cp "$f" "$dir/$f"
    left=$f
}
left= # what has still to be made anew as it is: of one file mutants follow each other
on_host() { # on_host FILE FROM INSTEAD [K]
    mutate "$1" "$dir/host/mutant.c" "$2" "$3" "${4:-1}"
    [ -z "$texts" ] || return 0
    make_tests "$1"
    tests=$dir/host
    judge "$1: $2 -> $3" "$1"
    tests=$build
}

# barriers [tiles]: of all kernels, or of tiles alone
barriers() {
    waits='LW_(SYNC|SYNC_WARP|COPY_WAIT|COPY_COMMIT|FENCE_FOR_CORES|GROUP_COMMIT|CLUSTER_ARRIVE|CLUSTER_ARRIVE_SHARED|CLUSTER_WAIT)[(][)]'
    waits="^ *($waits|LW_(COPY_WAIT_BUT|GROUP_WAIT_FOR)[(][0-9][)]|lw_copy_wait_for[(].*[)]);\$"
    for f in "$kernels"/*.cu "$kernels"/cuda_port.h "$kernels"/cuda_tiles.h "$kernels"/cuda_halo.h; do
        if [ -n "$1" ] && ! of_tiles "$f"; then continue; fi
        # not the barrier before a count (blocks run one after the other here), that of a word which only a sum of
        # zero may replace too early, and waits behind the last stage, where no copy is underway
        # shellcheck disable=SC2013 # line numbers
        for line in $(awk -v waits="$waits" '$0 ~ waits && before !~ /lw_write[(]own|bool mine/ &&
            !(FILENAME ~ /_(wgmma|ffma)[.]cu/ && /COPY_WAIT/) {print NR} {before = $0}' "$f"); do
            sed "${line}s/[^ ].*/;/" "$f" >"$dir/$f"
            cmp -s "$f" "$dir/$f" && broken "$f"
            remake "$f"
            judge "$f:$line" "$f"
        done
        cp "$f" "$dir/$f"
        remake "$f"
    done
}

packed_kernels() {
    # where columns begin, to one who reads and one who writes them; which there are
    in_kernel cuda_gather.h '(int64_t)column * a->w_pitch + k' '(int64_t)column * a->k + k'
    in_kernel cuda_mma.cu 'k = (int32_t)(e % a.w_pitch), column = (int32_t)(e / a.w_pitch)' \
        'k = (int32_t)(e % a.k), column = (int32_t)(e / a.k)'
    in_kernel cuda_mma.cu '(int64_t)a.n * a.w_pitch' '(int64_t)a.n * a.k'
    in_kernel cuda_mma.cu 'column < a->n && k < a->w_pitch' 'k < a->w_pitch'
    # the tail of the depth
    in_kernel cuda_mma.cu 'column < a->n && k < a->w_pitch' 'column < a->n'
    in_kernel cuda_mma.cu 'column < a->n && k < a->w_pitch' 'column < a->n && k + 8 < a->w_pitch'
    in_kernel cuda_mma.cu 'k < a.k && column < a.columns' 'k <= a.k && column < a.columns'
    in_kernel cuda_mma.cu 'k < a.k && column < a.columns' 'k + 1 < a.k && column < a.columns'
    # (columns behind the last one are read by nobody: without their test only the device's memory check sees it)
    # which element, and how it is rounded
    in_kernel cuda_mma.cu '(product_kind)a.kind' PRODUCT_CONV
    in_kernel cuda_mma.cu '= lw_bf16_bits(w);' '= lw_bf16_bits(w * 0.999f);'
    # packed weights as if they were not
    for kind in MATMUL CONV CONV_DX; do
        in_kernel cuda_mma.cu "mma_tile(&a, PRODUCT_$kind, true" "mma_tile(&a, PRODUCT_$kind, false"
    done
    # on their way to shared memory
    in_kernel cuda_mma.cu 'lw_copy_async(right + (at ^ 1) * STAGE' 'lw_copy_async(right + at * STAGE'
    in_kernel cuda_mma.cu '!(packed && a->chunks)' '!packed'
    in_kernel cuda_mma.cu 'if (!packed)' 'if (true)' 2
    make_gpu "$dir/$kernels/cuda_mma.cu"
}

packed_host() {
    product=src/backend/cuda/cuda_lower_product.c
    on_host $product 'return LW_ROUND_UP(k, 8);' 'return k;'
    on_host $product 'packed ? pitch_of(a->k)' 'packed ? a->k'
    on_host $product '(narrow ? 2 : 1)' '(narrow ? 4 : 2)'
    on_host $product 'at->packed_k, at->trans_b}' 'at->packed_k}'
    on_host $product 'taps * channels}' 'at->kh * channels}'
    on_host $product '0, at->o, taps}' '0, taps, at->o}'
    on_host $product '== LW_OP_PACK' '!= LW_OP_PACK'
    # not at all, twice, in every run, not behind an update
    on_host $product 'if ((i != 1 && !projects) ||' 'if (i >= 0 ||'
    on_host src/plan/plan_pack.c 'lw_rewrite_shared(r, LW_OP_PACK, in[i], &p, sizeof p)' \
        'lw_graph_op(r->to, LW_OP_PACK, &in[i], 1, &p, sizeof p)'
    on_host src/plan/plan_derived.c 'bool any = !d->made;' 'bool any = true;'
    on_host src/plan/plan_derived.c 'any |= d->version[i] != v;' ''
}

drift() {
    # one of the three products; places of the halves; which rows and columns there are
    in_kernel cuda_drift_mma.cu 'drift_mma_first(part[n], left_low,' 'drift_mma_first(part[n], left,'
    in_kernel cuda_drift_mma.cu 'drift_mma(part[n], left, right_low[two] + n * 2);' ';'
    in_kernel cuda_drift_mma.cu 'drift_mma(part[n], left, right[two] + n * 2);' ';'
    in_kernel cuda_drift_mma.cu 'q->left + left_plane' 'q->left'
    in_kernel cuda_drift_mma.cu 'q->right + right_plane' 'q->right'
    in_kernel cuda_drift_mma.cu '< left.rows && LW_TID' '<= 0 && LW_TID'
    in_kernel cuda_drift_mma.cu '* 32 < right.rows' '* 32 < 64'
    # pairs too close for products, a sample and itself, places without a target, the far, the turn to positives
    in_kernel cuda_drift_mma.cu '0.015625f * both' '0.0f * both'
    in_kernel cuda_drift_mma.cu 'i == place ?' 'false ?'
    in_kernel cuda_drift_mma.cu '? d : INFINITY' '? d : 1.0f'
    in_kernel cuda_drift_mma.cu '!(d <= 1e34f) ? NAN :' ''
    in_kernel cuda_drift_mma.cu 'term ? a.pos_at : 0' 'term ? a.pos_at + STEP : 0'
    in_kernel cuda_drift_mma.cu '2 * (a.k_first + k)' '2 * k'
    # how far copies are ahead, where chunks lie, distances that two tiles share
    in_kernel cuda_drift_mma.cu 'rest > 2 * STEP' 'rest > 3 * STEP'
    in_kernel cuda_drift_mma.cu '? stage + STAGE :' '? stage :'
    in_kernel cuda_drift_mma.cu 'room + drift_next(copy.to) - chunk' 'room + copy.to - chunk'
    in_kernel cuda_drift_mma.cu 'j0 + SIDE <= i0' 'j0 <= i0'
    in_kernel cuda_drift_mma.cu 'some + twice' some
    in_kernel cuda_drift_mma.cu 'place * (int64_t)width' 'place * (int64_t)a->depth'
    # centre, low halves, units; masks, runs, parts
    in_kernel cuda_drift.cu 'from[c] - middle' 'from[c]'
    in_kernel cuda_drift.h 'x - lw_f16_to_float((uint16_t)half[0])' '0.0f'
    in_kernel cuda_drift.h '(267 - exponent)' '(266 - exponent)'
    in_kernel cuda_drift_sums.cu 'a->unit[at + e] * by' by
    in_kernel cuda_drift_sums.cu 'm * fmaxf(1.0f, a->w_u[b / a->t])' m
    in_kernel cuda_drift_sums.cu '? r->mask' '? 0.0f'
    in_kernel cuda_drift_sums.cu '(double)exp2f((least - r->least) * scale)' 1.0
    in_kernel cuda_drift_sums.cu '(float)(-all[1] * by)' '(float)(all[1] * by)'
    in_kernel cuda_drift_sums.cu 'i + e < end ?' 'i + e < a->n ?'
    in_kernel cuda_drift_sums.cu '% 32 * 2; place' '% 32; place'
    in_kernel cuda_drift_sums.cu '(place >= a->pos_at)]' '(place > a->pos_at)]'
    in_kernel cuda_drift.cu 'q >= p && q < a.k' 'q > p && q < a.k'
    # where S and lambda are made, and what is kept
    in_kernel cuda_drift.cu 'i = e % SHARES;' 'i = 0;'
    in_kernel cuda_drift.cu 'row += LW_BLOCKS' 'row += a.rows'
    in_kernel cuda_drift.cu '(2 * k + 1) * all + e' '2 * k * all + e'
    in_kernel cuda_drift.cu 'kept ? c0 / CHANNELS' 'kept ? 0 / CHANNELS'
    in_kernel cuda_drift_sums.cu 'a.rule[0] = rule' 'rule = rule'
    in_kernel cuda_drift_sums.cu 'k < a->k_count && !a->rows_only' 'k < 1 && !a->rows_only'
    in_kernel cuda_drift.h 'a->scales + slot' 'a->scales'
    for name in drift drift_sums drift_mma; do make_gpu "$dir/$kernels/cuda_$name.cu"; done
}

attention() {
    # which tokens and channels there are, and the stage they come to
    in_kernel cuda_flash.cu 'channel && first + row + e < end' channel
    in_kernel cuda_flash.cu 'channel && first + row + e < end' 'first + row + e < end'
    in_kernel cuda_flash.cu 'channel && first + row < end' channel
    in_kernel cuda_flash.cu '% 2 * turn' '% 2 * 0'
    in_kernel cuda_flash.cu '(j / keys & 1) * FLASH_STAGE' 0
    in_kernel cuda_flash.cu '(j & (keys - 1)) * channels' 0
    in_kernel cuda_flash.cu 'bool there = i < room->queries' 'bool there = true'
    # softmax: keys there are not, a new greatest score, the lanes of a row
    in_kernel cuda_flash.cu '>= count)' '> count)'
    in_kernel cuda_flash.cu 'lw_exp2((*top - up) * scale)' 1.0f
    in_kernel cuda_flash.cu 'fmaf(shared->total[r][LW_TID], down, total)' total
    in_kernel cuda_flash.cu '*= down;' '*= 1.0f;'
    for lane in 1 2; do
        in_kernel cuda_flash.cu "up = fmaxf(up, lw_shuffle_xor(up, $lane));" ''
        in_kernel cuda_flash.cu "total += lw_shuffle_xor(total, $lane);" ''
    done
    # products and what is written
    in_kernel cuda_flash.cu '(keys ^ k * 16)' keys
    in_kernel cuda_flash.cu '(values ^ n * 16)' values
    in_kernel cuda_flash.cu 'lw_ldmatrix_x4_trans' lw_ldmatrix_x4
    in_kernel cuda_flash.cu 'if (there && c < a->hd)' 'if (there)'
    in_kernel cuda_flash.cu 'if (c < a->hd)' 'if (true)'
    in_kernel cuda_flash.cu 'odd ? got : low' low
    make_gpu "$dir/$kernels/cuda_flash.cu"
    norm=src/backend/cuda/cuda_lower_norm.c
    on_host $norm 'a.tiles = LW_CEIL_DIV(s->most, flash[i].queries)' 'a.tiles = 1'
    on_host $norm 's->a.hd > flash[i].channels' 's->a.hd > 128'
}

tiles() {
    # where pieces lie
    in_kernel cuda_tiles.h '(q ^ row % 8) * 16' 'q * 16'
    in_kernel cuda_ffma.cu '(q ^ row % 8) * 16' 'q * 16'
    # rows and columns behind the last
    in_kernel cuda_tiles.h 'r < a->phase_rows ? y : -0x4000' y
    in_kernel cuda_tiles.h 'there && s->column0 + row + i * row_stride < a->n' there
    in_kernel cuda_tiles.h 'r >= a->phase_rows' 'r > a->phase_rows'
    # taps of a kind of pixels, and the row that is written
    in_kernel cuda_tiles.h '(s->phase_y + a->pad_t) % a->phases' 's->phase_y % a->phases'
    in_kernel cuda_tiles.h '(s->phase_x + a->pad_l - s->tap_x)' '(a->pad_l - s->tap_x)'
    in_kernel cuda_tiles.h 's->tap_x + s->tx * a->phases' 's->tap_x + s->tx'
    in_kernel cuda_tiles.h 'at.i * a->phases + s->phase_y' 'at.i * a->phases'
    in_kernel cuda_tiles.h '* a->phases + s->phase_x;' '* a->phases;'
    # the depth and its end
    in_kernel cuda_tiles.h 'while (s->c >= a->c)' 'if (s->c >= a->c)'
    in_kernel cuda_tiles.h 's->ty < a->kh / a->phases' true
    in_kernel cuda_tiles.h 'a->flat ? k : k % a->c' 0
    in_kernel cuda_tiles.h 'a->flat ? k : k % a->c' 'k % a->c'
    in_kernel cuda_tiles.h 'a->flat ? s->c < a->c' 'a->flat ? true'
    in_kernel cuda_tiles.h 'there && s->y[i] >= 0' there
    # the ring
    in_kernel cuda_tiles.h 's->now + 1 == t.stages' 's->now + 2 == t.stages'
    in_kernel cuda_tiles.h 's->next + 1 == t.stages' 's->next + 2 == t.stages'
    in_kernel cuda_tiles.h 's->next = t.ahead;' 's->next = t.ahead - 1;'
    in_kernel cuda_tiles.h 'lw_copy_wait_for(t.ahead - 1)' 'lw_copy_wait_for(t.ahead)'
    in_kernel cuda_tiles.h 's->step + t.ahead < s->n' 's->step + t.ahead + 1 < s->n'
    # split-K: where splits begin, one left out, the count for the next run
    in_kernel cuda_tiles.h 'a->split_blocks ? tile_split_begin(a, steps, s->split) : 0' 0
    in_kernel cuda_ffma.cu 'k + m < a->splits' 'k + m + 1 < a->splits'
    in_kernel cuda_ffma.cu '== (uint32_t)a->splits - 1' '== (uint32_t)a->splits'
    in_kernel cuda_ffma.cu 'a->arrived[s->tile] = 0;' ';'
    # the same of a cluster: a split left out, at the first text or the second; which rows are a block's
    in_kernel cuda_wgmma.cu 'p < a->splits' 'p + 1 < a->splits'
    in_kernel cuda_wgmma.cu 'p < a->splits' 'p + 1 < a->splits' 2
    in_kernel cuda_tiles.h 's->split * row_stride' 0
    in_kernel cuda_tiles.h 'a->splits * row_stride' row_stride
    in_kernel cuda_tiles.h 's->tile = bx / shares' 's->tile = bx'
    in_kernel cuda_tiles.h 'total[i] += sum[i];' ';'
    in_kernel cuda_wgmma.cu 'sum[i] += total[i];' ';'
    in_kernel cuda_ffma.cu 'sum[i] += total[i];' ';'
    # where sums are, and what is added to them
    in_kernel cuda_wgmma.cu 'i * 64 * TILE_ROW + k' k
    in_kernel cuda_wgmma.cu '+ j % 2 * 8;' ';'
    in_kernel cuda_ffma.cu 'warp % across * 4 * wide' 0
    in_kernel cuda_tiles.h 'lw_divide(e->row[i] < 0 ? 0 : e->row[i], &a->pixels)' 0
    in_kernel cuda_tiles.h 'a->residual && !a->drop_rows' false
    in_kernel cuda_tiles.h 'if (a->bias)' 'if (false)'
    # rows that are halves of pieces
    in_kernel cuda_tiles.h 't.half ? t.piece / 2 : t.piece' t.piece
    # halo tiles: zeros around pixels, which chunk's they are and when they are done with, which tap's weights
    in_kernel cuda_halo.h 'p.i < a->h && p.j < a->width' 'p.j < a->width'
    in_kernel cuda_halo.h 'p.i < a->h && p.j < a->width' 'p.i < a->h'
    in_kernel cuda_halo.h 'r >= 0 && r < a->phase_rows' 'r >= 0'
    in_kernel cuda_halo.h '+ s->chunk) * HALO_TAPS' ') * HALO_TAPS'
    in_kernel cuda_halo.h 'own ? s->chunk : 0' 0
    in_kernel cuda_halo.h 'pixels + chunk % 2 * halo_room(t)' pixels
    in_kernel cuda_halo.h 's->tap == t.taps' 's->tap == 0'
    in_kernel cuda_halo.h 's->odd ^= s->tile.now == 0;' ';'
    in_kernel cuda_halo.h '(s->tile.now + t.ahead) % t.stages' '(s->tile.now + t.ahead + 1) % t.stages'
    in_kernel cuda_halo.h 'column0 + 64 < a->n' 'column0 < 0'
    in_kernel cuda_halo.h '(uint32_t)(taps * halves)' '(uint32_t)taps'
    in_kernel cuda_halo.h 's->w += bytes, stage' stage
    in_kernel cuda_halo.h 'stage += t.columns * TILE_ROW' 'stage += bytes'
    in_kernel cuda_wgmma.cu 's.tap / 3 * a->wide.by' 's.tap / 3 * a->width'
    in_kernel cuda_wgmma.cu 's.tile.step % 2 * halo_room(t)' 0
    in_kernel cuda_tiles.h 'at.i == a->oh || at.j == a->ow' 'at.j == a->ow'
    # projections: which chunks a block has of them, their weights and pixels, and when
    in_kernel cuda_halo.h 's->tile.split - a->own_splits + 1' 'halo_groups(a, t)'
    in_kernel cuda_halo.h 's->tile.split < a->own_splits ? halo_groups(a, t)' 's->tile.split < a->own_splits ? 0'
    in_kernel cuda_halo.h 'own ? tile_split_begin(a, all, s->tile.split) : all' 'tile_split_begin(a, all, s->tile.split)'
    in_kernel cuda_halo.h 'halo_group_begin(a, t, first))' '0)'
    in_kernel cuda_halo.h '(s->tile.column0 / 64) * (a->project_c / 64)' 0
    in_kernel cuda_halo.h '(int64_t)a->project_c * 64 * 2' '(int64_t)a->c * 64 * 2'
    in_kernel cuda_halo.h 'own ? s->tile.row0 - a->wide.by - 1 : s->tile.row0' 's->tile.row0 - a->wide.by - 1'
    in_kernel cuda_halo.h 'own ? a->ldx : t.piece' 'a->ldx'
    in_kernel cuda_halo.h '(int64_t)chunk * TILE_ROW' 0 2
    in_kernel cuda_halo.h 'to += t.rows * TILE_ROW' 'to += 0'
    in_kernel cuda_wgmma.cu 'if (k + j < n)' ''
    in_kernel cuda_wgmma.cu 's, k == 0, shared' 's, false, shared'
    in_kernel cuda_wgmma.cu 'left = lw_rows_behind(left, t.rows * TILE_ROW)' ';'
    in_kernel cuda_wgmma.cu 'if (adds && a->splits > 1)' 'if (false)'
    make_gpu "$dir/$kernels/cuda_wgmma.cu" "$dir/$kernels/cuda_ffma.cu"
}

cp "$kernels"/* "$dir/$kernels"
make_gpu "$dir/$kernels"/*.cu
if [ -n "$texts" ]; then
    packed_kernels
    packed_host
    drift
    attention
    tiles
    echo 'what mutants replace is there'
    exit 0
fi
if [ "$only" = tiles ]; then first=$kernels/cuda_tiles.h; else first=''; fi
if ! passes "$first"; then
    echo 'the kernels as they are do not pass'
    exit 1
fi
if [ -z "$only" ] || [ "$only" = barriers ]; then barriers ''; fi
if [ -z "$only" ] || [ "$only" = packed ]; then
    packed_kernels
    packed_host
fi
if [ -z "$only" ] || [ "$only" = drift ]; then drift; fi
if [ -z "$only" ] || [ "$only" = attention ]; then attention; fi
if [ -z "$only" ] || [ "$only" = tiles ]; then
    [ -z "$only" ] || barriers tiles
    tiles
fi
echo "$((all - lived)) of $all mutants died"
[ "$lived" -eq 0 ]
