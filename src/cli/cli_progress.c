/* SPDX-License-Identifier: Apache-2.0 */
/* The progress bar and its plain twin. */
#include "cli/cli_progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli_command.h"

/* A plain line comes once work has taken `worth_seconds`, then at this pace: by time, not by count,
 * so that a short job writes none and a long one no more than it needs. */
static const double redraw_seconds = 0.1, worth_seconds = 1.0, plain_seconds = 30.0;

struct lw_progress {
    char what[48], note[160];
    int64_t total, done, first_done;
    bool live, begun;
    double began, drawn;
};

int lw_progress_new(const lw_cli *cli, const char *what, int64_t total, lw_progress **out)
{
    if (cli->global.quiet || !cli->global.progress) {
        *out = NULL;
        return 0;
    }
    lw_progress *p = lw_calloc(1, sizeof *p);
    if (!p)
        return LW_ENOMEM;
    const char *term = getenv("TERM");
    snprintf(p->what, sizeof p->what, "%s", what);
    p->total = total;
    p->live = isatty(STDERR_FILENO) && !(term && lw_str_eq(term, "dumb"));
    *out = p;
    return 0;
}

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return 80;
}

/* "  47%  940/2000  4.1/s  ETA 4m 18s  loss 0.98" */
static void add_numbers(const lw_progress *p, lw_str *s)
{
    char time[32];
    double passed = lw_now() - p->began;
    double rate = passed > 0.0 ? (double)(p->done - p->first_done) / passed : 0.0;
    double left = rate > 0.0 ? (double)(p->total - p->done) / rate : 0.0;
    if (p->total > 0)
        lw_str_addf(s, " %3d%%  %lld/%lld", (int)(100 * p->done / p->total), (long long)p->done,
                    (long long)p->total);
    else
        lw_str_addf(s, "  %lld", (long long)p->done);
    if (rate > 0.0)
        lw_str_addf(s, rate < 10.0 ? "  %.2f/s" : "  %.0f/s", rate);
    if (p->total > 0 && p->done >= p->total) {
        if (p->done > p->first_done) /* else all was done when it was first heard of */
            lw_str_addf(s, "  in %s", lw_fmt_time(time, passed));
    } else if (p->total > 0 && left >= 1.0) /* below that it is over when it is read */
        lw_str_addf(s, "  ETA %s", lw_fmt_time(time, round(left)));
    if (p->note[0])
        lw_str_addf(s, "  %s", p->note);
}

static void draw_bar(lw_progress *p)
{
    enum { CELLS = 20 };
    LW_CLEANUP(lw_str_clear) lw_str line = {0};
    lw_str_add(&line, p->what);
    if (p->total > 0) {
        int full = (int)(CELLS * LW_MIN(p->done, p->total) / p->total);
        lw_str_add(&line, "  [");
        for (int i = 0; i < CELLS; i++)
            lw_str_add(&line, i < full ? "#" : "-");
        lw_str_add(&line, "]");
    }
    add_numbers(p, &line);
    /* A line as wide as the terminal would wrap, and a wrapped one is never erased. */
    fprintf(stderr, "\r\033[K%.*s", terminal_width() - 1, lw_str_c(&line));
    fflush(stderr);
    p->drawn = lw_now();
}

static void write_plain(lw_progress *p)
{
    LW_CLEANUP(lw_str_clear) lw_str numbers = {0};
    add_numbers(p, &numbers);
    fprintf(stderr, "%s:%s\n", p->what, lw_str_c(&numbers));
    p->drawn = lw_now();
}

static bool total_is_done(const lw_progress *p, int64_t done)
{
    return p->total > 0 && done >= p->total;
}

void lw_progress_set(lw_progress *p, int64_t done, const char *note)
{
    if (!p || ferror(stderr)) /* its reader went away */
        return;
    if (p->begun && total_is_done(p, p->done) && done < p->done)
        p->begun = false; /* the next one's count */
    bool first = !p->begun;
    if (total_is_done(p, done) &&
        (first || p->done >= done)) /* nothing was waited for; said already */
        return;
    if (first) {
        p->begun = true;
        p->began = lw_now();
        p->first_done = done;
    }
    p->done = done;
    if (note)
        lw_clean(p->note, sizeof p->note, note);
    bool last = total_is_done(p, done);
    double since = lw_now() - p->drawn;
    if (p->live) {
        if (first || last || since >= redraw_seconds)
            draw_bar(p);
        return;
    }
    if (lw_now() - p->began >= worth_seconds && (last || since >= plain_seconds))
        write_plain(p);
}

void lw_progress_set_total(lw_progress *p, int64_t total)
{
    if (p)
        p->total = total;
}

void lw_progress_say(lw_progress *p, const char *fmt, ...)
{
    if (!p)
        return;
    bool drawn = p->live && p->begun;
    if (drawn)
        fprintf(stderr, "\r\033[K");
    LW_CLEANUP(lw_str_clear) lw_str raw = {0}, line = {0};
    va_list args;
    va_start(args, fmt);
    lw_str_addv(&raw, fmt, args);
    va_end(args);
    lw_str_add_clean(&line, lw_str_c(&raw), "");
    fprintf(stderr, "%s\n", lw_str_c(&line));
    if (drawn)
        draw_bar(p);
}

void lw_progress_free(lw_progress **pp)
{
    lw_progress *p = *pp;
    if (!p)
        return;
    if (p->live && p->begun && !ferror(stderr)) {
        draw_bar(p);
        fputc('\n', stderr);
    }
    lw_free(pp);
}
