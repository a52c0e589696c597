/* SPDX-License-Identifier: Apache-2.0 */
/* Option rows and the values behind them. */
#ifndef LW_CLI_OPTIONS_H
#define LW_CLI_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

typedef enum lw_opt_type {
    LW_OPT_BOOL = 1,
    LW_OPT_I32, /* also enums: then `choices` names the values 0, 1, ... */
    LW_OPT_I64,
    LW_OPT_F32,
    LW_OPT_F64,
    LW_OPT_TEXT,
    LW_OPT_I32S, /* lists: an array in the struct and an int32_t count */
    LW_OPT_F32S,
    LW_OPT_F64S,
    LW_OPT_TEXTS,
} lw_opt_type;

/* A text that names a file or directory: never empty; outputs are tried before the command runs. */
typedef enum lw_opt_path {
    LW_PATH_NONE,
    LW_PATH_IN,
    LW_PATH_OUT, /* a file */
    LW_PATH_OUT_DIR, /* a directory; one that holds a training run is refused, as files of a name would be replaced */
    LW_PATH_OUT_ANY, /* a file or a directory, by its name; missing directories are made */
    LW_PATH_RUN_DIR, /* a directory that a training makes or goes on with */
} lw_opt_path;

/* What a training that goes on (--resume) may do with an option. */
typedef enum lw_opt_resume {
    LW_RESUME_SAME,     /* it made the steps done what they are: nothing */
    LW_RESUME_FREE,     /* change it: it changes no step */
    LW_RESUME_GOAL,     /* change it, as far as the schedule does not follow it: the job decides */
    LW_RESUME_SCHEDULE, /* change it with --reschedule: the learning rate of the steps to come */
} lw_opt_resume;

typedef struct lw_option {
    lw_opt_type type; /* type, offset, count and capacity come from LW_OPT or LW_OPT_LIST */
    size_t offset, count;
    int capacity;
    const char *name;                /* "batch-size"; NULL ends a table */
    const char *aliases;             /* "temps|temperatures", or NULL */
    const char *fallback;            /* default as text, or NULL */
    const char *alone;               /* the value of a name without one; NULL: it needs one */
    double min, max;                 /* inclusive, for each number; both 0: any */
    const char *choices;             /* "official|plain": the values a text or enum may take */
    const char *endings;             /* ".npy, .npz or a folder": of an output's name; NULL: any */
    const char *files;               /* "a.csv|b.html": what an output folder gets, or NULL */
    const char *unit, *group, *help; /* help: an imperative where the default is true */
    lw_opt_path path;
    bool
        opposite; /* of a bool: the field says the opposite, so that a zeroed struct has the default true */
    bool distinct;       /* of a list: no value twice */
    bool positional;     /* filled by words that are no options, in row order */
    bool required;       /* missing after config and argv: LW_EUSAGE */
    const char *unless;  /* required only where this option is not given */
    const char *instead; /* a number that stands for that other one; at most one of such is not 0 */
    bool transient;      /* not written to config.yaml */
    bool hidden;    /* for processes of our own, or for config files that have it: not in help */
    uint8_t resume; /* lw_opt_resume */
} lw_option;

#define LW_OPT_FIELD(T, field) (((T *)0)->field)
#define LW_OPT(T, field) \
    .type = _Generic(LW_OPT_FIELD(T, field), bool: LW_OPT_BOOL, int32_t: LW_OPT_I32,               \
                     uint32_t: LW_OPT_I32, int64_t: LW_OPT_I64, float: LW_OPT_F32,                 \
                     double: LW_OPT_F64, const char *: LW_OPT_TEXT),                               \
    .offset = offsetof(T, field)
#define LW_OPT_LIST(T, field, n_field) \
    .type = _Generic(LW_OPT_FIELD(T, field), int32_t *: LW_OPT_I32S, float *: LW_OPT_F32S,         \
                     double *: LW_OPT_F64S, const char **: LW_OPT_TEXTS),                          \
    .offset = offsetof(T, field),                                                                  \
    .count = offsetof(T, n_field) +                                                                \
             0 * sizeof(char[_Generic(LW_OPT_FIELD(T, n_field), int32_t: 1)]),                     \
    .capacity = (int)(sizeof LW_OPT_FIELD(T, field) / sizeof LW_OPT_FIELD(T, field)[0])

