/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two slots: the network, the page, and with --pipeline the decoder in a thread of its own. */
#include <math.h>
#include <string.h>

#include "jobs/stream/stream_pipe.h"
#include "jobs/stream/stream_verbose.h"

/* One frame through the network. LW_STREAM_NOT_YET: its picture comes later. */
static int compute(stream_pipe *p, const stream_frame *from, stream_frame *to)
{
    to->tag = from->tag;
    to->begun = to->tag.taken = lw_now();
    if (lw_stream_undamaged(p->c))
        lw_translator_undamaged(p->network.now.translator, from->given);
    const int rc = lw_stream_network_run(&p->network, from->bytes, &to->tag, to->bytes);
    to->computed = lw_now();
    const uint8_t *given = rc == 0 ? lw_translator_given(p->network.now.translator) : NULL;
    to->has_given = given != NULL;
    to->watched = p->live.asked.watched;
    if (given)
        memcpy(to->given, given, lw_stream_rgb_bytes(p));
    return rc;
}

static void show(stream_pipe *p, const uint8_t *in, const stream_frame *to)
{
    const lw_stream_tag *t = &to->tag;
    const lw_stream_stamps stamps = {t->number,    t->captured, t->taken,
                                     to->computed, to->watched, t->mark};
    lw_stream_live_show(&p->live, in, to->bytes, &stamps);
}

static int give(stream_pipe *p, lw_mailbox *m)
{
    int rc;
    while ((rc = lw_mailbox_put(m, LW_STREAM_WAIT)) == LW_MAILBOX_NOT_YET)
        if (lw_observe_stop(p->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
    return rc;
}

static int log_window(stream_pipe *p, const stream_frame *from, const stream_frame *to)
{
    if (p->told_window)
        return 0;
    p->told_window = true;
    return lw_stream_log_window(p->c, &p->network, from->bytes, to->bytes);
}

int lw_stream_hand_on(stream_pipe *p, const stream_frame *from)
{
    stream_frame *to = p->mid ? &p->between[lw_mailbox_buffer(p->mid)]
                              : &p->behind[lw_mailbox_buffer(p->out)];
    const int rc = compute(p, from, to);
    if (rc != 0)
        return rc == LW_STREAM_NOT_YET ? 0 : rc;
    if (p->mid) {
        if (p->c->serve)
            memcpy(to->shown, from->bytes, lw_pixels_bytes(&p->intake.pixels));
        return give(p, p->mid);
    }
    LW_TRY(log_window(p, from, to));
    show(p, from->bytes, to);
    return give(p, p->out);
}

int lw_stream_land(stream_pipe *p, const stream_frame *from)
{
    for (int64_t left = from ? p->network.in_flight : 0; left > 0; left--)
        LW_TRY(lw_stream_hand_on(p, from));
    return 0;
}

/* ---- the decoder's thread ---------------------------------------------------------------------- */

/* What of the last pictures' decoding lay within the time that the network took for this frame. */
static void count_beside(stream_pipe *p, const stream_frame *from, double began, double ended)
{
    double both = 0;
    for (int i = 0; i < LW_MAILBOX_BUFFERS; i++)
        both += fmax(fmin(from->computed, p->decoding.ended[i]) -
                         fmax(from->begun, p->decoding.began[i]),
                     0);
    p->decoding.frames += both > 0;
    p->decoding.beside += both;
    p->decoding.spent += ended - began;
    p->decoding.began[p->decoding.n % LW_MAILBOX_BUFFERS] = began;
    p->decoding.ended[p->decoding.n % LW_MAILBOX_BUFFERS] = ended;
    p->decoding.n++;
}

int lw_stream_decode(void *arg, int buffer)
{
    stream_pipe *p = arg;
    const stream_frame *from = &p->between[buffer];
    stream_frame *to = &p->behind[lw_mailbox_buffer(p->out)];
    const double began = lw_now();
    int rc;
    LW_TRY(lw_stream_network_decode(&p->network, from->bytes, to->bytes));
    to->tag = from->tag;
    to->watched = from->watched;
    to->computed = lw_now();
    to->has_given = from->has_given;
    if (from->has_given)
        memcpy(to->given, from->given, lw_stream_rgb_bytes(p));
    count_beside(p, from, began, to->computed);
    show(p, from->shown, to);
    while ((rc = lw_mailbox_put(p->out, LW_STREAM_WAIT)) == LW_MAILBOX_NOT_YET)
        if (lw_mailbox_stopped(p->mid))
            return lw_fail(LW_ESTOPPED, "interrupted");
    return rc;
}
