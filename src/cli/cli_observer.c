/* SPDX-License-Identifier: Apache-2.0 */
/* A job's callbacks, put on the terminal. */
#include "cli/cli_observer.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli_signal.h"

static void on_progress(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    lw_cli_observer *o = self;
    if (strncmp(o->what, what, sizeof o->what - 1) != 0) { /* other work: its own bar */
        lw_progress_free(&o->bar);
        snprintf(o->what, sizeof o->what, "%s", what);
        o->total = total;
        if (lw_progress_new(o->cli, what, total, &o->bar) < 0)
            o->bar = NULL; /* work goes on without a bar */
    }
    if (o->total != total) {
        o->total = total;
        lw_progress_set_total(o->bar, total);
    }
    lw_progress_set(o->bar, done, note);
}

static void on_say(void *self, const char *line)
{
    lw_cli_observer *o = self;
    char clean[1024];
    lw_clean(clean, sizeof clean, line);
    if (o->bar)
        lw_progress_say(o->bar, "%s", line);
    else if (!o->cli->global.quiet)
        fprintf(stderr, "%s\n", clean);
}

static bool on_should_stop(void *self)
{
    (void)self;
    return lw_signal_stopped() || ferror(stdout); /* nobody is left to read what it finds */
}

void lw_cli_observer_open(lw_cli_observer *o, const lw_cli *cli)
{
    *o = (lw_cli_observer){
        .cli = cli,
        .calls = {
            .self = o, .progress = on_progress, .say = on_say, .should_stop = on_should_stop}};
    lw_signal_catch();
}

void lw_cli_observer_close(lw_cli_observer *o)
{
    lw_progress_free(&o->bar);
}
