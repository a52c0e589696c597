/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict in words and as JSON. */
#include "session/session_verdict_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- words ----------------------------------------------------------------------------------- */

void lw_verdict_count(const lw_verdict_result *r, lw_str *out)
{
    lw_str_addf(out, "%d network%s of %d famil%s", (int)r->networks, r->networks == 1 ? "" : "s",
                (int)r->families, r->families == 1 ? "y" : "ies");
}

bool lw_verdict_suspect(const lw_verdict_result *r, int32_t row, const lw_copying *copies)
{
    return r->row[row].suspect || (copies && copies->n > 0 && copies->suspect);
}

static bool has_place(const lw_verdict_set *rows, const lw_copying *copies,
                      const lw_verdict_result *r, int32_t row)
{
    return rows[row].part == LW_VERDICT_MADE &&
           !lw_verdict_suspect(r, row, copies ? &copies[row] : NULL);
}

int32_t lw_verdict_place(const lw_verdict_set *rows, const lw_copying *copies,
                         const lw_verdict_result *r, int32_t row)
{
    int32_t place = 1;
    if (!has_place(rows, copies, r, row))
        return 0;
    for (int32_t i = 0; i < r->rows; i++)
        place += has_place(rows, copies, r, i) && r->row[i].number.value < r->row[row].number.value;
    return place;
}

static const char *name_of(const lw_battery *b, const lw_verdict_result *r, int32_t k)
{
    return lw_battery_at(b, r->network[k])->name;
}

void lw_verdict_honesty(const lw_battery *b, const lw_verdict_result *r, int32_t row,
                        const lw_copying *c, lw_str *out)
{
    const lw_verdict_row *v = &r->row[row];
    bool copied = c && c->n > 0 && c->suspect;
    if (v->suspect)
        lw_str_addf(out, "suspect: %s alone sees it near real pictures", name_of(b, r, v->lowest));
    if (copied)
        lw_str_addf(out, "%ssuspect: %lld of %lld lie on training pictures", v->suspect ? "; " : "",
                    (long long)c->near, (long long)c->n);
    if (v->suspect || copied)
        return;
    if (!v->judged)
        lw_str_addf(out, "no verdict on cheating: %d network%s, %d are needed", (int)r->networks,
                    r->networks == 1 ? "" : "s", LW_VERDICT_LEAST);
    else if (r->rule.blind)
        lw_str_add(out, "no verdict on cheating: these networks disagree too much by themselves");
    else
        lw_str_add(out, "nothing suspicious");
}

/* The number, in parentheses where it counts for nothing. */
static void print_number(const lw_interval *number, bool counts, lw_str *out)
{
    char text[24];
    snprintf(text, sizeof text, counts ? "%.2f" : "(%.2f)", exp(number->value));
    lw_str_addf(out, "%8s [%.2f, %.2f]  ", text, exp(number->low), exp(number->high));
}

static void print_row(const lw_battery *b, const lw_verdict_set *s, const lw_copying *c,
                      const lw_verdict_result *r, int32_t i, int width, lw_str *out)
{
    const lw_verdict_row *v = &r->row[i];
    const bool suspect = lw_verdict_suspect(r, i, c);
    lw_str_addf(out, "  %-*s ", width, s->name);
    print_number(&v->number, !suspect, out);
    if (s->part == LW_VERDICT_PLANTED)
        lw_str_add(out, "planted; ");
    lw_verdict_honesty(b, r, i, c, out);
    if (suspect)
        lw_str_add(out, "; its number does not count");
    if (v->apart >= 0)
        lw_str_addf(out, "; %s disagrees: rank %g there, %g elsewhere", name_of(b, r, v->apart),
                    v->rank, v->rank_rest);
    lw_str_add(out, "\n");
}

