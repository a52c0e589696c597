/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by the names of their pictures. */
#include "data/data_listing.h"

#include "base/base.h"

static int add_path(const lw_dataset *d, int64_t i, lw_str *name, json_t *paths)
{
    name->len = 0;
    lw_data_row_name(d, i, name);
    if (json_array_append_new(paths, json_string(lw_str_c(name))) == 0)
        return 0;
    return lw_fail(LW_EUNSUPPORTED, "the name of '%s' is not UTF-8, as lists of pictures must be",
                   lw_str_c(name));
}

int lw_data_listing(const lw_dataset *d, json_t **out)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    json_t *paths = *d->root ? json_array() : NULL, *rows = json_array(), *labels = json_array(),
           *names = json_array();
    LW_CLEANUP(lw_json_drop)
    json_t *list = json_pack("{s:I, s:s*, s:o*, s:o, s:o, s:o}", "num_images", (json_int_t)d->n,
                             "root", *d->root ? d->root : NULL, "paths", paths, "rows", rows,
                             "labels", labels, "class_names", names);
    if (!list)
        return lw_fail(LW_EUNSUPPORTED, "'%s' is not UTF-8, as lists of pictures must be", d->root);
    for (int64_t i = 0; i < d->n; i++) {
        if (paths)
            LW_TRY(add_path(d, i, &name, paths));
        json_array_append_new(rows, json_integer((json_int_t)lw_data_row_number(d, i)));
        json_array_append_new(labels, json_integer(d->labels[i]));
    }
    for (int32_t k = 0; k < d->classes; k++)
        json_array_append_new(names, json_string(d->class_names[k]));
    *out = lw_steal(&list);
    return 0;
}
