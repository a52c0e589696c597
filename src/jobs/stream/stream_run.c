/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline: a thread reads, the caller's computes, a thread writes; between them a slot of one frame
 * each. Which thread owns what is written at the fields. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frames/frames.h"
#include "jobs/stream/stream_intake.h"
#include "jobs/stream/stream_drift.h"
#include "jobs/stream/stream_live.h"
#include "jobs/stream/stream_network.h"
#include "jobs/stream/stream_times.h"
#include "jobs/stream/stream_verbose.h"

#define WAIT 0.05 /* seconds between two questions whether to stop */

const char *const lw_stream_part_names[LW_STREAM_PARTS] = {"read", "wait", "compute", "out",
                                                           "glass_to_glass"};

/* A frame on its way: before the network as its source has it, behind it as RGB. */
typedef struct frame {
    uint8_t *bytes;
    uint8_t
        *given; /* behind the network: what it was given, at its picture's size, for the verdict */
    bool has_given;
    lw_stream_tag tag;
    double computed; /* lw_now() */
} frame;

typedef struct pipe {
    const lw_stream_config *c;
    const lw_observer *obs;
    lw_kernels kernels;
    lw_stream_network network;
    lw_frame_options options;
    lw_stream_intake intake;
    lw_frame_sink *sink[LW_STREAM_OUTPUTS];
    lw_stream_live live;
    lw_mailbox *in, *out, *troubles; /* troubles: of the source, for the caller's thread */
    char trouble[LW_MAILBOX_BUFFERS][256];
    frame before[LW_MAILBOX_BUFFERS], behind[LW_MAILBOX_BUFFERS];
    bool running, paced, told_window;
    double start;
    /* the source's thread */
    int64_t number;
    /* the sinks' thread, until it has ended */
    uint8_t *held; /* the last frame written */
    lw_stream_drift *drift;
    int64_t last, repeated;
    lw_times all[LW_STREAM_PARTS], second[LW_STREAM_PARTS];
    double said;
    lw_stream_report then; /* counts when a second was told last */
} pipe;

/* ---- the source's thread --------------------------------------------------------------------- */

/* The frame is due: frames of a file come at its rate. */
static int wait_until_due(pipe *p)
{
    const lw_frame_format *f = &p->intake.source->format;
    const double due = p->start + (double)p->number * f->per / f->rate;
    for (double left; (left = due - lw_now()) > 0;) {
        if (lw_mailbox_stopped(p->in))
            return LW_MAILBOX_END;
        lw_sleep(fmin(left, WAIT));
    }
    return 0;
}

static int read_frame(void *arg, int buffer)
{
    pipe *p = arg;
    frame *f = &p->before[buffer];
    if (p->c->num_frames && p->number == p->c->num_frames)
        return LW_MAILBOX_END;
    int rc = p->paced ? wait_until_due(p) : 0;
    if (rc != 0)
        return rc;
    rc = lw_stream_intake_next(&p->intake, p->number, f->bytes, &f->tag.captured);
    if (rc == 1 && p->c->loop) {
        LW_TRY(lw_frame_source_rewind(p->intake.source));
        rc = lw_stream_intake_next(&p->intake, p->number, f->bytes, &f->tag.captured);
    }
    if (rc != 0)
        return rc == 1 ? LW_MAILBOX_END : rc;
    f->tag.read = lw_now();
    memcpy(f->tag.mark, p->intake.source->mark, sizeof f->tag.mark);
    f->tag.number = p->number++;
    return 0;
}

/* ---- the sinks' thread ----------------------------------------------------------------------- */

static void report_counts(pipe *p, lw_stream_report *r)
{
    lw_mailbox_counts in = lw_mailbox_counted(p->in), out = lw_mailbox_counted(p->out);
    r->read = in.put;
    r->computed = in.taken;
    r->written = out.taken;
    r->dropped_in = in.dropped;
    r->dropped_out = out.dropped;
    r->repeated = p->repeated;
}

static void report_rates(lw_stream_report *r, const lw_stream_report *since, double seconds)
{
    const double per = seconds > 0 ? 1 / seconds : 0;
    r->fps_in = (double)(r->read - since->read) * per;
    r->fps_network = (double)(r->computed - since->computed) * per;
    r->fps_out = (double)(r->written - since->written) * per;
}

