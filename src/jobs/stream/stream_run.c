/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline: a thread reads, the caller's computes, a thread writes; between them a slot of one frame
 * each. Which thread owns what is written at the fields. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames/frames.h"
#include "jobs/stream/stream_intake.h"
#include "jobs/stream/stream_drift.h"
#include "jobs/stream/stream_pipe.h"
#include "jobs/stream/stream_times.h"
#include "jobs/stream/stream_verbose.h"

const char *const lw_stream_part_names[LW_STREAM_PARTS] = {"read", "wait", "compute", "out",
                                                           "glass_to_glass"};

/* ---- the source's thread --------------------------------------------------------------------- */

/* The frame is due: frames of a file come at its rate. */
static int wait_until_due(stream_pipe *p)
{
    const lw_frame_format *f = &p->intake.source->format;
    const double due = p->start + (double)p->number * f->per / f->rate;
    for (double left; (left = due - lw_now()) > 0;) {
        if (lw_mailbox_stopped(p->in))
            return LW_MAILBOX_END;
        lw_sleep(fmin(left, LW_STREAM_WAIT));
    }
    return 0;
}

static int take(stream_pipe *p, stream_frame *f)
{
    return lw_stream_intake_next(&p->intake, p->number, f->bytes,
                                 lw_stream_undamaged(p->c) ? f->given : NULL, &f->tag.captured);
}

static int read_frame(void *arg, int buffer)
{
    stream_pipe *p = arg;
    stream_frame *f = &p->before[buffer];
    if (p->c->num_frames && p->number == p->c->num_frames)
        return LW_MAILBOX_END;
    int rc = p->paced ? wait_until_due(p) : 0;
    if (rc != 0)
        return rc;
    rc = take(p, f);
    if (rc == 1 && p->c->loop) {
        LW_TRY(lw_frame_source_rewind(p->intake.source));
        rc = take(p, f);
    }
    if (rc != 0)
        return rc == 1 ? LW_MAILBOX_END : rc;
    f->tag.read = lw_now();
    memcpy(f->tag.mark, p->intake.source->mark, sizeof f->tag.mark);
    f->tag.number = p->number++;
    return 0;
}

/* ---- the sinks' thread ----------------------------------------------------------------------- */

static void report_counts(stream_pipe *p, lw_stream_report *r)
{
    lw_mailbox_counts in = lw_mailbox_counted(p->in), out = lw_mailbox_counted(p->out);
    r->read = in.put;
    r->computed = in.taken;
    r->written = p->written;
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

static void tell_second(stream_pipe *p, double now)
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

static void count_times(stream_pipe *p, const stream_frame *f, double handed)
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
static int repeat_last(stream_pipe *p, const stream_frame *f)
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

static int write_frame(void *arg, int buffer)
{
    stream_pipe *p = arg;
    const stream_frame *f = &p->behind[buffer];
    LW_TRY(repeat_last(p, f));
    for (int i = 0; i < p->c->n_outputs; i++)
        LW_TRY(lw_frame_sink_put(p->sink[i], f->bytes));
    p->written++;
    const double handed = lw_now();
    count_times(p, f, handed);
    if (!p->c->every_frame)
        memcpy(p->held, f->bytes, lw_stream_rgb_bytes(p));
    if (p->drift)
        LW_TRY(lw_stream_drift_add(p->drift, f->bytes, f->has_given ? f->given : NULL));
    p->last = f->tag.number;
    tell_second(p, handed);
    return 0;
}

/* ---- the caller's thread --------------------------------------------------------------------- */

static bool stopped(void *self)
{
    stream_pipe *p = self;
    return p->running ? lw_mailbox_stopped(p->in) : lw_observe_stop(p->obs);
}

static void close_frame(stream_frame *f)
{
    lw_free(&f->bytes);
    lw_free(&f->given);
    lw_free(&f->shown);
}

static void pipe_clear(stream_pipe *p)
{
    lw_mailbox_free(&p->in); /* first the threads, each before the one it gives to */
    lw_mailbox_free(&p->mid);
    lw_mailbox_free(&p->out);
    lw_mailbox_free(&p->troubles);
    lw_stream_live_close(&p->live);
    lw_stream_intake_close(&p->intake);
    for (int i = 0; i < LW_STREAM_OUTPUTS; i++)
        lw_frame_sink_close(&p->sink[i]);
    for (int i = 0; i < LW_MAILBOX_BUFFERS; i++) {
        close_frame(&p->before[i]);
        close_frame(&p->between[i]);
        close_frame(&p->behind[i]);
    }
    lw_free(&p->held);
    lw_stream_drift_free(&p->drift);
    lw_stream_network_close(&p->network);
}

static void pipe_free(stream_pipe **pp)
{
    if (*pp)
        pipe_clear(*pp);
    lw_free(pp);
}

/* Of the source's thread. */
static void on_trouble(void *self, const char *why)
{
    stream_pipe *p = self;
    snprintf(p->trouble[lw_mailbox_buffer(p->troubles)], sizeof p->trouble[0], "%s", why);
    (void)lw_mailbox_put(p->troubles, 0);
}

/* What the source says of itself, to page and log. */
static void pass_on_trouble(stream_pipe *p)
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
    stream_pipe *p = self;
    return lw_stream_live_camera(&p->live, seconds, out);
}

