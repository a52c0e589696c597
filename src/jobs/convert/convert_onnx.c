/* SPDX-License-Identifier: Apache-2.0 */
/* Names, tensors and the file of an ONNX model; field numbers are those of onnx.proto. */
#include "jobs/convert/convert_onnx.h"

#include <stdio.h>
#include <string.h>

/* IR version 8 and operator set 17 are the oldest with all that is used. */
enum { IR_VERSION = 8, OPSET = 17 };
enum { ATTR_FLOAT = 1, ATTR_INT = 2, ATTR_STRING = 3, ATTR_INTS = 7 };
enum { TYPE_NONE = 0, TYPE_FLOAT = 1, TYPE_INT32 = 6, TYPE_INT64 = 7 };

static int type_of(lw_dtype t)
{
    return t == LW_F32   ? TYPE_FLOAT
           : t == LW_I32 ? TYPE_INT32
           : t == LW_I64 ? TYPE_INT64
                         : TYPE_NONE;
}

/* Parameters keep their names, all else is numbered. */
static const char *name_of(const lw_onnx *m, lw_onnx_val v, char buf[16])
{
    if (v && v <= lw_graph_val_count(m->g)) {
        const lw_attr_param *p = lw_node_param(lw_val_node(m->g, (lw_val){v}));
        if (p)
            return p->name;
    }
    snprintf(buf, 16, "v%u", v);
    return v ? buf : "";
}

/* ---- attributes and nodes -------------------------------------------------------------------- */

static void add_attr(lw_onnx *m, const char *name, int type, const lw_str *value)
{
    LW_CLEANUP(lw_str_clear) lw_str a = {0};
    lw_pb_text(&a, 1, name);
    lw_str_add_n(&a, lw_str_c(value), value->len);
    lw_pb_int(&a, 20, type);
    a.failed = a.failed || value->failed;
    lw_pb_message(&m->attrs, 5, &a);
}

void lw_onnx_int(lw_onnx *m, const char *name, int64_t v)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_pb_int(&s, 3, v);
    add_attr(m, name, ATTR_INT, &s);
}

void lw_onnx_ints(lw_onnx *m, const char *name, const int64_t *v, int n)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    for (int i = 0; i < n; i++)
        lw_pb_int(&s, 8, v[i]);
    add_attr(m, name, ATTR_INTS, &s);
}

void lw_onnx_float(lw_onnx *m, const char *name, float v)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_pb_float(&s, 2, v);
    add_attr(m, name, ATTR_FLOAT, &s);
}

void lw_onnx_word(lw_onnx *m, const char *name, const char *v)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_pb_text(&s, 4, v);
    add_attr(m, name, ATTR_STRING, &s);
}

/* in and out: names. */
static void add_node(lw_onnx *m, const char *op, const char *const *in, int n, const char *out)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    for (int i = 0; i < n; i++)
        lw_pb_text(&s, 1, in[i]);
    lw_pb_text(&s, 2, out);
    lw_pb_text(&s, 4, op);
    lw_str_add_n(&s, lw_str_c(&m->attrs), m->attrs.len);
    s.failed = s.failed || m->attrs.failed;
    lw_pb_message(&m->nodes, 1, &s);
    lw_str_clear(&m->attrs);
}

void lw_onnx_node(lw_onnx *m, const char *op, const lw_onnx_val *in, int n, lw_onnx_val out)
{
    char buf[LW_MAX_IN][16], to[16];
    const char *name[LW_MAX_IN];
    for (int i = 0; i < n; i++)
        name[i] = name_of(m, in[i], buf[i]);
    add_node(m, op, name, n, name_of(m, out, to));
}

lw_onnx_val lw_onnx_1(lw_onnx *m, const char *op, lw_onnx_val a)
{
    lw_onnx_node(m, op, &a, 1, ++m->last);
    return m->last;
}

lw_onnx_val lw_onnx_2(lw_onnx *m, const char *op, lw_onnx_val a, lw_onnx_val b)
{
    lw_onnx_node(m, op, (lw_onnx_val[]){a, b}, 2, ++m->last);
    return m->last;
}

lw_onnx_val lw_onnx_3(lw_onnx *m, const char *op, lw_onnx_val a, lw_onnx_val b, lw_onnx_val c)
{
    lw_onnx_node(m, op, (lw_onnx_val[]){a, b, c}, 3, ++m->last);
    return m->last;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void add_tensor(lw_onnx *m, const char *name, lw_type t, const void *data)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    for (int i = 0; i < t.rank; i++)
        lw_pb_int(&s, 1, t.dim[i]);
    lw_pb_int(&s, 2, type_of(t.dtype));
    lw_pb_text(&s, 8, name);
    lw_pb_bytes(&s, 9, data, lw_type_bytes(t));
    lw_pb_message(&m->tensors, 5, &s);
}

