/* SPDX-License-Identifier: Apache-2.0 */
/* Models and sessions over jobs' networks and forwards. */
#include "api/api_private.h"

#include "plan/plan.h"
#include "session/session.h"

struct lw_session {
    lw_forward *forward;
};

/* ---- models ---------------------------------------------------------------------------------- */

int lw_model_open(const char *path, lw_model **model)
{
    API_FLOATS();
    API_NEED(path);
    API_NEED(model);
    LW_TRY(lw_log_config_once());
    lw_model *m = lw_calloc(1, sizeof *m);
    int rc = m ? lw_network_open(path, true, &m->net) : LW_ENOMEM;
    if (rc < 0)
        lw_free(&m);
    else
        *model = m;
    return rc;
}

void lw_model_close(lw_model **model)
{
    if (!model || !*model || lw_api_running(NULL, "lw_model_close"))
        return;
    lw_network_close(&(*model)->net);
    lw_free(model);
}

int lw_model_describe(const lw_model *model, lw_model_info *info)
{
    API_NEED(model);
    const lw_network *n = model->net;
    lw_model_info i = {.kind = n->def->kind,
                       .network = n->name,
                       .parameters = n->parameters,
                       .channels = n->channels,
                       .image_size = n->image_size,
                       .classes = n->classes,
                       .latent = n->latent,
                       .method = n->generator ? lw_method_name(lw_net_method(n->config)) : NULL,
                       .noise_size = n->noise_size};
    return API_WRITE(info, i);
}

const char *lw_model_class_name(const lw_model *model, int label)
{
    if (!model) {
        lw_fail(LW_EUSAGE, "lw_model_class_name: model is NULL");
        return NULL;
    }
    const json_t *names = json_object_get(model->net->config, "leeway_class_names");
    return label < 0 ? NULL : json_string_value(json_array_get(names, (size_t)label));
}

/* ---- sessions -------------------------------------------------------------------------------- */

int lw_session_new(lw_device *device, const lw_model *model, const lw_session_options *options,
                   lw_session **session)
{
    lw_session_options o = {0};
    API_FLOATS();
    API_NEED(device);
    API_NEED(model);
    API_NEED(session);
    if (options)
        LW_TRY(API_READ(o, options));
    if (o.batch < 0 || o.batch > 65536 || o.height < 0 || o.width < 0 || o.height > 32768 ||
        o.width > 32768)
        return lw_fail(LW_EUSAGE,
                       "a session of %d rows of %dx%d: at most 65536 rows of 32768x32768", o.batch,
                       o.height, o.width);
    lw_session *s = lw_calloc(1, sizeof *s);
    lw_forward_opts f = {
        .batch = LW_MAX(o.batch, 1), .height = o.height, .width = o.width, .output = o.output};
    int rc = s ? lw_forward_new(device, model->net, &f, &s->forward) : LW_ENOMEM;
    if (rc < 0)
        lw_free(&s);
    else
        *session = s;
    return rc;
}

void lw_session_free(lw_session **session)
{
    if (!session || !*session || lw_api_running(*session, "lw_session_free"))
        return;
    lw_forward_free(&(*session)->forward);
    lw_free(session);
}

int lw_session_tensors(const lw_session *session)
{
    API_NEED(session);
    return lw_forward_count(session->forward);
}

static size_t port_bytes(const lw_port *p)
{
    return (size_t)p->shape[0] * p->bytes;
}

int lw_session_tensor(const lw_session *session, int index, lw_tensor_info *info)
{
    API_NEED(session);
    if (index < 0 || index >= lw_forward_count(session->forward))
        return lw_fail(LW_EUSAGE, "tensor %d: the session has %d", index,
                       lw_forward_count(session->forward));
    const lw_port *p = lw_forward_port(session->forward, index);
    lw_tensor_info i = {.name = p->name,
                        .is_output = p->output,
                        .rank = p->rank,
                        .bytes = port_bytes(p),
                        .element = p->integer ? LW_ELEMENT_I32 : LW_ELEMENT_F32};
    for (int k = 0; k < p->rank; k++)
        i.shape[k] = p->shape[k];
    return API_WRITE(info, i);
}

static int find(const lw_session *s, const char *name, size_t bytes, const lw_port **out)
{
    const lw_port *p = NULL;
    LW_TRY(lw_forward_find(s->forward, name, &p));
    if (bytes != port_bytes(p))
        return lw_fail(LW_EUSAGE, "tensor '%s' has %zu bytes, %zu were given", name, port_bytes(p),
                       bytes);
    *out = p;
    return 0;
}

