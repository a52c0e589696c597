/* SPDX-License-Identifier: Apache-2.0 */
/* leeway stream: frames in, frames out, and how long each took. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "cli/commands/cmd_network.h"
#include "cli/commands/cmd_stream_doctor.h"
#include "formats/formats.h"
#include "jobs/stream/stream_job.h"

typedef struct stream_cli {
    lw_stream_config c;
    const char *record;
    const char *size;
    bool realtime, as_fast, doctor;
} stream_cli;

static const lw_option options[] = {
    {LW_OPT(stream_cli, c.input), .name = "input", .path = LW_PATH_IN, .unit = "source",
     .group = "Frames",
     .help =
         "FILE.y4m, FILE.mjpeg, FILE.mp4 (.mkv .mov .webm .avi), folder:DIR of pictures, - (y4m, "
         "JPEGs or --raw frames on standard input), v4l2:/dev/videoN[:WxH], "
         "test[:WxH@FPS], a moving pattern with its frame number, or browser[:WxH@FPS], the "
         "camera of the page (--serve)"},
    {LW_OPT_LIST(stream_cli, c.output, c.n_outputs), .name = "output", .fallback = "null",
     .unit = "sinks", .group = "Frames",
     .help =
         "FILE.y4m, FILE.mjpeg, FILE.mp4, folder:DIR, v4l2:/dev/videoN (virtual camera), - (y4m "
         "on standard output), md5 (of all frames as RGB) or null; several with commas"},
    {LW_OPT(stream_cli, record), .name = "record", .path = LW_PATH_OUT, .unit = "file",
     .group = "Frames", .help = "one more output: FILE.mp4, FILE.y4m or FILE.mjpeg"},
    {LW_OPT(stream_cli, c.network.beside), .name = "split", .fallback = "false", .group = "Frames",
     .help = "frames that go out have the one that came in on their left, as the network is given "
             "it"},
    {LW_OPT(stream_cli, c.degrade), .name = "degrade", .unit = "list", .group = "Frames",
     .help = "make frames worse before the network, as `train --degrade` does, so that it is seen "
             "restoring them: " LW_DEGRADE_HELP},
    {LW_OPT(stream_cli, c.buffers), .name = "buffers", .fallback = "4", .min = 1, .max = 4,
     .unit = "frames", .group = "Frames",
     .help = "of a camera; with one it waits until a frame was read, which some do not like"},
    {LW_OPT(stream_cli, c.reopen), .name = "reopen", .fallback = "60", .max = 1e6,
     .unit = "seconds", .group = "Frames",
     .help =
         "a camera that fails is opened again for so long, while the last frame stays; 0: it ends"},
    {LW_OPT(stream_cli, c.drift_metrics), .name = "drift-metrics", .path = LW_PATH_OUT_DIR,
     .unit = "dir", .group = "Frames",
     .help = "do the frames decay? Six numbers of each as CSV, JSON and plots, frames 0, 100, 250 "
             "and 499, a page and a verdict"},
    {LW_OPT(stream_cli, c.drift_beside), .name = "drift-beside", .path = LW_PATH_IN, .unit = "dir",
     .group = "Frames", .help = "such a folder of another run, in the same plots"},
    {LW_OPT(stream_cli, c.raw), .name = "raw", .unit = "WxH:FORMAT", .group = "Frames",
     .help = "the input has no header: yuv420p, yuv422p, yuv444p, nv12, yuyv422, gray or rgb24"},
    {LW_OPT(stream_cli, c.matrix), .name = "matrix", .choices = "auto|bt601|bt709",
     .fallback = "auto", .group = "Frames",
     .help = "colours of video; auto: bt709 from 720 lines on, else bt601"},
    {LW_OPT(stream_cli, c.range), .name = "range", .choices = "auto|limited|full",
     .fallback = "auto", .group = "Frames",
     .help = "of its bytes; auto: as the input says, else limited"},
    {LW_OPT(stream_cli, c.network.model), .name = "model", .path = LW_PATH_IN,
     .fallback = "identity", .group = "Model",
     .help = "identity: frames as they are; an autoencoder: taef2:DIR, sd-vae:DIR, a folder of "
             "diffusers; or a U-Net: a run, checkpoint or model folder"},
    {LW_OPT(stream_cli, c.network.latents), .name = "latents", .path = LW_PATH_IN,
     .unit = "autoencoder", .group = "Model",
     .help = "the U-Net is in latents of this one: taef2:DIR, sd-vae:DIR, a folder"},
    {LW_OPT(stream_cli, c.network.strength), .name = "strength", .fallback = "0", .max = 1,
     .group = "Model",
     .help = "share of the noise schedule that a frame goes through again; 0: a half, and all of a "
             "network conditioned on frames"},
    {LW_OPT(stream_cli, c.network.steps), .name = "steps", .fallback = "1", .min = 1, .max = 64,
     .group = "Model", .help = "evaluations of the U-Net for a frame"},
    {LW_OPT(stream_cli, c.network.stream_batch), .name = "stream-batch", .fallback = "1", .min = 1,
     .max = 16, .unit = "frames", .group = "Model",
     .help = "as many frames at as many steps in one evaluation: more frames a second where small "
             "products leave processors idle, each so many frames later"},
    {LW_OPT(stream_cli, c.network.sampler), .name = "sampler",
     .choices = "auto|one-step|ddim|ancestral|dpm-solver", .fallback = "auto", .group = "Model",
     .help = "ddim or dpm-solver; auto: ddim, one-step for a drifting generator"},
    {LW_OPT(stream_cli, c.network.fresh_noise), .name = "noise", .choices = "fixed|fresh",
     .fallback = "fixed", .group = "Model",
     .help = "the same for every frame, or other for each: the picture flickers"},
    {LW_OPT(stream_cli, c.network.label), .name = "class", .fallback = "0", .max = 1e6,
     .group = "Model", .help = "number of the class, of a network that has some"},
    {LW_OPT(stream_cli, size), .name = "size", .unit = "WxH", .group = "Model",
     .help = "of the network's pictures; default: the input's, or what the network takes nearest "
             "below"},
    {LW_OPT(stream_cli, c.network.fit), .name = "fit", .choices = LW_FRAME_FIT_CHOICES,
     .fallback = "crop", .group = "Model",
     .help = "frames of other proportions: cut off, black borders, or stretched"},
    {LW_OPT(stream_cli, c.network.at_input), .name = "output-size", .choices = "model|input",
     .fallback = "model", .group = "Model",
     .help = "of the frames that go out; input: its scale, without borders"},
    {LW_OPT(stream_cli, c.network.feed_back), .name = "feed-back", .fallback = "false",
     .group = "Model",
     .help =
         "the network is given its own last picture instead of the frame, but for the first one"},
    {LW_OPT(stream_cli, c.pipeline), .name = "pipeline", .fallback = "false", .group = "Model",
     .help = "the decoder of latents works on a frame while the network has the next one, each "
             "with half of "
             "the threads"},
    {LW_OPT(stream_cli, c.reset_every), .name = "reset-every", .fallback = "0", .max = 1e9,
     .unit = "frames", .group = "Model",
     .help = "forget former answers and pictures after so many; 0: never"},
    {LW_OPT(stream_cli, c.similarity), .name = "similarity", .fallback = "0", .max = 0.9999,
     .group = "Model",
     .help = "frames whose cosine to the last one computed is above this are skipped most of the "
             "time, at most 10 in a row (0.98); 0: none"},
    LW_PRECISION_OPTION(stream_cli, c.network.precision, "Model"),
    LW_WINDOW_OPTION(stream_cli, c.network.window, "Model"),
    {LW_OPT(stream_cli, c.fps), .name = "fps", .fallback = "0", .max = 1000, .unit = "frames/s",
     .group = "Time", .help = "rate of the input; 0: as it says"},
    {LW_OPT(stream_cli, c.every_frame), .name = "every-frame", .fallback = "false", .group = "Time",
     .help = "drop nothing, as fast as it goes: the output does not depend on time or threads"},
    {LW_OPT(stream_cli, realtime), .name = "realtime", .fallback = "false", .group = "Time",
     .help = "frames come when they are due; the default, but for pipes and --every-frame"},
    {LW_OPT(stream_cli, as_fast), .name = "as-fast", .fallback = "false", .group = "Time",
     .help = "frames come as fast as they are read"},
    {LW_OPT(stream_cli, c.loop), .name = "loop", .fallback = "false", .group = "Time",
     .help = "begin again at the end of the input"},
    {LW_OPT(stream_cli, c.num_frames), .name = "num-frames", .fallback = "0", .max = 1e15,
     .unit = "frames", .group = "Time", .help = "read so many and end; 0: all"},
    {LW_OPT(stream_cli, c.serve), .name = "serve", .alone = "127.0.0.1:8080", .unit = "HOST:PORT",
     .group = "Page", .help = "show frames and settings to a browser; alone: on 127.0.0.1:8080"},
    {LW_OPT_LIST(stream_cli, c.models, c.n_models), .name = "models", .path = LW_PATH_IN,
     .unit = "list", .group = "Page",
     .help = "more models that the page may choose while frames go on, with commas"},
    {LW_OPT_LIST(stream_cli, c.tls, c.n_tls), .name = "tls", .unit = "CERT,KEY", .path = LW_PATH_IN,
     .group = "Page",
     .help = "https with these files (PEM); an address that others reach needs it"},
    {LW_OPT(stream_cli, c.insecure), .name = "insecure", .fallback = "false", .group = "Page",
     .help = "http on an address that others reach, all the same"},
    {LW_OPT(stream_cli, doctor), .name = "doctor", .fallback = "false", .transient = true,
     .group = "Page",
     .help = "say what this machine can do: cameras, browser, and which size of "
             "which network reaches 15 and 25 frames a second (half a minute)"},
    {.name = NULL}};

/* One line, at once: who reads follows it while it runs. */
static void on_second(void *self, const lw_stream_report *r)
{
    (void)self;
    LW_CLEANUP(lw_json_drop) json_t *j = lw_stream_report_json(r);
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_json_dump(j, 0, &text);
    lw_cli_print("%s\n", lw_str_c(&text));
    fflush(stdout);
}