/* Frames of the network's size and the source's rate and colours. */
static int open_sinks(stream_pipe *p)
{
    const lw_stream_config *c = p->c;
    lw_frame_format like = p->intake.source->format;
    like.w = p->network.w;
    like.h = p->network.h;
    for (int i = 0; i < c->n_outputs; i++)
        LW_TRY(lw_frame_sink_open(c->output[i], &like, &p->kernels, &p->sink[i]));
    return 0;
}

/* A frame of so many bytes; of others none where they are not wanted. */
static int open_frame(stream_frame *f, size_t bytes, size_t given, size_t shown)
{
    f->bytes = lw_calloc(bytes, 1);
    f->given = lw_calloc(LW_MAX(given, 1), 1);
    f->shown = lw_calloc(LW_MAX(shown, 1), 1);
    return f->bytes && f->given && f->shown ? 0 : LW_ENOMEM;
}

static int open_slots(stream_pipe *p)
{
    const lw_stream_config *c = p->c;
    const size_t in = lw_pixels_bytes(&p->intake.pixels), rgb = lw_stream_rgb_bytes(p),
                 given = c->drift_metrics ? rgb : 0;
    for (int i = 0; i < LW_MAILBOX_BUFFERS; i++) {
        LW_TRY(open_frame(&p->before[i], in, lw_stream_undamaged(c) ? in : 0, 0));
        LW_TRY(open_frame(&p->behind[i], rgb, given, 0));
        if (c->pipeline)
            LW_TRY(open_frame(&p->between[i], p->network.result, given, c->serve ? in : 0));
    }
    p->held = lw_calloc(rgb, 1);
    LW_TRY(p->held ? 0 : LW_ENOMEM);
    LW_TRY(lw_mailbox_new(c->every_frame, &p->in));
    if (c->pipeline) /* what the network has made is never thrown away */
        LW_TRY(lw_mailbox_new(true, &p->mid));
    return lw_mailbox_new(c->every_frame, &p->out);
}

static int pipe_open(stream_pipe *p)
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

