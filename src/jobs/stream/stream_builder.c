/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stream/stream_builder.h"

/* So that the first frame costs what the next one does. */
static int warm(const lw_stream_builder *b)
{
    int32_t w, h;
    lw_translator_size(b->engine.translator, &w, &h);
    LW_CLEANUP(lw_free) uint8_t *frame = lw_calloc(lw_pixels_bytes(&b->in), 1);
    LW_CLEANUP(lw_free) uint8_t *rgb = lw_calloc((size_t)w * (size_t)h, 3);
    if (!frame || !rgb)
        return LW_ENOMEM;
    for (int i = 0; i < lw_device_warm_runs(b->engine.dev, true); i++)
        LW_TRY(lw_translator_run(b->engine.translator, frame, rgb));
    lw_translator_reset(b->engine.translator);
    return 0;
}

static int build(void *arg, int buffer)
{
    lw_stream_builder *b = arg;
    (void)buffer;
    if (b->done)
        return LW_MAILBOX_END;
    b->done = true;
    LW_TRY(lw_stream_engine_open(&b->engine, b->c, &b->o, &b->in));
    return warm(b);
}

static int drop(void *arg, int buffer)
{
    lw_stream_builder *b = arg;
    (void)buffer;
    lw_stream_engine_close(&b->engine);
    return LW_MAILBOX_END;
}

static int start(lw_stream_builder *b, lw_mailbox_fn *fn)
{
    b->done = false;
    LW_TRY(lw_mailbox_new(false, &b->work));
    const int rc = lw_mailbox_start_giver(b->work, fn, b);
    if (rc < 0)
        lw_mailbox_free(&b->work);
    return rc;
}

int lw_stream_builder_begin(lw_stream_builder *b, const lw_stream_config *c,
                            const lw_translator_opts *o, const lw_pixels *in)
{
    LW_ASSERT(!b->work, "two engines at a time");
    b->c = c;
    b->o = *o;
    b->in = *in;
    return start(b, build);
}

int lw_stream_builder_poll(lw_stream_builder *b, lw_stream_engine *out)
{
    int buffer;
    const int rc = b->work ? lw_mailbox_take(b->work, 0, &buffer) : LW_MAILBOX_NOT_YET;
    if (rc == LW_MAILBOX_NOT_YET)
        return rc;
    lw_mailbox_free(&b->work);
    if (rc == LW_MAILBOX_END) /* of a drop */
        return LW_MAILBOX_NOT_YET;
    *out = b->engine;
    b->engine = (lw_stream_engine){0};
    if (rc < 0)
        lw_stream_engine_close(out); /* the little that was there */
    return rc;
}

void lw_stream_builder_drop(lw_stream_builder *b, lw_stream_engine *e)
{
    LW_ASSERT(!b->work, "two engines at a time");
    b->engine = *e;
    *e = (lw_stream_engine){0};
    if (start(b, drop) < 0) /* no thread: here and now */
        lw_stream_engine_close(&b->engine);
}

void lw_stream_builder_close(lw_stream_builder *b)
{
    lw_mailbox_free(&b->work);
    lw_stream_engine_close(&b->engine);
}