/* "256x144"; NULL: none. */
static int parse_size(const char *text, lw_translator_opts *o)
{
    char rest;
    if (!text)
        return 0;
    if (sscanf(text, "%5dx%5d%c", &o->w, &o->h, &rest) == 2 && o->w > 0 && o->h > 0)
        return 0;
    return lw_fail(LW_EUSAGE, "--size %s: not WxH, as in 256x144", text);
}

static void print_summary(const stream_cli *o, const lw_stream_config *c, const lw_stream_report *r)
{
    (void)o;
    char time[32];
    lw_cli_print("%s: %s\n%s, %dx%d\n", c->input, r->input, c->network.model, (int)r->network_w,
                 (int)r->network_h);
    lw_cli_print("%lld frames read, %lld computed, %lld written in %s; dropped %lld before the "
                 "network, %lld behind it; %lld repeated\n",
                 (long long)r->read, (long long)r->computed, (long long)r->written,
                 lw_fmt_time(time, r->seconds), (long long)r->dropped_in, (long long)r->dropped_out,
                 (long long)r->repeated);
    if (r->skipped > 0)
        lw_cli_print("%lld damaged frames were passed over\n", (long long)r->skipped);
    if (c->similarity > 0)
        lw_cli_print("%lld of those computed were similar to the last one, and got its picture\n",
                     (long long)r->similar);
    if (c->network.stream_batch > 1)
        lw_cli_print("%d frames are computed together: each comes %d frames later\n",
                     (int)c->network.stream_batch, (int)c->network.stream_batch - 1);
    if (c->pipeline)
        lw_cli_print(
            "%lld had their network beside the decoder of one before, %.0f %% of the time that "
            "decoding took\n",
            (long long)r->beside, 100 * r->beside_share);
    lw_cli_print("frames a second: %.4g in, %.4g network, %.4g out\n", r->fps_in, r->fps_network,
                 r->fps_out);
    lw_cli_print("%-16s %9s %9s %9s %9s   ms\n", "latency", "p50", "p95", "p99", "max");
    for (int k = 0; k < LW_STREAM_PARTS; k++) {
        const lw_stream_latency *l = &r->latency[k];
        lw_cli_print("%-16s %9.3f %9.3f %9.3f %9.3f\n", lw_stream_part_names[k], l->p50, l->p95,
                     l->p99, l->max);
    }
    if (c->drift_metrics)
        lw_cli_print("%s/report.html: %s: variance of the last tenth %.3g of the first's, the "
                     "input's %.3g: a change of %.3g (0.7 to 1 / 0.7); standard deviation %.3g "
                     "(> %.3g)\n",
                     c->drift_metrics, r->drift.stable ? "stable" : "decays", r->drift.ratio,
                     r->drift.input_ratio, r->drift.change, r->drift.deviation, r->drift.least);
    for (int i = 0; i < c->n_outputs; i++)
        lw_cli_print("%s%s%s\n", c->output[i], r->sums[i][0] ? " " : "", r->sums[i]);
}

