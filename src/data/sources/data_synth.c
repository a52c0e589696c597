/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `synth`: coloured digits drawn from a formula, so that a first run needs no file. Picture i of
 * seed s is digit i mod 10 with random pose, stroke width and colours on a soft gradient, all from
 * one hash of (s, i, number of the draw). Coordinates: x right, y down, the picture is [-1, 1]^2.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/sources/data_source.h"

#define PI 3.14159265358979323846
#define SEGMENTS 26 /* the largest digit has 24 */
#define MAX_SIDE 32

enum { TRAIN_ROWS = 50000, HELDOUT_ROWS = 10000, TRAINING_SEED = 1 };

/* A piece of a stroke: an arc (n segments; cx cy rx ry a0 a1 in degrees) or, with n == 0, `points`
 * points. */
typedef struct glyph_piece {
    uint8_t digit, continues, n, points;
    float v[8];
} glyph_piece;

/* In order of digits; a piece that continues is joined to the end of the piece before. */
static const glyph_piece glyphs[] = {
    {0, 0, 16, 0, {0, 0, .5f, .8f, 0, 360}},
    {1, 0, 0, 3, {-.3f, -.45f, .05f, -.8f, .05f, .8f}},
    {2, 0, 8, 0, {0, -.35f, .45f, .45f, 180, 400}},
    {2, 1, 0, 2, {-.5f, .8f, .5f, .8f}},
    {3, 0, 8, 0, {-.05f, -.4f, .48f, .4f, 200, 450}},
    {3, 0, 8, 0, {-.05f, .4f, .53f, .4f, 270, 520}},
    {4, 0, 0, 4, {.25f, .8f, .25f, -.8f, -.5f, .3f, .5f, .3f}},
    {5, 0, 0, 3, {.45f, -.8f, -.35f, -.8f, -.4f, -.1f}},
    {5, 1, 9, 0, {-.05f, .3f, .5f, .5f, 225, 510}},
    {6, 0, 0, 3, {.35f, -.8f, -.1f, -.45f, -.42f, .1f}},
    {6, 0, 12, 0, {0, .32f, .47f, .48f, 0, 360}},
    {7, 0, 0, 3, {-.5f, -.8f, .5f, -.8f, -.1f, .8f}},
    {8, 0, 12, 0, {0, -.41f, .4f, .39f, 0, 360}},
    {8, 0, 12, 0, {0, .39f, .48f, .41f, 0, 360}},
    {9, 0, 12, 0, {0, -.32f, .47f, .48f, 0, 360}},
    {9, 0, 0, 3, {.47f, -.32f, .42f, .1f, .2f, .8f}},
};

/* Draw k of picture i: 24 bits in [0, 1). */
static double draw(uint64_t s, uint64_t i, uint64_t k)
{
    uint64_t z = s * 0x9E3779B97F4A7C15u + i * 0xD1B54A32D192ED03u + k * 0x8CB92BA72F3D8DD7u +
                 0x632BE59BD9B4E019u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 40) * 0x1p-24;
}

static double between(uint64_t s, uint64_t i, uint64_t k, double a, double b)
{
    return a + (b - a) * draw(s, i, k);
}

typedef struct stroke_set {
    int n;
    float ax[SEGMENTS], ay[SEGMENTS], dx[SEGMENTS], dy[SEGMENTS],
        inv[SEGMENTS]; /* start, step, 1/|step|^2 */
} stroke_set;

typedef struct pose {
    double m[4], t[2];
} pose;

static pose draw_pose(uint64_t s, uint64_t i)
{
    double th = between(s, i, 1, -.21, .21), sx = between(s, i, 2, .8, 1.1),
           sy = between(s, i, 3, .8, 1);
    double sh = between(s, i, 4, -.2, .2), co = cos(th), si = sin(th);
    return (pose){{co * sx, co * sh * sy - si * sy, si * sx, si * sh * sy + co * sy},
                  {between(s, i, 5, -.12, .12), between(s, i, 6, -.1, .1)}};
}

/* Point j of a piece in the glyph's own box. */
static void piece_point(const glyph_piece *g, int j, double *x, double *y)
{
    if (g->n == 0) {
        *x = (double)g->v[2 * j];
        *y = (double)g->v[2 * j + 1];
        return;
    }
    double a0 = (double)g->v[4], a1 = (double)g->v[5], a = (a0 + (a1 - a0) * j / g->n) * (PI / 180);
    *x = (double)g->v[0] + (double)g->v[2] * cos(a);
    *y = (double)g->v[1] + (double)g->v[3] * sin(a);
}

