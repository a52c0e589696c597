/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: what a person looks at after a run.
 *
 *   report_grid   many small pictures -> one picture, with labels in a built-in bitmap font
 *   report_plot   line plots, bars and histograms as SVG text
 *   report_table  one table -> aligned text, CSV, HTML
 *   report_html   one self-contained page: inline style, SVG and PNG, no network, no script
 *
 * Everything is a pure function of its arguments: no clock, no paths, so pages can be compared byte
 * by byte.
 */
#ifndef LW_REPORT_H
#define LW_REPORT_H

#include "report/report_grid.h"
#include "report/report_html.h"
#include "report/report_plot.h"
#include "report/report_table.h"

#endif