static void tell_second(pipe *p, double now)
{
    if ((!p->c->second && !p->live.serve) || now - p->said < 1)
        return;
    lw_stream_report r = {.seconds = now - p->start};
    report_counts(p, &r);
    report_rates(&r, &p->then, now - p->said);
    for (int k = 0; k < LW_STREAM_PARTS; k++)
        r.latency[k] = lw_times_latency(&p->second[k]);
    memset(p->second, 0, sizeof p->second);
    p->then = r;
    p->said = now;
    lw_stream_live_second(&p->live, &r);
    if (p->c->second)
        p->c->second(p->c->self, &r);
}

static void count_times(pipe *p, const frame *f, double handed)
{
    const double part[LW_STREAM_PARTS] = {f->tag.read - f->tag.captured, f->tag.taken - f->tag.read,
                                          f->computed - f->tag.taken, handed - f->computed,
                                          handed - f->tag.captured};
    for (int k = 0; k < LW_STREAM_PARTS; k++) {
        lw_times_add(&p->all[k], part[k]);
        lw_times_add(&p->second[k], part[k]);
    }
}

/* In files time passes with frames: the last one stands for those that were dropped, the first for
 * those before it. */
static int repeat_last(pipe *p, const frame *f)
{
    const uint8_t *rgb = p->last < 0 ? f->bytes : p->held;
    for (int64_t gap = f->tag.number - p->last - 1; gap > 0; gap--) {
        for (int i = 0; i < p->c->n_outputs; i++)
            if (lw_frame_sink_timed(p->sink[i]))
                LW_TRY(lw_frame_sink_put(p->sink[i], rgb));
        p->repeated++;
    }
    return 0;
}

static size_t rgb_bytes(const pipe *p)
{
    return (size_t)p->network.w * (size_t)p->network.h * 3;
}

static int write_frame(void *arg, int buffer)
{
    pipe *p = arg;
    const frame *f = &p->behind[buffer];
    LW_TRY(repeat_last(p, f));
    for (int i = 0; i < p->c->n_outputs; i++)
        LW_TRY(lw_frame_sink_put(p->sink[i], f->bytes));
    const double handed = lw_now();
    count_times(p, f, handed);
    if (!p->c->every_frame)
        memcpy(p->held, f->bytes, rgb_bytes(p));
    if (p->drift)
        LW_TRY(lw_stream_drift_add(p->drift, f->bytes, f->has_given ? f->given : NULL));
    p->last = f->tag.number;
    tell_second(p, handed);
    return 0;
}

/* ---- the caller's thread --------------------------------------------------------------------- */

static bool stopped(void *self)
{
    pipe *p = self;
    return p->running ? lw_mailbox_stopped(p->in) : lw_observe_stop(p->obs);
}

static void pipe_clear(pipe *p)
{
    lw_mailbox_free(&p->in); /* first the threads */
    lw_mailbox_free(&p->out);
    lw_mailbox_free(&p->troubles);
    lw_stream_live_close(&p->live);
    lw_stream_intake_close(&p->intake);
    for (int i = 0; i < LW_STREAM_OUTPUTS; i++)
        lw_frame_sink_close(&p->sink[i]);
    for (int i = 0; i < LW_MAILBOX_BUFFERS; i++) {
        lw_free(&p->before[i].bytes);
        lw_free(&p->behind[i].bytes);
        lw_free(&p->behind[i].given);
    }
    lw_free(&p->held);
    lw_stream_drift_free(&p->drift);
    lw_stream_network_close(&p->network);
}

static void pipe_free(pipe **pp)
{
    if (*pp)
        pipe_clear(*pp);
    lw_free(pp);
}

/* Of the source's thread. */
static void on_trouble(void *self, const char *why)
{
    pipe *p = self;
    snprintf(p->trouble[lw_mailbox_buffer(p->troubles)], sizeof p->trouble[0], "%s", why);
    (void)lw_mailbox_put(p->troubles, 0);
}

/* What the source says of itself, to page and log. */
static void pass_on_trouble(pipe *p)
{
    int buffer;
    if (lw_mailbox_take(p->troubles, 0, &buffer) != 0)
        return;
    const char *why = p->trouble[buffer];
    lw_stream_live_note(&p->live, why);
    lw_observe_say(p->obs, "%s%s", why[0] ? "the last frame stays: " : "frames come again", why);
}

static int camera(void *self, double seconds, lw_frame_picture *out)
{
    pipe *p = self;
    return lw_stream_live_camera(&p->live, seconds, out);
}

/* Frames of the network's size and the source's rate and colours. */
static int open_sinks(pipe *p)
{
    const lw_stream_config *c = p->c;
    lw_frame_format like = p->intake.source->format;
    like.w = p->network.w;
    like.h = p->network.h;
    for (int i = 0; i < c->n_outputs; i++)
        LW_TRY(lw_frame_sink_open(c->output[i], &like, &p->kernels, &p->sink[i]));
    return 0;
}