void lw_verdict_print(const lw_battery *b, const lw_verdict_set *rows, const lw_copying *copies,
                      const lw_verdict_result *r, lw_str *out)
{
    int width = 32;
    for (int32_t i = 0; i < r->rows; i++)
        width = LW_MAX(width, (int)strlen(rows[i].name));
    lw_str_add(out, "verdict of ");
    lw_verdict_count(r, out);
    lw_str_addf(out, ": times as far from real pictures as other real ones are [%g %%]\n",
                100 * r->level);
    for (int32_t i = 0; i < r->rows; i++)
        print_row(b, &rows[i], copies ? &copies[i] : NULL, r, i, width, out);
    for (int32_t i = 0; i < lw_battery_count(b); i++)
        if (lw_battery_at(b, i)->left_out)
            lw_str_addf(out, "  left out: %s: %s\n", lw_battery_at(b, i)->name,
                        lw_battery_at(b, i)->left_out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void set_real(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, lw_json_real(v));
}
static void set_int(json_t *o, const char *key, int64_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}
static void set_text(json_t *o, const char *key, const char *v)
{
    json_object_set_new(o, key, v ? json_string(v) : json_null());
}
static void set_interval(json_t *o, const char *key, lw_interval i)
{
    json_t *a = json_array();
    json_array_append_new(a, lw_json_real(i.value));
    json_array_append_new(a, lw_json_real(i.low));
    json_array_append_new(a, lw_json_real(i.high));
    json_object_set_new(o, key, a);
}

static json_t *network_json(const lw_battery_net *net)
{
    LW_CLEANUP(lw_str_clear) lw_str trained = {0};
    json_t *o = json_object();
    lw_lineage_text(&net->lineage, &trained);
    set_text(o, "name", net->name);
    set_text(o, "spec", net->spec);
    set_text(o, "family", net->lineage.link[0].family);
    set_text(o, "trained", lw_str_c(&trained));
    set_int(o, "parameters", net->parameters);
    set_int(o, "features", net->dim);
    set_text(o, "preparation", net->preparation);
    json_object_set_new(o, "counts", json_boolean(net->left_out == NULL));
    set_text(o, "left_out", net->left_out);
    return o;
}

static json_t *rule_json(const lw_verdict_rule *rule)
{
    json_t *o = json_object();
    if (rule->sets == 0) {
        lw_json_drop(&o);
        return json_null();
    }
    set_int(o, "honest_sets", rule->sets);
    set_real(o, "noise", rule->noise);
    set_real(o, "mean", rule->mean);
    set_real(o, "sd", rule->sd);
    set_real(o, "largest", rule->worst);
    set_real(o, "limit", rule->limit);
    json_object_set_new(o, "blind", json_boolean(rule->blind));
    return o;
}

static json_t *values_json(const lw_battery *b, const lw_verdict_result *r, int32_t i)
{
    json_t *a = json_array();
    for (int32_t k = 0; k < r->networks; k++) {
        const lw_verdict_value *v = &r->value[i][k];
        json_t *o = json_object();
        set_text(o, "network", name_of(b, r, k));
        set_real(o, "level", r->row[i].level[k]);
        set_real(o, "frechet", v->frechet);
        set_real(o, "frechet_real", v->frechet_real);
        set_interval(o, "frechet_ratio", v->frechet_ratio);
        set_real(o, "sliced_wasserstein", v->sliced);
        set_real(o, "sliced_wasserstein_real", v->sliced_real);
        set_interval(o, "sliced_wasserstein_ratio", v->sliced_ratio);
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *copies_json(const lw_copying *c)
{
    if (!c || c->n == 0)
        return json_null();
    json_t *o = json_object();
    set_int(o, "n", c->n);
    set_int(o, "near", c->near);
    set_int(o, "training_pictures", c->voters);
    set_int(o, "copied", c->ayes);
    set_interval(o, "share", c->share);
    set_real(o, "ratio", c->ratio);
    json_object_set_new(o, "suspect", json_boolean(c->suspect));
    return o;
}

static json_t *row_json(const lw_battery *b, const lw_verdict_set *rows, const lw_copying *copies,
                        const lw_verdict_result *r, int32_t i)
{
    const lw_verdict_row *v = &r->row[i];
    const lw_verdict_set *s = &rows[i];
    const lw_copying *c = copies ? &copies[i] : NULL;
    const int32_t place = lw_verdict_place(rows, copies, r, i);
    const lw_interval times = {exp(v->number.value), exp(v->number.low), exp(v->number.high)};
    json_t *o = json_object();
    set_text(o, "name", s->name);
    set_text(o, "part", lw_verdict_part_name(s->part));
    set_int(o, "n", s->n);
    set_interval(o, "level", v->number);
    set_interval(o, "times_real", times);
    json_object_set_new(o, "counts", json_boolean(!lw_verdict_suspect(r, i, c)));
    json_object_set_new(o, "place", place ? json_integer(place) : json_null());
    set_text(o, "disagrees", v->apart < 0 ? NULL : name_of(b, r, v->apart));
    set_real(o, "rank", v->apart < 0 ? (double)NAN : v->rank);
    set_real(o, "rank_elsewhere", v->apart < 0 ? (double)NAN : v->rank_rest);
    json_object_set_new(o, "suspect",
                        v->judged && !r->rule.blind ? json_boolean(v->suspect) : json_null());
    set_real(o, "shortfall", v->judged ? v->shortfall : (double)NAN);
    set_text(o, "shortest_in", v->judged ? name_of(b, r, v->lowest) : NULL);
    json_object_set_new(o, "copies", copies_json(c));
    json_object_set_new(o, "networks", values_json(b, r, i));
    return o;
}

json_t *lw_verdict_json(const lw_battery *b, const lw_verdict_set *rows, const lw_copying *copies,
                        const lw_verdict_result *r)
{
    json_t *o = json_object(), *networks = json_array(), *all = json_array();
    for (int32_t i = 0; i < lw_battery_count(b); i++)
        json_array_append_new(networks, network_json(lw_battery_at(b, i)));
    for (int32_t i = 0; i < r->rows; i++)
        json_array_append_new(all, row_json(b, rows, copies, r, i));
    set_int(o, "networks_counted", r->networks);
    set_int(o, "families_counted", r->families);
    json_object_set_new(o, "networks", networks);
    set_int(o, "reference", r->reference);
    set_int(o, "unseen", r->unseen);
    set_int(o, "honest", r->honest);
    set_int(o, "replicates", r->replicates);
    set_int(o, "directions", r->directions);
    set_real(o, "confidence", r->level);
    json_object_set_new(o, "rule", rule_json(&r->rule));
    json_object_set_new(o, "rows", all);
    set_real(o, "seconds", r->seconds);
    return o;
}
