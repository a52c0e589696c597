/* SPDX-License-Identifier: Apache-2.0 */
#include "data/data_export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats.h"

static size_t row_bytes(const lw_dataset *d)
{
    return (size_t)lw_data_row_size(d);
}

static int progress(const lw_observer *obs, int64_t done, int64_t n)
{
    lw_observe_progress(obs, "export", done, n, NULL);
    return lw_observe_stop(obs) ? lw_fail(LW_ESTOPPED, "export stopped; nothing is written") : 0;
}

static int write_npy(const lw_dataset *d, const char *path, const lw_observer *obs)
{
    enum { BLOCK = 256 };
    LW_CLEANUP(lw_new_file_drop) lw_new_file f = {0};
    LW_CLEANUP(lw_str_clear) lw_str head = {0};
    const int64_t shape[4] = {d->n, d->h, d->w, d->channels};
    LW_TRY(lw_npy_header_write(path, LW_ELEM_U8, 4, shape, &head));
    LW_TRY(lw_new_file_begin(&f, path));
    LW_TRY(lw_new_file_put(&f, lw_str_c(&head), head.len));
    for (int64_t at = 0; at < d->n; at += BLOCK) {
        int64_t k = LW_MIN((int64_t)BLOCK, d->n - at);
        LW_TRY(
            lw_new_file_put(&f, d->pixels + (size_t)at * row_bytes(d), (size_t)k * row_bytes(d)));
        LW_TRY(progress(obs, at + k, d->n));
    }
    return lw_new_file_finish(&f);
}

static int write_npz(const lw_dataset *d, const char *path)
{
    LW_CLEANUP(lw_array_clear) lw_array labels = {0};
    LW_TRY(lw_array_init(&labels, LW_ELEM_I64, 1, &d->n));
    for (int64_t i = 0; i < d->n; i++)
        ((int64_t *)labels.data)[i] = d->labels[i];
    lw_npz_entry e[] = {{.name = (char *)"arr_0",
                         .array = {.type = LW_ELEM_U8,
                                   .rank = 4,
                                   .shape = {d->n, d->h, d->w, d->channels},
                                   .count = d->n * (int64_t)row_bytes(d),
                                   .bytes = (size_t)d->n * row_bytes(d),
                                   .data = (void *)d->pixels}},
                        {.name = (char *)"arr_1", .array = labels}};
    return lw_npz_save(path, &(lw_npz){.entries = e, .n = d->labelled ? 2 : 1});
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* A folder of DIR for a class, whatever the class is called. */
static const char *class_folder(const lw_dataset *d, const char *dir, int32_t label, lw_str *path)
{
    lw_path_join(path, dir, d->class_names[label]);
    for (char *p = path->s + strlen(dir) + 1; path->s && *p; p++)
        *p = *p == '/' ? '_' : *p;
    return lw_str_c(path);
}

/* Not brought to the disk one by one, as results are: it takes ten times as long, and pictures can be
 * exported again. */
static int write_file(const char *path, const lw_str *bytes)
{
    FILE *f = fopen(path, "wbx");
    bool good = f && fwrite(bytes->s, 1, bytes->len, f) == bytes->len;
    int cause = errno;
    if (f && fclose(f) != 0 && good) {
        cause = errno;
        good = false;
    }
    return good ? 0 : lw_fail(lw_errno_code(cause), "%s: cannot write: %s", path, strerror(cause));
}

static int write_picture(const lw_dataset *d, const char *dir, int64_t i)
{
    LW_CLEANUP(lw_str_clear) lw_str folder = {0}, path = {0}, bytes = {0};
    char name[32];
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_TRY(lw_image_init(&im, d->w, d->h));
    lw_channels_convert(d->pixels + (size_t)i * row_bytes(d), (int64_t)d->h * d->w, d->channels, 3,
                        im.rgb);
    if (d->labelled) {
        dir = class_folder(d, dir, d->labels[i], &folder);
        LW_TRY(lw_mkdirs(dir));
    }
    snprintf(name, sizeof name, "%06lld.png", (long long)i);
    LW_TRY(lw_png_encode(&im, NULL, &bytes));
    return bytes.failed ? LW_ENOMEM : write_file(lw_path_join(&path, dir, name), &bytes);
}

static int write_pictures(const lw_dataset *d, const char *dir, const lw_observer *obs)
{
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir out = {0};
    LW_TRY(lw_channels_check(dir, d->channels, 3));
    LW_TRY(lw_output_check("--output", dir, LW_OUT_NEW_DIR));
    LW_TRY(lw_new_dir_begin(&out, dir, false));
    for (int64_t i = 0; i < d->n; i++) {
        LW_TRY(write_picture(d, lw_str_c(&out.tmp), i));
        LW_TRY(progress(obs, i + 1, d->n));
    }
    return lw_new_dir_finish(&out);
}

int lw_data_export(const lw_dataset *d, const char *output, const lw_observer *obs)
{
    if (lw_str_ends(output, ".npy"))
        return write_npy(d, output, obs);
    return lw_str_ends(output, ".npz") ? write_npz(d, output) : write_pictures(d, output, obs);
}
