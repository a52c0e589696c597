/* SPDX-License-Identifier: Apache-2.0 */
/* The machine, its build and its measured limits as JSON. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "formats/formats.h"
#include "session/session_machine.h"
#include "session/session_quantization.h"
#include "session/session_tuned.h"

extern char **environ;

const char *lw_machine_level_name(lw_machine_level l)
{
    static const char *const name[] = {"L1", "L2", "L3", "DRAM"};
    return name[l];
}

/* The variables that change what this program does. */
static json_t *env_json(void)
{
    json_t *o = json_object();
    for (char **e = environ; e && *e; e++) {
        const char *is = strchr(*e, '=');
        char key[64];
        if (!is || strncmp(*e, "LW_", 3) != 0 || is - *e >= (ptrdiff_t)sizeof key)
            continue;
        memcpy(key, *e, (size_t)(is - *e));
        key[is - *e] = '\0';
        json_object_set_new(o, key, json_string(is + 1));
    }
    return o;
}

static void add_system(json_t *m)
{
    struct utsname u;
    struct tm tm;
    char text[200];
    time_t now = time(NULL);
    if (uname(&u) == 0) {
        snprintf(text, sizeof text, "%.60s %.60s %.60s", u.sysname, u.release, u.machine);
        json_object_set_new(m, "system", json_string(text));
    }
    if (gmtime_r(&now, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        json_object_set_new(m, "date", json_string(text));
}

json_t *lw_machine_json(int threads, lw_isa isa)
{
    json_t *m = json_object();
    json_object_set_new(m, "cpu", json_string(lw_machine_name()));
    json_object_set_new(m, "cpus", json_integer(lw_core_count()));
    json_object_set_new(m, "threads", json_integer(threads));
    json_object_set_new(m, "isa", json_string(lw_isa_name(isa)));
    json_object_set_new(m, "version", json_string(lw_build_version()));
    json_object_set_new(m, "commit", json_string(lw_build_commit()));
    json_object_set_new(m, "compiler", json_string(lw_build_compiler()));
    json_object_set_new(m, "memory_bytes", json_integer((json_int_t)lw_memory_total()));
    if (lw_backend_binds())
        json_object_set_new(m, "bind", json_string("cores"));
    if (*lw_session_tuned())
        json_object_set_new(m, "tuned", json_string(lw_session_tuned()));
    json_object_set_new(m, "env", env_json());
    add_system(m);
    return m;
}

static void add_pair(json_t *o, const char *key, lw_machine_pair p)
{
    if (p.all > 0)
        json_object_set_new(o, key,
                            json_pack("{s:o, s:o}", "one_thread", lw_json_real(p.one),
                                      "all_threads", lw_json_real(p.all)));
}

json_t *lw_machine_peak_json(const lw_machine_peak *m)
{
    json_t *peak = json_object(), *rate = json_object(), *memory = json_array();
    for (int i = 0; i < LW_NUM_COUNT; i++)
        add_pair(rate, lw_precision_name(i), m->rate[i]);
    for (int i = 0; i < LW_MACHINE_LEVELS; i++) {
        json_t *o = json_object();
        if (m->bytes[i] == 0) {
            json_decref(o);
            continue;
        }
        json_object_set_new(o, "level", json_string(lw_machine_level_name((lw_machine_level)i)));
        json_object_set_new(o, "bytes_per_thread", json_integer((json_int_t)m->bytes[i]));
        add_pair(o, "read_gb_per_second", m->read[i]);
        add_pair(o, "copy_gb_per_second", m->copy[i]);
        json_array_append_new(memory, o);
    }
    json_object_set_new(peak, "threads", json_integer(m->threads));
    json_object_set_new(peak, "gflops", rate);
    json_object_set_new(peak, "memory", memory);
    json_object_set_new(peak, "dispatch_us", lw_json_real(m->dispatch_us));
    return peak;
}