static lw_onnx_val constant(lw_onnx *m, lw_dtype t, const void *v, int n)
{
    char name[16];
    add_tensor(m, name_of(m, ++m->last, name), lw_type_of(t, 1, n), v);
    return m->last;
}

lw_onnx_val lw_onnx_i64(lw_onnx *m, const int64_t *v, int n)
{
    return constant(m, LW_I64, v, n);
}

lw_onnx_val lw_onnx_f32s(lw_onnx *m, const float *v, int n)
{
    return constant(m, LW_F32, v, n);
}

lw_onnx_val lw_onnx_f32(lw_onnx *m, float v)
{
    return constant(m, LW_F32, &v, 1);
}

lw_onnx_val lw_onnx_shape(lw_onnx *m, lw_onnx_val x, const int64_t *dim, int rank)
{
    return lw_onnx_2(m, "Reshape", x, lw_onnx_i64(m, dim, rank));
}

lw_onnx_val lw_onnx_turn(lw_onnx *m, lw_onnx_val x, const int64_t *perm, int rank)
{
    lw_onnx_ints(m, "perm", perm, rank);
    return lw_onnx_1(m, "Transpose", x);
}

static const int64_t to_planar[4] = {0, 3, 1, 2}, to_last[4] = {0, 2, 3, 1};

lw_onnx_val lw_onnx_planar(lw_onnx *m, lw_onnx_val x)
{
    return lw_onnx_turn(m, x, to_planar, 4);
}

lw_onnx_val lw_onnx_last(lw_onnx *m, lw_onnx_val x)
{
    return lw_onnx_turn(m, x, to_last, 4);
}

lw_onnx_val lw_onnx_in(const lw_node *n, int i)
{
    return i < n->n_in ? n->in[i].id : 0;
}

lw_type lw_onnx_type(const lw_onnx *m, const lw_node *n, int i)
{
    return lw_val_type(m->g, n->in[i]);
}

lw_onnx_val lw_onnx_row(lw_onnx *m, const lw_node *n, int i)
{
    lw_type t = lw_onnx_type(m, n, i);
    return t.rank == 1 ? lw_onnx_in(n, i)
                       : lw_onnx_shape(m, lw_onnx_in(n, i), (int64_t[]){lw_type_count(t)}, 1);
}

/* ---- what goes in and comes out -------------------------------------------------------------- */

/* Field `field` of GraphProto: a name and a type; pictures have their channels in front. */
static void add_port(lw_str *to, unsigned field, const char *name, lw_type t)
{
    LW_CLEANUP(lw_str_clear) lw_str shape = {0}, tensor = {0}, type = {0}, port = {0};
    for (int i = 0; i < t.rank; i++) {
        LW_CLEANUP(lw_str_clear) lw_str dim = {0};
        lw_pb_int(&dim, 1, t.dim[t.rank == 4 ? to_planar[i] : i]);
        lw_pb_message(&shape, 1, &dim);
    }
    lw_pb_int(&tensor, 1, type_of(t.dtype));
    lw_pb_message(&tensor, 2, &shape);
    lw_pb_message(&type, 1, &tensor);
    lw_pb_text(&port, 1, name);
    lw_pb_message(&port, 2, &type);
    lw_pb_message(to, field, &port);
}

static void pass(lw_onnx *m, const char *from, const char *to, const int64_t *perm, lw_type t)
{
    if (t.rank == 4)
        lw_onnx_ints(m, "perm", perm, 4);
    add_node(m, t.rank == 4 ? "Transpose" : "Identity", &from, 1, to);
}

/* Does an operation or an output take v? */
static bool is_read(const lw_graph *g, lw_val v)
{
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *n = lw_graph_node(g, k);
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i].id == v.id)
                return true;
    }
    for (int i = 0; i < lw_graph_output_count(g); i++)
        if (lw_graph_output_at(g, i)->val.id == v.id)
            return true;
    return false;
}