/* What the page asks for; waits while that is a pause. */
static int obey(stream_pipe *p)
{
    for (;;) {
        lw_stream_live_obey(&p->live, &p->network, p->obs);
        if (!p->live.asked.paused)
            return 0;
        if (lw_observe_stop(p->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
        lw_sleep(LW_STREAM_WAIT);
    }
}

/* Until there are no more frames, or one of the threads fails, or we are to stop. */
static int pump(stream_pipe *p)
{
    const stream_frame *from = NULL;
    for (;;) {
        int buffer, rc;
        LW_TRY(obey(p));
        do {
            if (lw_observe_stop(p->obs))
                return lw_fail(LW_ESTOPPED, "interrupted");
            rc = lw_mailbox_take(p->in, LW_STREAM_WAIT, &buffer);
            pass_on_trouble(p);
        } while (rc == LW_MAILBOX_NOT_YET);
        if (rc == LW_MAILBOX_END)
            return lw_stream_land(p, from);
        LW_TRY(rc);
        from = &p->before[buffer];
        LW_TRY(lw_stream_hand_on(p, from));
    }
}

/* Numbers of the frames that went out, into their folder. */
static int finish_drift(stream_pipe *p, lw_stream_report *out)
{
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    if (!p->drift)
        return 0;
    lw_str_addf(&what, "%s through %s", p->c->input, p->c->network.model);
    return what.failed ? LW_ENOMEM : lw_stream_drift_finish(p->drift, lw_str_c(&what), &out->drift);
}

/* Has both threads end, closes what was written; the first error stays. */
static int finish(stream_pipe *p, int rc, lw_stream_report *out)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", rc < 0 ? lw_errmsg() : "");
    int end = p->mid ? lw_mailbox_end(p->mid) : 0;
    int out_end = lw_mailbox_end(p->out);
    end = end < 0 ? end : out_end;
    for (int i = 0; i < p->c->n_outputs; i++) {
        int closed = lw_frame_sink_finish(p->sink[i], out->sums[i]);
        end = end < 0 ? end : closed;
    }
    int drift = finish_drift(p, out);
    end = end < 0 ? end : drift;
    out->seconds = lw_now() - p->start;
    out->similar = p->network.similar.skipped;
    out->beside = p->decoding.frames;
    out->beside_share = p->decoding.spent > 0 ? p->decoding.beside / p->decoding.spent : 0;
    report_counts(p, out);
    report_rates(out, &(lw_stream_report){0}, out->seconds);
    for (int k = 0; k < LW_STREAM_PARTS; k++)
        out->latency[k] = lw_times_latency(&p->all[k]);
    if (rc < 0)
        return lw_fail(rc, "%s", why);
    return end;
}

/* What is read, through links, is what no output may replace. */
static int check_input_stays(const lw_stream_config *c)
{
    char *input = lw_path_is_special(c->input) ? NULL : realpath(c->input, NULL);
    bool same = false;
    int rc = 0, i = 0;
    for (; input && rc == 0 && !same && i < c->n_outputs; i++)
        rc = lw_output_same(input, c->output[i], &same);
    free(input); /* the C library's */
    LW_TRY(rc);
    return same ? lw_fail(LW_EUSAGE, "%s is --input, and --output would replace it: choose another",
                          c->output[i - 1])
                : 0;
}

static int check(const lw_stream_config *c)
{
    if (c->drift_beside && !c->drift_metrics)
        return lw_fail(LW_EUSAGE, "--drift-beside is of the plots of --drift-metrics DIR");
    if (c->drift_metrics && c->network.beside)
        return lw_fail(LW_EUSAGE,
                       "--drift-metrics is of the network's pictures: leave out --split");
    if (c->network.stream_batch > 1 && c->similarity > 0)
        return lw_fail(LW_EUSAGE, "--similarity skips frames, --stream-batch needs all of them: "
                                  "leave out one");
    if (!c->serve && (c->n_tls || c->insecure))
        return lw_fail(LW_EUSAGE, "--%s is for --serve", c->n_tls ? "tls" : "insecure");
    if (!c->serve && c->n_models)
        return lw_fail(LW_EUSAGE, "--models are for the page: add --serve");
    if (c->n_tls == 1)
        return lw_fail(LW_EUSAGE, "--tls %s: name a certificate and its key", c->tls[0]);
    if (c->every_frame && c->loop && c->num_frames == 0)
        return lw_fail(LW_EUSAGE, "--every-frame with --loop never ends: add --num-frames");
    LW_TRY(lw_frame_sinks_check(c->output, c->n_outputs));
    return check_input_stays(c);
}

int lw_job_stream(const lw_stream_config *c, const lw_observer *obs, lw_stream_report *out)
{
    *out = (lw_stream_report){0};
    LW_TRY(check(c));
    LW_CLEANUP(pipe_free) stream_pipe *p = lw_calloc(1, sizeof *p);
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
    if (p->mid)
        LW_TRY(lw_mailbox_start_taker(p->mid, lw_stream_decode, p));
    LW_TRY(lw_mailbox_start_giver(p->in, read_frame, p));
    int rc = pump(p);
    rc = finish(p, rc, out);
    lw_mailbox_free(
        &p->in); /* its thread may still wait for the source, whose error nobody asks for */
    out->skipped = p->intake.source->skipped;
    if (rc == 0 && out->read == 0 && out->skipped > 0)
        return lw_fail(LW_EFORMAT, "%s: no frame that is whole: all %lld were damaged",
                       lw_str_c(&p->intake.source->name), (long long)out->skipped);
    return rc;
}