static void lay_strokes(int digit, const pose *p, stroke_set *out)
{
    double px = 0, py = 0; /* end of the polyline so far, posed */
    out->n = 0;
    for (size_t g = 0; g < LW_COUNT(glyphs); g++) {
        if (glyphs[g].digit != digit)
            continue;
        int points = glyphs[g].n ? glyphs[g].n + 1 : glyphs[g].points;
        for (int j = 0; j < points; j++) {
            double gx, gy;
            piece_point(&glyphs[g], j, &gx, &gy);
            double x = p->m[0] * gx + p->m[1] * gy + p->t[0],
                   y = p->m[2] * gx + p->m[3] * gy + p->t[1];
            if (j > 0 || glyphs[g].continues) {
                int n = out->n++;
                double len2 = (x - px) * (x - px) + (y - py) * (y - py);
                out->ax[n] = (float)px;
                out->ay[n] = (float)py;
                out->dx[n] = (float)(x - px);
                out->dy[n] = (float)(y - py);
                out->inv[n] = (float)(len2 > 0 ? 1 / len2 : 0);
            }
            px = x;
            py = y;
        }
    }
}

static void hsv(double h, double s, double v, float rgb[3])
{
    h = (h - floor(h)) * 6;
    int sector = (int)h % 6;
    double f = h - floor(h), p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
    const double table[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    for (int c = 0; c < 3; c++)
        rgb[c] = (float)table[sector][c];
}

typedef struct palette {
    float stroke[3], from[3], to[3], cos_ph, sin_ph;
} palette;

static palette draw_palette(uint64_t s, uint64_t i)
{
    palette c;
    double hb = between(s, i, 8, 0, 1), ph = between(s, i, 17, 0, 2 * PI);
    hsv(hb + between(s, i, 9, .25, .75), between(s, i, 10, .25, .75), between(s, i, 11, .85, 1),
        c.stroke);
    hsv(hb, between(s, i, 12, .5, .9), between(s, i, 13, .1, .4), c.from);
    hsv(hb + between(s, i, 14, -.08, .08), between(s, i, 15, .5, .9), between(s, i, 16, .1, .4),
        c.to);
    c.cos_ph = (float)cos(ph);
    c.sin_ph = (float)sin(ph);
    return c;
}

/* Squared distance of every pixel centre of one line to the nearest segment. */
static void line_distance(const stroke_set *g, int32_t size, float y, const float *xs, float *d2)
{
    for (int32_t x = 0; x < size; x++)
        d2[x] = 1e9f;
    for (int n = 0; n < g->n; n++) {
        float ax = g->ax[n], dx = g->dx[n], dy = g->dy[n], inv = g->inv[n], ry = y - g->ay[n];
        for (int32_t x = 0; x < size; x++) {
            float rx = xs[x] - ax, t = (rx * dx + ry * dy) * inv;
            t = t < 0 ? 0 : t;
            t = t > 1 ? 1 : t;
            float ex = rx - t * dx, ey = ry - t * dy, d = ex * ex + ey * ey;
            d2[x] = d < d2[x] ? d : d2[x];
        }
    }
}

static float unit(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

/* The picture in [0, 1]. */
static void synth_unit(uint64_t seed, uint64_t index, int32_t size, float *dst)
{
    float xs[MAX_SIDE], d2[MAX_SIDE];
    pose p = draw_pose(seed, index);
    palette col = draw_palette(seed, index);
    stroke_set g;
    lay_strokes((int)(index % 10), &p, &g);
    float w = (float)between(seed, index, 7, .11, .17), half = .5f * (float)size;
    uint64_t plane = (uint64_t)size * (uint64_t)size, base = index * 3 * plane;
    for (int32_t x = 0; x < size; x++)
        xs[x] = ((float)x + .5f) / half - 1;
    for (int32_t y = 0; y < size; y++) {
        line_distance(&g, size, xs[y], xs, d2);
        for (int32_t x = 0; x < size; x++) {
            float cover = unit(.5f + (w - sqrtf(d2[x])) * half);
            float mix = unit(.5f + .35f * (xs[x] * col.cos_ph + xs[y] * col.sin_ph));
            for (int c = 0; c < 3; c++) {
                uint64_t k = base + (uint64_t)c * plane + (uint64_t)(y * size + x);
                float back = col.from[c] + (col.to[c] - col.from[c]) * mix;
                float noise = .05f * (float)(draw(seed + 1, k, 100) + draw(seed + 1, k, 101) - 1);
                dst[(y * size + x) * 3 + c] = unit(back + (col.stroke[c] - back) * cover + noise);
            }
        }
    }
}

void lw_synth_draw(uint64_t seed, uint64_t index, int32_t size, float *dst)
{
    LW_ASSERT(size >= 1 && size <= MAX_SIDE, "synth draws up to 32x32, not %d", size);
    synth_unit(seed, index, size, dst);
    for (int32_t i = 0; i < size * size * 3; i++)
        dst[i] = dst[i] * 2 - 1;
}

/* ---- the source ---- */

static int64_t split_rows(const lw_data_job *job)
{
    static const int64_t rows[LW_SPLIT_COUNT] = {TRAIN_ROWS, HELDOUT_ROWS,
                                                 TRAIN_ROWS + HELDOUT_ROWS};
    return rows[job->opts.split];
}

/* "[16|32][,seed=S]" */
static int parse_arg(lw_data_job *job, int32_t *size, uint64_t *seed)
{
    if (!job->arg)
        return 0;
    const char *tail = strchr(job->arg, ',');
    size_t len = tail ? (size_t)(tail - job->arg) : strlen(job->arg);
    if (len == 2 && memcmp(job->arg, "16", 2) == 0)
        *size = 16;
    else if (len == 2 && memcmp(job->arg, "32", 2) == 0)
        *size = 32;
    else if (len > 0 || !tail)
        return lw_fail(
            LW_EUSAGE,
            "data '%s': synth draws 16 or 32 pixels, not '%.*s': write synth:16 or synth:32",
            job->spec, (int)len, job->arg);
    if (!tail)
        return 0;
    int64_t value = -1;
    if (!lw_str_starts(tail, ",seed=") || lw_parse_i64(tail + 6, &value) < 0 || value < 0)
        return lw_fail(LW_EUSAGE, "data '%s': '%s' is not ',seed=S' with a whole number S >= 0",
                       job->spec, tail);
    *seed = (uint64_t)value;
    return 0;
}

static int synth_plan(lw_data_job *job)
{
    static const char *const names[10] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    int32_t size = 0;
    uint64_t seed = TRAINING_SEED;
    LW_TRY(parse_arg(job, &size, &seed));
    lw_data_opts *o = &job->opts;
    if (o->image_size && o->image_size != 16 && o->image_size != 32)
        return lw_fail(LW_EUSAGE, "data '%s': image size %d: synth draws 16 or 32 pixels",
                       job->spec, o->image_size);
    if (size && o->image_size && size != o->image_size)
        return lw_fail(LW_EUSAGE,
                       "data '%s' draws %dx%d, but image size %d is asked for: write synth:%d",
                       job->spec, size, size, o->image_size, o->image_size);
    size = size ? size : o->image_size ? o->image_size : 32;
    int64_t have = split_rows(job);
    LW_TRY(lw_data_range_check(job, have));
    o->count = o->count ? o->count : have - o->first;
    lw_data_job_size(job, size);
    job->side = size;
    job->labelled = true;
    job->ranged = true;
    for (int c = 0; c < 10; c++)
        LW_TRY(lw_data_job_class(job, names[c]));
    lw_str_addf(&job->place, "seed %" PRIu64 "\n", seed);
    lw_str_add(&job->state, "drawing 1\n"); /* raise when the pictures change */
    job->seed = seed;
    return 0;
}

/* Pictures of one split. */
typedef struct drawn {
    uint64_t seed, first;
    int32_t side;
} drawn;

static int get_drawn(const void *from, int64_t i, lw_raster *im, int32_t *label)
{
    const drawn *d = from;
    uint64_t index = d->first + (uint64_t)i;
    float unit_pixels[MAX_SIDE * MAX_SIDE * 3];
    LW_TRY(lw_raster_init(im, d->side, d->side, 3));
    synth_unit(d->seed, index, d->side, unit_pixels);
    for (int32_t j = 0; j < d->side * d->side * 3; j++)
        im->at[j] = (uint8_t)(unit_pixels[j] * 255.0f + .5f);
    *label = (int32_t)(index % 10);
    return 0;
}

static int synth_build(lw_data_job *job, lw_data_sink *sink)
{
    const drawn train = {job->seed, 0, job->side}, held = {job->seed, TRAIN_ROWS, job->side};
    LW_TRY(lw_data_sink_expect(sink, TRAIN_ROWS, HELDOUT_ROWS));
    LW_TRY(lw_data_fill(job, sink,
                        &(lw_data_pictures){.n = TRAIN_ROWS, .from = &train, .get = get_drawn}));
    lw_data_sink_heldout(sink);
    return lw_data_fill(job, sink,
                        &(lw_data_pictures){.n = HELDOUT_ROWS, .from = &held, .get = get_drawn});
}

const lw_data_source lw_data_source_synth = {
    .info =
        {"synth", "synth[:16|32][,seed=S]",
         "drawn colour digits, no file needed; training indices 0..49999, held-out 50000..59999"},
    .plan = synth_plan,
    .build = synth_build,
};
