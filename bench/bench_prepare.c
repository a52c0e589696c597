/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture's way to a network, timed: decode, prepare, normalise. One line per repeat: milliseconds
 * of processor time for decoding and preparing, for normalising; then the hash of the prepared
 * bytes. tools/peers/prepare_peer.py takes turns between this and Pillow.
 *
 *     bench_prepare PREPARATION.json PICTURE REPEATS
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "data/data.h"

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* y = (x scale - mean) / std, by a table of all bytes. */
static void normalise(const lw_preparation *p, const uint8_t *x, float *y)
{
    float of[3][256];
    for (int k = 0; k < 3; k++)
        for (int b = 0; b < 256; b++)
            of[k][b] = ((float)(b * p->scale) - p->mean[k]) / p->std[k];
    for (ptrdiff_t i = 0; i < 3 * (ptrdiff_t)p->height * p->width; i += 3)
        for (int k = 0; k < 3; k++)
            y[i + k] = of[k][x[i + k]];
}

static int decode(const lw_preparation *p, const char *path, const char *bytes, size_t n,
                  uint8_t *x)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_TRY(lw_image_parse(path, bytes, n, &im));
    return lw_prepare(p, &im, x);
}

static int run(const char *preparation, const char *path, int64_t repeats)
{
    size_t n;
    lw_preparation p;
    LW_CLEANUP(lw_free) char *bytes = NULL;
    LW_TRY(lw_preparation_load(preparation, &p));
    LW_TRY(lw_file_read(path, 0, &bytes, &n));
    size_t size = 3 * (size_t)p.height * (size_t)p.width;
    LW_CLEANUP(lw_free) uint8_t *x = lw_calloc(size, sizeof *x);
    LW_CLEANUP(lw_free) float *y = lw_calloc(size, sizeof *y);
    if (!x || !y)
        return LW_ENOMEM;
    for (int64_t i = 0; i < repeats; i++) {
        double start = milliseconds();
        LW_TRY(decode(&p, path, bytes, n, x));
        double prepared = milliseconds();
        normalise(&p, x, y);
        printf("%.4f %.4f\n", prepared - start, milliseconds() - prepared);
    }
    printf("hash %016llx\n", (unsigned long long)lw_hash64(x, size));
    return 0;
}

int main(int argc, char **argv)
{
    int64_t repeats = 0;
    if (argc != 4 || lw_parse_i64(argv[3], &repeats) < 0) {
        fprintf(stderr, "usage: bench_prepare PREPARATION.json PICTURE REPEATS\n");
        return 2;
    }
    int rc = run(argv[1], argv[2], repeats);
    if (rc < 0)
        fprintf(stderr, "bench_prepare: %s\n", lw_errmsg());
    return rc < 0 ? lw_exit_code(rc) : 0;
}