static int add_leaf(lw_onnx *m, const lw_node *n)
{
    char name[16];
    const lw_attr_const *c = lw_node_const(n);
    const lw_attr_param *p = lw_node_param(n);
    lw_type t = lw_val_type(m->g, n->out[0]);
    if ((p || c) && !is_read(m->g, n->out[0]))
        return 0; /* runtimes warn of tensors that nothing takes */
    if (type_of(t.dtype) == TYPE_NONE)
        return lw_fail(LW_EUNSUPPORTED, "%s: an input of %s, which ONNX files of ours do not hold",
                       lw_op_get(n->op)->name, lw_dtype_name(t.dtype));
    if (p) {
        const void *data = p->params->address(p->params->self, p->index, LW_SLAB_PARAM);
        if (!data)
            return lw_fail(LW_EUNSUPPORTED, "%s has no values", p->name);
        add_tensor(m, p->name, t, data);
    } else if (c) {
        add_tensor(m, name_of(m, n->out[0].id, name), t, c->data);
    } else {
        const char *in = ((const lw_attr_input *)n->attr)->name;
        add_port(&m->inputs, 11, in, t);
        pass(m, in, name_of(m, n->out[0].id, name), to_last, t);
    }
    return 0;
}

static int add_op(lw_onnx *m, const lw_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (lw_val_ok(n->in[i]) && lw_val_slot(m->g, n->in[i]) != 0)
            return lw_fail(LW_EUNSUPPORTED,
                           "%s (%s) takes a side result, which has no form in ONNX here",
                           lw_op_get(n->op)->name, n->scope);
    lw_onnx_val made = n->op == LW_OP_EW ? lw_onnx_ew(m, n) : lw_onnx_op(m, n);
    if (!made)
        return lw_fail(
            LW_EUNSUPPORTED,
            "op %s (%s) has no form in ONNX here: this network cannot be converted to it",
            lw_op_get(n->op)->name, *n->scope ? n->scope : "top");
    lw_onnx_node(m, "Identity", &made, 1, n->out[0].id);
    return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int put_file(const lw_onnx *m, const char *name, lw_str *out)
{
    LW_CLEANUP(lw_str_clear) lw_str opset = {0};
    const lw_str *part[] = {&m->nodes, &m->tensors, &m->inputs, &m->outputs};
    LW_CLEANUP(lw_str_clear) lw_str title = {0};
    lw_pb_text(&title, 2, name);
    size_t bytes = title.len;
    bool failed = title.failed;
    for (int i = 0; i < 4; i++) {
        bytes += part[i]->len;
        failed |= part[i]->failed;
    }
    if (failed)
        return lw_fail(LW_ENOMEM, "%s: no memory for an ONNX file", name);
    if (bytes > INT32_MAX - 4096)
        return lw_fail(LW_EUNSUPPORTED, "%s: an ONNX file holds 2 GB, this one needs %.1f GB", name,
                       (double)bytes * 1e-9);
    lw_pb_int(out, 1, IR_VERSION);
    lw_pb_text(out, 2, "leeway");
    lw_pb_int(&opset, 2, OPSET);
    lw_pb_message(out, 8, &opset);
    lw_pb_head(out, 7, bytes);
    lw_str_add_n(out, lw_str_c(&title), title.len);
    for (int i = 0; i < 4; i++)
        lw_str_add_n(out, lw_str_c(part[i]), part[i]->len);
    return out->failed ? lw_fail(LW_ENOMEM, "%s: no memory for an ONNX file", name) : 0;
}

static int add_graph(lw_onnx *m)
{
    char buf[16];
    for (uint32_t i = 0; i < lw_graph_node_count(m->g); i++) {
        const lw_node *n = lw_graph_node(m->g, i);
        LW_TRY(lw_node_is(n, LW_OPF_LEAF) ? add_leaf(m, n) : add_op(m, n));
    }
    for (int i = 0; i < lw_graph_output_count(m->g); i++) {
        const lw_graph_output *o = lw_graph_output_at(m->g, i);
        lw_type t = lw_val_type(m->g, o->val);
        if (lw_val_slot(m->g, o->val) != 0)
            return lw_fail(LW_EUNSUPPORTED,
                           "output %s is a side result, which has no form in ONNX here", o->name);
        pass(m, name_of(m, o->val.id, buf), o->name, to_planar, t);
        add_port(&m->outputs, 12, o->name, t);
    }
    return 0;
}

int lw_onnx_of_graph(const lw_graph *g, const char *name, lw_str *model)
{
    lw_onnx m = {.g = g, .last = lw_graph_val_count(g)};
    LW_TRY(lw_graph_error(g));
    int rc = add_graph(&m);
    if (rc == 0)
        rc = put_file(&m, name, model);
    lw_str_clear(&m.nodes);
    lw_str_clear(&m.tensors);
    lw_str_clear(&m.inputs);
    lw_str_clear(&m.outputs);
    lw_str_clear(&m.attrs);
    return rc;
}
