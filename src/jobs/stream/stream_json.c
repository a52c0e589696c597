/* SPDX-License-Identifier: Apache-2.0 */
/* A report as JSON: on the command line and on the page. */
#include "jobs/stream/stream_job.h"

static json_t *latency_json(const lw_stream_report *r)
{
    json_t *all = json_object();
    for (int k = 0; k < LW_STREAM_PARTS; k++) {
        const lw_stream_latency *l = &r->latency[k];
        json_object_set_new(all, lw_stream_part_names[k],
                            json_pack("{s:o, s:o, s:o, s:o, s:o}", "p50", lw_json_real(l->p50),
                                      "p95", lw_json_real(l->p95), "p99", lw_json_real(l->p99),
                                      "max", lw_json_real(l->max), "mean", lw_json_real(l->mean)));
    }
    return all;
}

json_t *lw_stream_report_json(const lw_stream_report *r)
{
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "seconds",
                     lw_json_real(r->seconds), "frames_in", (json_int_t)r->read, "frames_network",
                     (json_int_t)r->computed, "frames_out", (json_int_t)r->written, "dropped_in",
                     (json_int_t)r->dropped_in, "dropped_out", (json_int_t)r->dropped_out,
                     "repeated", (json_int_t)r->repeated, "fps_in", lw_json_real(r->fps_in),
                     "fps_network", lw_json_real(r->fps_network), "fps_out",
                     lw_json_real(r->fps_out), "latency_ms", latency_json(r));
}

json_t *lw_series_verdict_json(const lw_series_verdict *v)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "variance_ratio", lw_json_real(v->ratio),
                     "input_variance_ratio", lw_json_real(v->input_ratio), "change",
                     lw_json_real(v->change), "std", lw_json_real(v->deviation), "input_std",
                     lw_json_real(v->input_deviation), "stable", v->stable);
}
