/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "formats/formats.h"
#include "jobs/convert/convert_job.h"
#include "jobs/convert/convert_onnx.h"
#include "store/store.h"

/* ---- what is left out ------------------------------------------------------------------------ */

static int look_at_source(const lw_network *n, const lw_network_form *f, lw_convert_result *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_st_close) lw_st_file *file = NULL;
    LW_TRY(lw_model_weights_find(n->dir, &path));
    LW_TRY(lw_st_open(lw_str_c(&path), &file));
    const lw_store *kept = f->by_place ? NULL : f->store;
    return lw_store_left_out(n->store, kept, file, n->def->namings, &out->left_out, &out->type);
}

/* Values that were computed have more digits than those they come from. */
static lw_elem choose_type(int32_t asked, lw_elem source, const lw_network_form *f)
{
    static const lw_elem types[] = {LW_ELEM_F32, LW_ELEM_F32, LW_ELEM_BF16, LW_ELEM_F16};
    return asked == LW_CONVERT_KEEP && !f->fill ? source : types[asked];
}

/* ---- writing --------------------------------------------------------------------------------- */

static int add_file(lw_convert_result *out, const char *name)
{
    return json_array_append_new(out->files, json_string(name)) == 0 ? 0 : LW_ENOMEM;
}

static int write_files(const lw_network *n, const lw_network_form *f, const char *dir,
                       lw_convert_result *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const lw_store *s = f->store ? f->store : n->store;
    LW_TRY(lw_json_save(lw_path_join(&path, dir, f->config_name), f->config));
    if (f->preprocessor)
        LW_TRY(lw_json_save(lw_path_join(&path, dir, "preprocessor_config.json"), f->preprocessor));
    return lw_store_save_as(s, LW_SLAB_PARAM, lw_path_join(&path, dir, f->weights_name), f->naming,
                            out->type, NULL, 0);
}

/* Read as its library's files are, before anybody else does. */
static int check_written(const char *dir)
{
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    return lw_network_open(dir, false, &n);
}

static int describe(const lw_network *n, const lw_network_form *f, lw_convert_result *out)
{
    const lw_store *s = f->store ? f->store : n->store;
    snprintf(out->network, sizeof out->network, "%s", n->name);
    out->parameters = n->parameters;
    out->bytes = (uint64_t)lw_store_param_count(s) * lw_elem_size(out->type);
    out->config = json_incref(f->config);
    out->notes = json_incref(f->notes);
    out->files = json_array();
    LW_TRY(add_file(out, f->config_name));
    if (f->preprocessor)
        LW_TRY(add_file(out, "preprocessor_config.json"));
    return add_file(out, f->weights_name);
}

static int convert(const lw_convert_config *c, lw_network_form *f, lw_convert_result *out)
{
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    LW_TRY(lw_output_check("--output-dir", c->output_dir, LW_OUT_NEW_DIR));
    LW_TRY(lw_network_open(c->source, true, &n));
    LW_TRY(lw_network_form_of(n, (lw_library)c->to, f));
    LW_TRY(look_at_source(n, f, out));
    out->type = choose_type(c->type, out->type, f);
    LW_TRY(describe(n, f, out));
    if (c->dry_run)
        return 0;
    LW_TRY(lw_new_dir_begin(&d, c->output_dir, false));
    LW_TRY(write_files(n, f, lw_str_c(&d.tmp), out));
    LW_TRY(check_written(lw_str_c(&d.tmp)));
    return lw_new_dir_finish(&d);
}

/* ---- as one file of ONNX --------------------------------------------------------------------- */

static int check_onnx(const lw_convert_config *c)
{
    if (c->type != LW_CONVERT_KEEP && c->type != LW_CONVERT_F32)
        return lw_fail(LW_EUSAGE, "--dtype: ONNX files hold f32");
    return 0;
}

/* Its inputs and outputs by name, as the file has them. */
static json_t *describe_ports(const lw_graph *g)
{
    json_t *in = json_array(), *out = json_array();
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        if (n->op == LW_OP_INPUT)
            json_array_append_new(in, json_string(((const lw_attr_input *)n->attr)->name));
    }
    for (int i = 0; i < lw_graph_output_count(g); i++)
        json_array_append_new(out, json_string(lw_graph_output_at(g, i)->name));
    return json_pack("{s:o, s:o}", "inputs", in, "outputs", out);
}

static int describe_onnx(const lw_network *n, const lw_graph *g, lw_convert_result *out)
{
    snprintf(out->network, sizeof out->network, "%s", n->name);
    out->parameters = n->parameters;
    out->type = LW_ELEM_F32;
    out->bytes = (uint64_t)lw_store_param_count(n->store) * sizeof(float);
    out->config = describe_ports(g);
    out->notes = json_array();
    out->left_out = json_array();
    out->files = json_array();
    return add_file(out, "model.onnx");
}

static int convert_onnx(const lw_convert_config *c, lw_convert_result *out)
{
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_str_clear) lw_str model = {0}, path = {0};
    LW_TRY(lw_output_check("--output-dir", c->output_dir, LW_OUT_NEW_DIR));
    LW_TRY(lw_network_open(c->source, true, &n));
    LW_TRY(check_onnx(c));
    int32_t side = lw_network_side(n, c->image_size);
    LW_TRY(lw_graph_new(&g));
    LW_TRY(lw_network_build(n, g, c->batch, side, side, c->layer));
    LW_TRY(lw_onnx_of_graph(g, n->name, &model));
    LW_TRY(describe_onnx(n, g, out));
    if (c->dry_run)
        return 0;
    LW_TRY(lw_new_dir_begin(&d, c->output_dir, false));
    LW_TRY(lw_file_write(lw_path_join(&path, lw_str_c(&d.tmp), "model.onnx"), lw_str_c(&model),
                         model.len));
    return lw_new_dir_finish(&d);
}

int lw_job_convert(const lw_convert_config *c, lw_convert_result *out)
{
    LW_CLEANUP(lw_network_form_clear) lw_network_form f = {0};
    memset(out, 0, sizeof *out);
    int rc = c->to == LW_CONVERT_ONNX ? convert_onnx(c, out) : convert(c, &f, out);
    if (rc < 0)
        lw_convert_result_clear(out);
    return rc;
}

void lw_convert_result_clear(lw_convert_result *r)
{
    lw_json_drop(&r->config);
    lw_json_drop(&r->files);
    lw_json_drop(&r->left_out);
    lw_json_drop(&r->notes);
}