static int open_slots(pipe *p)
{
    for (int i = 0; i < LW_MAILBOX_BUFFERS; i++) {
        p->before[i].bytes = lw_calloc(lw_pixels_bytes(&p->intake.pixels), 1);
        p->behind[i].bytes = lw_calloc(rgb_bytes(p), 1);
        p->behind[i].given = lw_calloc(p->c->drift_metrics ? rgb_bytes(p) : 1, 1);
        if (!p->before[i].bytes || !p->behind[i].bytes || !p->behind[i].given)
            return LW_ENOMEM;
    }
    p->held = lw_calloc(rgb_bytes(p), 1);
    LW_TRY(p->held ? 0 : LW_ENOMEM);
    LW_TRY(lw_mailbox_new(p->c->every_frame, &p->in));
    return lw_mailbox_new(p->c->every_frame, &p->out);
}

static int pipe_open(pipe *p)
{
    const lw_stream_config *c = p->c;
    p->options = (lw_frame_options){.raw = c->raw,
                                    .fps = c->fps,
                                    .buffers = c->buffers,
                                    .reopen = c->reopen,
                                    .trouble = on_trouble,
                                    .matrix = c->matrix,
                                    .range = c->range,
                                    .stopped = stopped,
                                    .camera = c->serve ? camera : NULL,
                                    .self = p};
    LW_TRY(lw_mailbox_new(false, &p->troubles));
    LW_TRY(lw_stream_live_open(&p->live, c));
    lw_isa isa;
    LW_TRY(lw_isa_chosen(&isa));
    lw_kernels_init(&p->kernels, isa);
    LW_TRY(lw_stream_intake_open(&p->intake, c, &p->options, &p->kernels));
    LW_TRY(lw_stream_network_open(&p->network, c, &p->intake.pixels));
    LW_TRY(open_sinks(p));
    lw_stream_log_frames(p->intake.source, p->sink, c->n_outputs);
    lw_stream_log_network(c->network.model, &p->network);
    p->last = -1;
    p->paced = c->pace == LW_PACE_REALTIME || (c->pace == LW_PACE_BY_SOURCE && !c->every_frame &&
                                               !lw_frame_source_paces(p->intake.source));
    return open_slots(p);
}

/* One frame through the network. LW_STREAM_NOT_YET: its picture comes later. */
static int compute(pipe *p, const frame *from, frame *to)
{
    to->tag = from->tag;
    to->tag.taken = lw_now();
    const int rc = lw_stream_network_run(&p->network, from->bytes, &to->tag, to->bytes);
    to->computed = lw_now();
    const uint8_t *given = rc == 0 ? lw_translator_given(p->network.now.translator) : NULL;
    to->has_given = given != NULL;
    if (given)
        memcpy(to->given, given, rgb_bytes(p));
    return rc;
}

static void show(pipe *p, const frame *from, const frame *to)
{
    const lw_stream_tag *t = &to->tag;
    const lw_stream_stamps stamps = {t->number, t->captured, t->taken, to->computed, t->mark};
    lw_stream_live_show(&p->live, from->bytes, to->bytes, &stamps);
}