static void print_json(const lw_stream_config *c, const lw_stream_report *r)
{
    LW_CLEANUP(lw_json_drop) json_t *j = lw_stream_report_json(r);
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    json_t *outputs = json_array();
    for (int i = 0; i < c->n_outputs; i++) {
        json_t *one = json_pack("{s:s}", "output", c->output[i]);
        if (r->sums[i][0])
            json_object_set_new(one, "md5", json_string(r->sums[i]));
        json_array_append_new(outputs, one);
    }
    json_object_set_new(j, "input", lw_json_name(c->input));
    json_object_set_new(j, "format", json_string(r->input));
    json_object_set_new(j, "skipped", json_integer((json_int_t)r->skipped));
    json_object_set_new(j, "similar", json_integer((json_int_t)r->similar));
    if (c->pipeline) {
        json_object_set_new(j, "beside", json_integer((json_int_t)r->beside));
        json_object_set_new(j, "beside_share", lw_json_real(r->beside_share));
    }
    json_object_set_new(j, "model", lw_json_name(c->network.model));
    json_object_set_new(j, "size", json_pack("[i, i]", r->network_w, r->network_h));
    json_object_set_new(j, "outputs", outputs);
    if (c->drift_metrics)
        json_object_set_new(j, "drift", lw_series_verdict_json(&r->drift));
    json_object_set_new(j, "device", json_string(lw_cli_device_used()));
    json_object_set_new(j, "summary", json_true());
    lw_json_dump(j, 0, &text);
    lw_cli_print("%s\n", lw_str_c(&text));
}

