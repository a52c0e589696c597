/* SPDX-License-Identifier: Apache-2.0 */
/* The page as a whole: head, contents, parts in order. */
#include "report/report_html.h"

#include <string.h>

#include "base/base.h"
#include "report/report_html_page.h"
#include "report/report_html_parts.h"

int lw_html_new(const char *title, const char *subtitle, lw_html **out)
{
    LW_CLEANUP(lw_html_free) lw_html *h = lw_calloc(1, sizeof *h);
    if (!h)
        return LW_ENOMEM;
    lw_str_add(&h->title, title);
    if (subtitle)
        lw_html_escape(&h->subtitle, subtitle);
    if (h->title.failed || h->subtitle.failed)
        return LW_ENOMEM;
    *out = lw_steal(&h);
    return 0;
}

void lw_html_free(lw_html **pp)
{
    lw_html *h = *pp;
    if (!h)
        return;
    lw_str_clear(&h->title);
    lw_str_clear(&h->subtitle);
    lw_str_clear(&h->facts);
    lw_str_clear(&h->contents);
    lw_str_clear(&h->body);
    lw_free(pp);
}

int lw_html_render(const lw_html *h, lw_str *out)
{
    lw_str_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    lw_html_escape(out, lw_str_c(&h->title));
    lw_str_add(out, "</title>\n<style>\n");
    for (const char *const *css = lw_html_style; *css; css++)
        lw_str_add(out, *css);
    lw_str_add(out, "</style>\n</head>\n<body>\n<main>\n<header>\n<h1>");
    lw_html_escape(out, lw_str_c(&h->title));
    lw_str_add(out, "</h1>\n");
    if (h->subtitle.len)
        lw_str_addf(out, "<p class=\"sub\">%s</p>\n", lw_str_c(&h->subtitle));
    if (h->facts.len)
        lw_str_addf(out, "<dl class=\"facts\">%s</dl>\n", lw_str_c(&h->facts));
    if (h->sections > 1)
        lw_str_addf(out, "<nav>%s</nav>\n", lw_str_c(&h->contents));
    lw_str_add(out, "</header>\n");
    lw_str_add_n(out, lw_str_c(&h->body), h->body.len);
    lw_str_add(out, "</main>\n</body>\n</html>\n");
    if (out->failed || h->failed || h->facts.failed || h->contents.failed || h->body.failed)
        return lw_fail(LW_ENOMEM, "no memory for the page '%s'", lw_str_c(&h->title));
    return 0;
}

int lw_html_save(const lw_html *h, const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str page = {0};
    int rc = lw_html_render(h, &page);
    if (rc < 0)
        return lw_fail_in(rc, "%s: ", path);
    return lw_file_write(path, page.s, page.len);
}
