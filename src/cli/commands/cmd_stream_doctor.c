/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/cmd_stream_doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"
#include "formats/formats.h"
#include "frames/frames.h"
#include "serve/serve.h"
#include "session/session.h"

/* The first of these programs in PATH into `where`; false: none is there. */
static bool find_program(const char *const *names, lw_str *where)
{
    size_t n;
    for (; *names; names++)
        for (const char *rest = getenv("PATH"), *dir; (dir = lw_str_word(&rest, ':', &n));) {
            where->len = 0;
            lw_str_addf(where, "%.*s/%s", (int)n, dir, *names);
            if (access(lw_str_c(where), X_OK) == 0)
                return true;
        }
    return false;
}

/* /dev/video0, ...; an array that the caller drops. */
static json_t *cameras(void)
{
    json_t *all = json_array();
    char **names = NULL;
    size_t n = 0;
    if (lw_list_dir("/dev", &names, &n) < 0)
        return all;
    for (size_t i = 0; i < n; i++)
        if (lw_str_starts(names[i], "video") && names[i][5] >= '0' && names[i][5] <= '9') {
            LW_CLEANUP(lw_str_clear) lw_str path = {0};
            json_array_append_new(all, json_string(lw_path_join(&path, "/dev", names[i])));
        }
    lw_list_free(&names, n);
    return all;
}

/* {"reads": "h264 ..", "writes": ".."}; empty without FFmpeg's libraries. */
static json_t *codecs(void)
{
    LW_CLEANUP(lw_str_clear) lw_str reads = {0}, writes = {0};
    if (lw_frame_codecs(&reads, &writes) < 0)
        return json_pack("{s:s, s:s}", "reads", "", "writes", "");
    return json_pack("{s:s, s:s}", "reads", lw_str_c(&reads), "writes", lw_str_c(&writes));
}

static json_t *findings(const lw_cli *cli, const lw_device *dev, lw_isa isa,
                        const lw_doctor_network *networks)
{
    static const char *const browsers[] = {"chromium", "google-chrome", "firefox", NULL};
    LW_CLEANUP(lw_str_clear) lw_str where = {0};
    json_t *list = json_array();
    for (int i = 0; i < LW_DOCTOR_NETWORKS; i++) {
        json_t *sizes = json_array();
        for (int32_t k = 0; k < networks[i].n; k++)
            json_array_append_new(sizes, json_pack("{s:i, s:o}", "side", networks[i].side[k], "fps",
                                                   lw_json_real(networks[i].fps[k])));
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:o, s:i, s:i}", "network", networks[i].name, "parameters",
                            (json_int_t)networks[i].parameters, "sizes", sizes, "side_at_15_fps",
                            lw_doctor_reaches(&networks[i], 15), "side_at_25_fps",
                            lw_doctor_reaches(&networks[i], 25)));
    }
    const bool browser = find_program(browsers, &where);
    return json_pack("{s:s, s:i, s:i, s:s, s:b, s:o, s:o, s:o, s:o}", "device", dev->name, "cpus",
                     lw_core_count(), "threads", (int)cli->global.threads, "isa", lw_isa_name(isa),
                     "server", lw_serve_known(), "browser",
                     browser ? json_string(lw_str_c(&where)) : json_null(), "cameras", cameras(),
                     "codecs", codecs(), "networks", list);
}

static void print_text(const json_t *found, const lw_doctor_network *networks)
{
    const json_t *list = json_object_get(found, "cameras");
    const char *browser = json_string_value(json_object_get(found, "browser"));
    lw_cli_print("cpu       %s\n", lw_machine_name());
    lw_cli_print("threads   %lld of %lld CPUs, %s\n",
                 (long long)json_integer_value(json_object_get(found, "threads")),
                 (long long)json_integer_value(json_object_get(found, "cpus")),
                 json_string_value(json_object_get(found, "isa")));
    lw_cli_print("device    %s computes frames\n",
                 json_string_value(json_object_get(found, "device")));
    lw_cli_print("server    %s\n", json_is_true(json_object_get(found, "server"))
                                       ? "yes (--serve)"
                                       : "no: libwebsockets is missing");
    lw_cli_print("browser   %s\n", browser ? browser : "none in PATH (another machine's will do)");
    const json_t *video = json_object_get(found, "codecs");
    const char *reads = json_string_value(json_object_get(video, "reads"));
    lw_cli_print("video     %s%s\n",
                 reads[0] ? "reads " : "no files: FFmpeg's libraries are missing", reads);
    if (reads[0])
        lw_cli_print("          writes %s\n", json_string_value(json_object_get(video, "writes")));
    lw_cli_print("cameras  ");
    for (size_t i = 0; i < json_array_size(list); i++)
        lw_cli_print(" %s", json_string_value(json_array_get(list, i)));
    lw_cli_print("%s\n\n%-18s %10s", json_array_size(list) ? "" : " none here (--input browser)",
                 "frames a second", "parameters");
    for (int k = 0; k < LW_DOCTOR_SIZES; k++)
        lw_cli_print(" %7d", lw_doctor_side(k));
    lw_cli_print("   15 fps   25 fps at most\n");
    for (int i = 0; i < LW_DOCTOR_NETWORKS; i++) {
        const lw_doctor_network *n = &networks[i];
        lw_cli_print("%-18s %10lld", n->name, (long long)n->parameters);
        for (int k = 0; k < LW_DOCTOR_SIZES; k++)
            if (k < n->n)
                lw_cli_print(" %7.1f", n->fps[k]);
            else
                lw_cli_print(" %7s", "-");
        lw_cli_print("  %7d  %7d\n", lw_doctor_reaches(n, 15), lw_doctor_reaches(n, 25));
    }
}

int lw_cli_stream_doctor(const lw_cli *cli, const lw_observer *obs)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_json_drop) json_t *found = NULL;
    lw_doctor_network networks[LW_DOCTOR_NETWORKS];
    lw_isa isa;
    LW_TRY(lw_isa_chosen(&isa));
    LW_TRY(lw_session_device(cli->global.threads, &dev));
    LW_TRY(lw_bench_doctor(dev, obs, networks));
    found = findings(cli, dev, isa, networks);
    if (!cli->global.json) {
        print_text(found, networks);
        return 0;
    }
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_json_dump(found, 0, &text);
    lw_cli_print("%s\n", lw_str_c(&text));
    return 0;
}