static bool writes_to_pipe(const lw_stream_config *c)
{
    for (int i = 0; i < c->n_outputs; i++)
        if (lw_str_eq(c->output[i], "-"))
            return true;
    return false;
}

static int check(const lw_cli *cli, const stream_cli *o, bool pipe)
{
    if (!o->c.input)
        return lw_fail(LW_EUSAGE, "--input is missing: a file, folder:DIR, -, test or browser");
    if (o->realtime && o->as_fast)
        return lw_fail(LW_EUSAGE, "--realtime and --as-fast exclude each other");
    if (pipe && cli->global.json)
        return lw_fail(LW_EUSAGE, "--json and --output - would both write to standard output");
    return 0;
}

static int add_output(lw_stream_config *c, const char *sink)
{
    if (!sink)
        return 0;
    if (c->n_outputs == LW_STREAM_OUTPUTS)
        return lw_fail(LW_EUSAGE, "--record %s: there are %d outputs already", sink,
                       LW_STREAM_OUTPUTS);
    c->output[c->n_outputs++] = sink;
    return 0;
}

static int run(const lw_cli *cli, const void *config)
{
    const stream_cli *o = config;
    lw_stream_config c = o->c;
    lw_stream_report r;
    const bool pipe = writes_to_pipe(&c);
    if (!o->doctor)
        LW_TRY(check(cli, o, pipe));
    LW_TRY(add_output(&c, o->record));
    LW_TRY(
        parse_size(o->size, &c.network)); /* before the observer, which is closed on all ways out */
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    c.pace = o->realtime ? LW_PACE_REALTIME : o->as_fast ? LW_PACE_FAST : LW_PACE_BY_SOURCE;
    c.second = cli->global.json ? on_second : NULL;
    c.threads = (int32_t)cli->global.threads;
    c.conv = cli->global.conv;
    c.network.seed = (uint64_t)cli->global.seed;
    lw_cli_observer_open(&obs, cli);
    if (o->doctor)
        return lw_cli_stream_doctor(cli, &obs.calls);
    int rc = lw_job_stream(&c, &obs.calls, &r);
    if (r.computed == 0 || pipe)
        return rc;
    if (cli->global.json)
        print_json(&c, &r);
    else
        print_summary(o, &c, &r);
    return rc;
}

const lw_command lw_cmd_stream = {
    .name = "stream",
    .summary = "moving pictures in, through a network, out, on time",
    .usage = "--input SOURCE [--output SINK,..] [--serve] [options] | --doctor",
    .notes = "Between the threads that read, compute and write lies one frame each: the newest "
             "wins, older ones are dropped and counted, and files repeat the last frame in their "
             "place. With --json a line of JSON is printed every second and a last one with the "
             "summary. SIGINT closes what was written, so that it plays; input that is damaged or "
             "cut off costs no frame before that place.",
    .examples = "leeway stream --input test --num-frames 300 --json\n"
                "leeway stream --input clip.mp4 --every-frame --output folder:frames,out.mp4\n"
                "ffmpeg -v error -i rtsp://.. -f yuv4mpegpipe - | leeway stream --input - --output "
                "out.mjpeg",
    .options = {options},
    .config_size = sizeof(stream_cli),
    .run = run,
};