int lw_session_set(lw_session *session, const char *name, const void *data, size_t bytes)
{
    const lw_port *p = NULL;
    API_NEED(session);
    API_NEED(name);
    API_NEED(data);
    LW_TRY(find(session, name, bytes, &p));
    if (p->output)
        return lw_fail(LW_EUSAGE, "tensor '%s' is an output", name);
    LW_TRY(lw_api_idle(session, "lw_session_set"));
    return lw_forward_set(session->forward, p, p->shape[0], data);
}

int lw_session_borrow(lw_session *session, const char *name, const void *data, size_t bytes)
{
    const lw_port *p = NULL;
    API_NEED(session);
    API_NEED(name);
    if (!data)
        LW_TRY(lw_forward_find(session->forward, name, &p));
    else
        LW_TRY(find(session, name, bytes, &p));
    if (p->output)
        return lw_fail(LW_EUSAGE, "tensor '%s' is an output", name);
    if ((uintptr_t)data % sizeof(float) != 0)
        return lw_fail(LW_EUSAGE, "tensor '%s': its memory begins at no multiple of %zu bytes",
                       name, sizeof(float));
    LW_TRY(lw_api_idle(session, "lw_session_borrow"));
    return lw_forward_bind(session->forward, p, data);
}

int lw_session_run(lw_session *session)
{
    lw_api_use use;
    API_NEED(session);
    LW_TRY(lw_api_enter(&use, session, "lw_session_run"));
    int rc = lw_forward_run(session->forward, NULL);
    lw_api_leave(&use);
    return rc;
}

int lw_session_get(const lw_session *session, const char *name, void *data, size_t bytes)
{
    const lw_port *p = NULL;
    API_NEED(session);
    API_NEED(name);
    API_NEED(data);
    LW_TRY(find(session, name, bytes, &p));
    return lw_forward_get(session->forward, p, p->shape[0], data);
}

/* ---- many rows ------------------------------------------------------------------------------- */

static void report(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    (void)what;
    (void)note;
    lw_api_progress(self, done, total);
}

static bool should_stop(void *self)
{
    return lw_api_cancelled(self);
}

enum { MOST_TENSORS = 32 };

int lw_session_run_rows(lw_session *session, int64_t rows, const lw_session_rows *tensors,
                        int count, const lw_callbacks *callbacks)
{
    lw_callbacks c = {0};
    lw_feed feed[MOST_TENSORS];
    API_NEED(session);
    API_NEED(tensors);
    if (callbacks)
        LW_TRY(API_READ(c, callbacks));
    if (rows < 0)
        return lw_fail(LW_EUSAGE, "lw_session_run_rows: rows is %lld: must be 0 or more",
                       (long long)rows);
    if (count < 1 || count > MOST_TENSORS)
        return lw_fail(LW_EUSAGE, "lw_session_run_rows: count is %d: must be 1 to %d tensors",
                       count, MOST_TENSORS);
    for (int i = 0; i < count; i++) {
        const lw_port *p = NULL;
        if (!tensors[i].name)
            return lw_fail(LW_EUSAGE, "lw_session_run_rows: tensors[%d].name is NULL", i);
        LW_TRY(lw_forward_find(session->forward, tensors[i].name, &p));
        if (rows > INT64_MAX / 8 / p->row)
            return lw_fail(LW_EUSAGE,
                           "lw_session_run_rows: rows is %lld: '%s' of so many rows "
                           "does not fit memory",
                           (long long)rows, p->name);
        if (p->output ? !tensors[i].out || tensors[i].in : !tensors[i].in || tensors[i].out)
            return lw_fail(LW_EUSAGE, "tensor '%s' is an %s: set its .%s and nothing else", p->name,
                           p->output ? "output" : "input", p->output ? "out" : "in");
        if (!p->output) /* before anything is written */
            LW_TRY(lw_forward_check(session->forward, p, rows, tensors[i].in));
        feed[i] = (lw_feed){.name = p->name, .in = tensors[i].in, .out = tensors[i].out};
    }
    lw_observer o = {.self = &c, .progress = report, .should_stop = should_stop};
    lw_api_use use;
    LW_TRY(lw_api_enter(&use, session, "lw_session_run_rows"));
    int rc = lw_forward_rows(session->forward, "run", rows, feed, count, &o);
    lw_api_leave(&use);
    return rc;
}
