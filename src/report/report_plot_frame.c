/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a plot: background, title, axes, texts; colours of the theme. */
#include "report/report_plot_frame.h"

#include <string.h>

#include "base/base.h"
#include "report/report_html.h"

/* Theme names and the light value, which stands in where no page defines the variable. */
static const struct {
    const char *name, *variable, *light;
} colors[] = {
    {"fg", "fg", "#1c2330"},     {"muted", "muted", "#667085"}, {"line", "line", "#c9d0db"},
    {"grid", "grid", "#e9edf3"}, {"panel", "panel", "#ffffff"}, {"1", "s1", "#2f62c9"},
    {"2", "s2", "#dd7426"},      {"3", "s3", "#1f9268"},        {"4", "s4", "#8c56bd"},
    {"5", "s5", "#c93f55"},      {"6", "s6", "#1e94aa"},        {"7", "s7", "#7c8698"},
    {"8", "s8", "#b8912a"},
};

/* Both forms: renderers without variables read the attribute, browsers the style. */
void lw_svg_paint(lw_str *out, const char *property, const char *name)
{
    for (size_t i = 0; i < LW_COUNT(colors); i++)
        if (lw_str_eq(colors[i].name, name))
            lw_str_addf(out, " %s=\"%s\" style=\"%s:var(--%s,%s)\"", property, colors[i].light,
                        property, colors[i].variable, colors[i].light);
}

const char *lw_svg_color(int color, size_t position)
{
    static const char *const names[] = {"1", "2", "3", "4", "5", "6", "7", "8"};
    return names[(color > 0 ? (size_t)color - 1 : position) % LW_COUNT(names)];
}

double lw_svg_width(const char *text, int size)
{
    return 0.58 * size * lw_utf8_length(text);
}

void lw_svg_text(lw_str *out, double x, double y, const char *anchor, const char *color, int size,
                 bool bold, const char *text)
{
    lw_str_addf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\"%s", x, y,
                size, anchor, bold ? " font-weight=\"600\"" : "");
    lw_svg_paint(out, "fill", color);
    lw_str_add(out, ">");
    lw_html_escape(out, text);
    lw_str_add(out, "</text>\n");
}

void lw_plot_frame_open(lw_plot_frame *f)
{
    lw_str_addf(
        f->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
        "height=\"%.0f\" role=\"img\" font-family=\"system-ui,-apple-system,'Segoe UI',Roboto,"
        "'DejaVu Sans',sans-serif\">\n",
        f->width, f->height, f->width, f->height);
    if (f->plot->title) {
        lw_str_add(f->out, "<title>");
        lw_html_escape(f->out, f->plot->title);
        lw_str_add(f->out, "</title>\n");
    }
    lw_str_add(f->out, "<rect width=\"100%\" height=\"100%\"");
    lw_svg_paint(f->out, "fill", "panel");
    lw_str_add(f->out, "/>\n");
    if (f->plot->title)
        lw_svg_text(f->out, 0, 17, "start", "fg", 15, true, f->plot->title);
}

void lw_plot_frame_close(lw_plot_frame *f)
{
    lw_str_add(f->out, "</svg>\n");
}

double lw_plot_frame_at_x(const lw_plot_frame *f, double v)
{
    return f->left + lw_axis_at(&f->x, v) * (f->right - f->left);
}

double lw_plot_frame_at_y(const lw_plot_frame *f, double v)
{
    return f->bottom - lw_axis_at(&f->y, v) * (f->bottom - f->top);
}

static void line(lw_str *out, double x1, double y1, double x2, double y2)
{
    lw_str_addf(out, "<path d=\"M%.1f %.1fL%.1f %.1f\"/>", x1, y1, x2, y2);
}

void lw_plot_frame_x_axis(lw_plot_frame *f)
{
    char buf[32];
    lw_str_add(f->out, "<g stroke-width=\"1\"");
    lw_svg_paint(f->out, "stroke", "grid");
    lw_str_add(f->out, ">");
    for (int i = 0; i < f->x.n_ticks; i++)
        line(f->out, lw_plot_frame_at_x(f, f->x.ticks[i]), f->top,
             lw_plot_frame_at_x(f, f->x.ticks[i]), f->bottom);
    lw_str_add(f->out, "</g>\n");
    double end = -1e9; /* of the last label: crowded ones are left out */
    for (int i = 0; i < f->x.n_ticks; i++) {
        double x = lw_plot_frame_at_x(f, f->x.ticks[i]);
        const char *label = lw_axis_label(&f->x, buf, f->x.ticks[i]);
        double half = lw_svg_width(label, 12) / 2;
        if (x - half < end + 4)
            continue;
        end = x + half;
        lw_svg_text(f->out, x, f->bottom + 17, "middle", "muted", 12, false, label);
    }
    if (f->plot->x_label)
        lw_svg_text(f->out, (f->left + f->right) / 2, f->bottom + 36, "middle", "muted", 12, false,
                    f->plot->x_label);
}

void lw_plot_frame_y_axis(lw_plot_frame *f)
{
    char buf[32];
    lw_str_add(f->out, "<g stroke-width=\"1\"");
    lw_svg_paint(f->out, "stroke", "grid");
    lw_str_add(f->out, ">");
    for (int i = 0; i < f->y.n_ticks; i++)
        line(f->out, f->left, lw_plot_frame_at_y(f, f->y.ticks[i]), f->right,
             lw_plot_frame_at_y(f, f->y.ticks[i]));
    lw_str_add(f->out, "</g>\n");
    for (int i = 0; i < f->y.n_ticks; i++)
        lw_svg_text(f->out, f->left - 8, lw_plot_frame_at_y(f, f->y.ticks[i]) + 4, "end", "muted",
                    12, false, lw_axis_label(&f->y, buf, f->y.ticks[i]));
}