/* A table laid over a struct, and which of its rows were set by config or argv. */
typedef struct lw_opt_set {
    const lw_option *rows;
    void *base;
    bool *given; /* one per row */
} lw_opt_set;

enum { LW_OPT_MAX_SETS = 6 };

/* All tables of one invocation (the command's, then the global one); texts live in the arena. */
typedef struct lw_opts {
    lw_opt_set set[LW_OPT_MAX_SETS];
    int n;
    lw_arena *arena;
} lw_opts;

/* One row found by name. */
typedef struct lw_opt_ref {
    const lw_opt_set *set;
    const lw_option *row; /* NULL: none */
} lw_opt_ref;

/* Adds a table over `base` and sets every field to its default. LW_EUSAGE if a default does not
 * parse. */
int lw_opts_add(lw_opts *o, const lw_option *rows, void *base);
/* By name or alias; `-` and `_` are the same. `n` letters of `name`. Not found: row NULL. */
lw_opt_ref lw_opts_find(const lw_opts *o, const char *name, size_t n);
/* The name nearest to a wrong one, "" when none is near. */
const char *lw_opts_nearest(const lw_opts *o, const char *name);
/* What a name of diffusers, timm or accelerate is here, in words: "that is --batch-size here";
 * appended, nothing where none of them has that name. */
void lw_opts_familiar(const lw_opts *o, const char *name, lw_str *out);
/* True when config or argv set the option. The name must exist. */
bool lw_opts_given(const lw_opts *o, const char *name);

/* Appends "1 to 64" or "at least 1": the numbers that a row takes. */
void lw_opt_range(const lw_option *row, lw_str *out);
/* Parses text into the row's field. `what` names the place in errors ("--steps", "run.yaml:
 * steps"). */
int lw_opt_set_text(const lw_opts *o, lw_opt_ref ref, const char *what, const char *text);
/* The field as a JSON value (new reference); NULL for an unset text. */
json_t *lw_opt_get_json(lw_opt_ref ref);

/* The YAML or JSON map of a file, or of "FILE#SECTION" that under one of its keys, where the file is
 * a recipe: a map of several trainings. A section begins with the options of the sections that its
 * key "base" names, NAME or FILE#NAME of a recipe beside it, of several the first that has one. New
 * reference. */
int lw_opts_load(const char *name, json_t **out);
/* The same of a recipe that is read already from `path`. LW_EUSAGE names the sections there are. */
int lw_opts_section(const char *path, const json_t *recipe, const char *section, json_t **out);
/* Walks YAML or JSON object `tree` (read from `path`) into the tables. LW_EUSAGE when its key
 * "command" names another one than `command`. */
int lw_opts_set_tree(const lw_opts *o, const char *path, const char *command, const json_t *tree);
/* All options that are not transient and have a default or were given, in table order; new
 * reference. LW_EUSAGE names a text that is not UTF-8. */
int lw_opts_get_tree(const lw_opts *o, const char *command, json_t **out);
/* LW_EUSAGE naming the first required option that nobody set. */
int lw_opts_check_required(const lw_opts *o);
/* Of options that stand for one another, the one that is typed counts against those of a config file,
 * which go back to 0; `typed`: the same tables after argv alone. LW_EUSAGE where two are typed, or two
 * are in the file. */
int lw_opts_choose_one(const lw_opts *o, const lw_opts *typed);
/* LW_EIO naming the first output that cannot be written, and why. */
int lw_opts_check_outputs(const lw_opts *o);

/*
 * Parses argv[from..] over the tables: --x V, --x=V, --no-x, --disable-x, -- ends options, words
 * fill the positional rows. With `words` false, stops at the first word. Returns the index of the
 * first argument not used, or LW_EUSAGE.
 */
int lw_opts_parse(const lw_opts *o, int argc, char **argv, int from, bool words);

#endif