static int hand_on(pipe *p, const frame *from)
{
    frame *to = &p->behind[lw_mailbox_buffer(p->out)];
    int rc = compute(p, from, to);
    if (rc != 0)
        return rc == LW_STREAM_NOT_YET ? 0 : rc;
    if (!p->told_window)
        LW_TRY(lw_stream_log_window(p->c, &p->network, from->bytes, to->bytes));
    p->told_window = true;
    show(p, from, to);
    while ((rc = lw_mailbox_put(p->out, WAIT)) == LW_MAILBOX_NOT_YET)
        if (lw_observe_stop(p->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
    return rc;
}

/* The last frame once more for each that is still in flight. */
static int land(pipe *p, const frame *from)
{
    for (int64_t left = from ? p->network.in_flight : 0; left > 0; left--)
        LW_TRY(hand_on(p, from));
    return 0;
}

/* What the page asks for; waits while that is a pause. */
static int obey(pipe *p)
{
    for (;;) {
        lw_stream_live_obey(&p->live, &p->network, p->obs);
        if (!p->live.asked.paused)
            return 0;
        if (lw_observe_stop(p->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
        lw_sleep(WAIT);
    }
}

/* Until there are no more frames, or one of the threads fails, or we are to stop. */
static int pump(pipe *p)
{
    const frame *from = NULL;
    for (;;) {
        int buffer, rc;
        LW_TRY(obey(p));
        do {
            if (lw_observe_stop(p->obs))
                return lw_fail(LW_ESTOPPED, "interrupted");
            rc = lw_mailbox_take(p->in, WAIT, &buffer);
            pass_on_trouble(p);
        } while (rc == LW_MAILBOX_NOT_YET);
        if (rc == LW_MAILBOX_END)
            return land(p, from);
        LW_TRY(rc);
        from = &p->before[buffer];
        LW_TRY(hand_on(p, from));
    }
}

/* Numbers of the frames that went out, into their folder. */
static int finish_drift(pipe *p, lw_stream_report *out)
{
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    if (!p->drift)
        return 0;
    lw_str_addf(&what, "%s through %s", p->c->input, p->c->network.model);
    return what.failed ? LW_ENOMEM : lw_stream_drift_finish(p->drift, lw_str_c(&what), &out->drift);
}

/* Has both threads end, closes what was written; the first error stays. */
static int finish(pipe *p, int rc, lw_stream_report *out)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", rc < 0 ? lw_errmsg() : "");
    int end = lw_mailbox_end(p->out);
    for (int i = 0; i < p->c->n_outputs; i++) {
        int closed = lw_frame_sink_finish(p->sink[i], out->sums[i]);
        end = end < 0 ? end : closed;
    }
    int drift = finish_drift(p, out);
    end = end < 0 ? end : drift;
    out->seconds = lw_now() - p->start;
    out->similar = p->network.similar.skipped;
    report_counts(p, out);
    report_rates(out, &(lw_stream_report){0}, out->seconds);
    for (int k = 0; k < LW_STREAM_PARTS; k++)
        out->latency[k] = lw_times_latency(&p->all[k]);
    if (rc < 0)
        return lw_fail(rc, "%s", why);
    return end;
}

static int check(const lw_stream_config *c)
{
    int pipes = 0;
    for (int i = 0; i < c->n_outputs; i++)
        pipes += strcmp(c->output[i], "-") == 0;
    if (c->drift_beside && !c->drift_metrics)
        return lw_fail(LW_EUSAGE, "--drift-beside is of the plots of --drift-metrics DIR");
    if (c->drift_metrics && c->network.beside)
        return lw_fail(LW_EUSAGE,
                       "--drift-metrics is of the network's pictures: leave out --split");
    if (c->network.stream_batch > 1 && c->similarity > 0)
        return lw_fail(LW_EUSAGE, "--similarity skips frames, --stream-batch needs all of them: "
                                  "leave out one");
    if (pipes > 1)
        return lw_fail(LW_EUSAGE, "--output - is there twice");
    if (!c->serve && (c->n_tls || c->insecure))
        return lw_fail(LW_EUSAGE, "--%s is for --serve", c->n_tls ? "tls" : "insecure");
    if (!c->serve && c->n_models)
        return lw_fail(LW_EUSAGE, "--models are for the page: add --serve");
    if (c->n_tls == 1)
        return lw_fail(LW_EUSAGE, "--tls %s: name a certificate and its key", c->tls[0]);
    if (c->every_frame && c->loop && c->num_frames == 0)
        return lw_fail(LW_EUSAGE, "--every-frame with --loop never ends: add --num-frames");
    return 0;
}

int lw_job_stream(const lw_stream_config *c, const lw_observer *obs, lw_stream_report *out)
{
    *out = (lw_stream_report){0};
    LW_TRY(check(c));
    LW_CLEANUP(pipe_free) pipe *p = lw_calloc(1, sizeof *p);
    if (!p)
        return LW_ENOMEM;
    p->c = c;
    p->obs = obs;
    LW_TRY(pipe_open(p));
    if (c->drift_metrics) /* of frames as they go out */
        LW_TRY(lw_stream_drift_new(c->drift_metrics, c->drift_beside, p->sink[0]->format.w,
                                   p->sink[0]->format.h, &p->drift));
    lw_frame_format_text(out->input, &p->intake.source->format);
    lw_translator_network_size(p->network.now.translator, &out->network_w, &out->network_h);
    p->running = true;
    LW_TRY(lw_stream_live_start(&p->live, &p->intake, c->network.beside, p->network.w, p->network.h,
                                obs));
    p->start = p->said = lw_now();
    LW_TRY(lw_mailbox_start_taker(p->out, write_frame, p));
    LW_TRY(lw_mailbox_start_giver(p->in, read_frame, p));
    int rc = pump(p);
    rc = finish(p, rc, out);
    lw_mailbox_free(
        &p->in); /* its thread may still wait for the source, whose error nobody asks for */
    out->skipped = p->intake.source->skipped;
    return rc;
}
