/* SPDX-License-Identifier: Apache-2.0 */
/* leeway stream: frames in, through a network, frames out, while time passes. */
#ifndef LW_STREAM_JOB_H
#define LW_STREAM_JOB_H

#include "base/base.h"
#include "eval/eval.h"
#include "formats/formats.h"
#include "session/session.h"

enum { LW_STREAM_OUTPUTS = 8, LW_STREAM_MODELS = 8 };

/* Between the stamps of a frame: captured (before it is decoded), read, taken by the network,
 * computed, handed out. */
typedef enum lw_stream_part {
    LW_STREAM_READ,
    LW_STREAM_WAIT,
    LW_STREAM_COMPUTE,
    LW_STREAM_OUT,
    LW_STREAM_GLASS, /* captured to handed out */
    LW_STREAM_PARTS
} lw_stream_part;
extern const char *const lw_stream_part_names[LW_STREAM_PARTS];

typedef struct lw_stream_latency {
    double p50, p95, p99, max, mean; /* ms; quantiles to 1 % */
} lw_stream_latency;

typedef struct lw_stream_report {
    double seconds;                  /* since the first frame was asked for */
    int64_t read, computed, written; /* frames; written: without repeated ones */
    int64_t dropped_in, dropped_out; /* before the network, behind it */
    int64_t repeated;                /* in files, for those dropped: time goes on */
    int64_t skipped;                 /* damaged ones of cameras and pipes; of the whole only */
    int64_t beside;                  /* frames whose network ran while one before was decoded, with
                                        pipeline; of the whole */
    double beside_share;             /* that time, of all that decoding took */
    int64_t similar; /* of those computed: like the last one, whose picture they got */
    double fps_in, fps_network, fps_out;
    lw_stream_latency latency[LW_STREAM_PARTS];
    lw_series_verdict drift;                     /* with drift_metrics */
    int32_t network_w, network_h;                /* of the network's pictures */
    char input[96], sums[LW_STREAM_OUTPUTS][64]; /* of the source; what sinks say: md5 */
} lw_stream_report;

typedef enum lw_stream_pace { LW_PACE_BY_SOURCE, LW_PACE_REALTIME, LW_PACE_FAST } lw_stream_pace;

typedef struct lw_stream_config {
    const char *input, *raw;
    const char *degrade; /* what is done to frames before the network, as in training
                            (lw_degradation_parse); NULL: nothing */
    lw_translator_opts network;
    const char *models[LW_STREAM_MODELS]; /* others that the page may choose */
    int32_t n_models;
    double similarity; /* of a frame to the last one computed, above which it may be skipped
                            (stream_similar.h); 0: none is */
    bool pipeline;     /* the decoder of latents has a thread, and half of `threads`, of its own: it
                              works on a frame while the network has the next */
    int64_t reset_every;   /* frames after which the network forgets its former answers; 0: never */
    int32_t threads, conv; /* of the device; lw_conv_mode */
    const char *output[LW_STREAM_OUTPUTS];
    int32_t n_outputs;
    const char *drift_metrics, *drift_beside; /* folders (stream_drift.h), or NULL */
    double fps;                               /* 0: the source's */
    int32_t buffers;                          /* of a camera */
    double reopen;                            /* lw_frame_options */
    int32_t matrix, range;                    /* lw_frame_options */
    int32_t pace;     /* lw_stream_pace; by source: a pipe as it comes, what is kept whole fast,
                              the rest in real time */
    bool every_frame; /* nothing is dropped; the result does not depend on time */
    bool loop;
    const char *serve;  /* address of the page (serve/serve.h); NULL: none */
    const char *tls[2]; /* certificate and key */
    int32_t n_tls;
    bool insecure;
    int64_t num_frames; /* then it ends; 0: with the source */
    /* Once a second while frames go out, from another thread than the caller's; or NULL. The report
     * is of this second, but for the counts. */
    void (*second)(void *self, const lw_stream_report *r);
    void *self;
} lw_stream_config;

/*
 * Three threads, two slots of one frame: source, network (the caller's), sinks. *out is filled also
 * when it fails once frames went through, for what was written is closed and whole then:
 * LW_ESTOPPED (interrupted), LW_EFORMAT (input damaged or cut off), LW_EIO. Else out->computed is 0.
 */
int lw_job_stream(const lw_stream_config *c, const lw_observer *obs, lw_stream_report *out);

json_t *lw_stream_report_json(const lw_stream_report *r);
json_t *lw_series_verdict_json(const lw_series_verdict *v);

#endif
