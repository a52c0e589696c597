/* SPDX-License-Identifier: Apache-2.0 */
/* cli: option tables from argv and YAML, help, resolved configs, progress lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "formats/formats.h"

typedef enum sampler { SAMPLER_AUTO, SAMPLER_DDIM, SAMPLER_ONE_STEP } sampler;

typedef struct config {
    const char *source, *data, *variant;
    int32_t steps;
    int64_t images;
    float decay;
    double rate;
    bool normalize, large, apart; /* apart: --together says the opposite */
    sampler how;
    int32_t labels; /* auto, yes, no */
    int32_t mult[4], n_mult;
    double temps[3];
    int32_t n_temps;
    const char *keys[3];
    int32_t n_keys;
} config;

static const lw_option rows[] = {
    {LW_OPT(config, source), .name = "source", .positional = true, .required = true,
     .help = "a run"},
    {LW_OPT(config, data), .name = "data", .group = "Data", .help = "a data spec"},
    {LW_OPT(config, variant), .name = "drift-variant", .fallback = "official",
     .choices = "official|plain|tau-times-dim", .help = "form of the field"},
    {LW_OPT(config, steps), .name = "steps", .fallback = "1000", .min = 1, .max = 1e6,
     .group = "Training", .unit = "steps", .help = "optimizer steps"},
    {LW_OPT(config, images), .name = "images", .min = 0, .max = 1e18, .help = "how many"},
    {LW_OPT(config, decay), .name = "ema-decay", .fallback = "0.9999", .min = 0, .max = 1,
     .group = "Training", .help = "decay of the average"},
    {LW_OPT(config, rate), .name = "learning-rate", .aliases = "lr|rate", .fallback = "2e-4",
     .group = "Training", .help = "step size"},
    {LW_OPT(config, normalize), .name = "normalize-over-x", .fallback = "true", .help = "divide"},
    {LW_OPT(config, apart), .opposite = true, .name = "together", .fallback = "true",
     .help = "keep together"},
    {LW_OPT(config, large), .name = "large", .help = "the large network"},
    {LW_OPT(config, how), .name = "sampler", .fallback = "auto", .choices = "auto|ddim|one-step",
     .help = "how to sample"},
    {LW_OPT(config, labels), .name = "class-conditional", .fallback = "auto",
     .choices = "auto|yes|no", .help = "use labels"},
    {LW_OPT_LIST(config, mult, n_mult), .name = "channel-mult", .fallback = "1,2,2", .min = 1,
     .max = 8, .help = "channel factors"},
    {LW_OPT_LIST(config, temps, n_temps), .name = "feature-temperatures", .aliases = "temps",
     .fallback = "0.02,0.05", .help = "temperatures"},
    {LW_OPT_LIST(config, keys, n_keys), .name = "feature-keys", .help = "keys"},
    {.name = NULL}};

/* A fresh table over a fresh struct. */
typedef struct fixture {
    config c;
    lw_opts opts;
    lw_arena *arena;
} fixture;

static fixture *open_fixture(void)
{
    fixture *f = lw_calloc(1, sizeof *f);
    assert_non_null(f);
    assert_int_equal(lw_arena_new(&f->arena), 0);
    f->opts.arena = f->arena;
    assert_int_equal(lw_opts_add(&f->opts, rows, &f->c), 0);
    return f;
}

static void close_fixture(fixture **pp)
{
    lw_arena_free(&(*pp)->arena);
    lw_free(pp);
}

/* Parses a blank-separated command line. */
static int parse(fixture *f, const char *line)
{
    char *copy = lw_arena_strdup(f->arena, line), *argv[32], *save = NULL;
    int argc = 0;
    for (char *p = strtok_r(copy, " ", &save); p && argc < 32; p = strtok_r(NULL, " ", &save))
        argv[argc++] = p;
    int rc = lw_opts_parse(&f->opts, argc, argv, 0, true);
    return rc < 0 ? rc : 0;
}

static int load(fixture *f, const char *yaml)
{
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    LW_TRY(lw_yaml_parse("c.yaml", yaml, strlen(yaml), &tree));
    return lw_opts_set_tree(&f->opts, "c.yaml", "train drift", tree);
}

static void defaults_come_from_the_table(void **state)
{
    (void)state;
    LW_CLEANUP(close_fixture) fixture *f = open_fixture();
    assert_null(f->c.source);
    assert_string_equal(f->c.variant, "official");
    assert_int_equal(f->c.steps, 1000);
    assert_true(f->c.decay == 0.9999f);
    assert_true(f->c.rate == 2e-4);
    assert_true(f->c.normalize && !f->c.large && !f->c.apart);
    assert_int_equal(f->c.n_mult, 3);
    assert_int_equal(f->c.mult[2], 2);
    assert_int_equal(f->c.n_keys, 0);
    assert_false(lw_opts_given(&f->opts, "steps"));
}

static void every_spelling_of_argv_is_read(void **state)
{
    (void)state;
    LW_CLEANUP(close_fixture) fixture *f = open_fixture();
    assert_int_equal(
        parse(f, "--steps=5 --lr 1e-3 runs/a --large --no-normalize-over-x --sampler one-step "
                 "--temps 0.1,0.2,0.3 --feature-keys=a.b,c --channel_mult 4 --images 1e6"),
        0);
    assert_string_equal(f->c.source, "runs/a");
    assert_int_equal(f->c.steps, 5);
    assert_true(f->c.rate == 1e-3);
    assert_true(f->c.large && !f->c.normalize);
    assert_int_equal(f->c.how, SAMPLER_ONE_STEP);
    assert_int_equal(f->c.n_temps, 3);
    assert_true(f->c.temps[2] == 0.3);
    assert_int_equal(f->c.n_keys, 2);
    assert_string_equal(f->c.keys[1], "c");
    assert_int_equal(f->c.n_mult, 1);
    assert_int_equal(f->c.images, 1000000);
    assert_true(lw_opts_given(&f->opts, "learning-rate"));
    assert_int_equal(parse(f, "--normalize-over-x --large=no"), 0);
    assert_true(f->c.normalize && !f->c.large);
    assert_int_equal(parse(f, "--disable-normalize-over-x --large=true -- --odd"), 0);
    assert_true(!f->c.normalize && f->c.large);
    assert_string_equal(f->c.source, "--odd");
    assert_int_equal(parse(f, "--no-together"), 0);
    assert_true(f->c.apart);
    assert_int_equal(parse(f, "--together=yes"), 0);
    assert_false(f->c.apart);
}

static void three_way_options(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int32_t want;
    } right[] = {
        {"src", 0},
        {"src --class-conditional", 1},
        {"src --no-class-conditional", 2},
        {"src --class-conditional no", 2},
        {"src --class-conditional=auto", 0},
        {"--class-conditional src", 1},
        {"src --class-conditional --large", 1},
        {"src --disable-class-conditional --large", 2},
    };
    for (size_t i = 0; i < LW_COUNT(right); i++) {
        LW_CLEANUP(close_fixture) fixture *f = open_fixture();
        assert_int_equal(parse(f, right[i].line), LW_OK);
        assert_int_equal(f->c.labels, right[i].want);
        assert_string_equal(f->c.source, "src");
    }
}

static void wrong_argv_is_one_clear_line(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } wrong[] = {
        {"--stesp 5", "unknown option --stesp: did you mean --steps?"},
        {"--learning 5", "unknown option --learning: did you mean --learning-rate?"},
        {"--no-normalise-over-x",
         "unknown option --no-normalise-over-x: did you mean --no-normalize-over-x?"},
        {"--xyzzy", "unknown option --xyzzy: see --help"},
        {"-s 5", "unknown option -s: options are long, see --help"},
        {"--steps", "--steps needs a value: optimizer steps"},
        {"--steps --large", "--steps needs a value: optimizer steps"},
        {"--steps 0", "--steps 0: must be 1 to 1000000 steps"},
        {"--steps 1.5", "--steps '1.5': must be a whole number"},
        {"--steps 5x", "--steps '5x': must be a whole number"},
        {"--images -1", "--images -1: must be at least 0"},
        {"--ema-decay nan", "--ema-decay 'nan': must be a number"},
        {"--ema-decay 1.1", "--ema-decay 1.1: must be 0 to 1"},
        {"--large=perhaps", "--large 'perhaps': must be true or false"},
        {"--no-large=1", "--no-large takes no value"},
        {"--no-steps", "unknown option --no-steps: --steps takes a value, it cannot be negated"},
        {"--no-class-conditional=1", "--no-class-conditional takes no value"},
        {"--class-conditional=perhaps",
         "--class-conditional 'perhaps': must be one of auto|yes|no"},
        {"--sampler autodim", "--sampler 'autodim': must be one of auto|ddim|one-step"},
        {"--sampler euler", "--sampler 'euler': must be one of auto|ddim|one-step"},
        {"--drift-variant plane",
         "--drift-variant 'plane': must be one of official|plain|tau-times-dim"},
        {"--channel-mult 1,2,3,4,5", "--channel-mult 1,2,3,4,5: more than 4 values"},
        {"--channel-mult 1,,2", "--channel-mult '': must be a whole number"},
        {"--channel-mult 1,9", "--channel-mult 9: must be 1 to 8"},
        {"a b", "unexpected word 'b': see --help"},
    };
    for (size_t i = 0; i < LW_COUNT(wrong); i++) {
        LW_CLEANUP(close_fixture) fixture *f = open_fixture();
        assert_int_equal(parse(f, wrong[i].line), LW_EUSAGE);
        assert_string_equal(lw_errmsg(), wrong[i].message);
    }
}

/* Sizes are in the unit of their row or in one of their own, whole numbers rounded up. */
static void sizes_have_units(void **state)
{
    typedef struct sizes {
        int64_t room;
        double cache;
    } sizes;
    static const lw_option table[] = {
        {LW_OPT(sizes, room), .name = "room", .min = 1, .max = 4096, .unit = "MiB", .help = "room"},
        {LW_OPT(sizes, cache), .name = "cache", .unit = "GiB", .help = "a cache"},
        {.name = NULL}};
    static const struct {
        const char *room, *cache;
        int64_t mib;
        double gib;
        const char *message;
    } cases[] = {
        {"4096", "0.5", 4096, 0.5, NULL},
        {"2GiB", "512MiB", 2048, 0.5, NULL},
        {"1025KiB", "2TiB", 2, 2048, NULL},
        {"4097", "1", 0, 0, "--room 4097: must be 1 to 4096 MiB"},
        {"1TiB", "1", 0, 0, "--room 1TiB: must be 1 to 4096 MiB"},
        {"1.5", "1", 0, 0, "--room '1.5': must be a whole number of MiB, or a size like 512MiB"},
        {"inf", "1", 0, 0, "--room 'inf': must be a whole number of MiB, or a size like 512MiB"},
        {"1e17", "1", 0, 0, "--room '1e17': must be a whole number of MiB, or a size like 512MiB"},
        {"GiB", "1", 0, 0, "--room 'GiB': must be a whole number of MiB, or a size like 512MiB"},
        {"1", "2xGiB", 0, 0, "--cache '2xGiB': must be a number of GiB, or a size like 512MiB"},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        LW_CLEANUP(lw_arena_free) lw_arena *arena = NULL;
        sizes s = {0};
        char a[32], b[32], *argv[] = {a, b};
        assert_int_equal(lw_arena_new(&arena), 0);
        lw_opts o = {.arena = arena};
        assert_int_equal(lw_opts_add(&o, table, &s), 0);
        snprintf(a, sizeof a, "--room=%s", cases[i].room);
        snprintf(b, sizeof b, "--cache=%s", cases[i].cache);
        int rc = lw_opts_parse(&o, 2, argv, 0, true);
        if (cases[i].message) {
            assert_int_equal(rc, LW_EUSAGE);
            assert_string_equal(lw_errmsg(), cases[i].message);
        } else {
            assert_int_equal(rc, 2);
            assert_int_equal(s.room, cases[i].mib);
            assert_true(s.cache == cases[i].gib);
        }
    }
}

/* At the ends of a range, an empty list, words that begin as options do. */
static void edges_of_argv(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        LW_CLEANUP(close_fixture) fixture *f = open_fixture();
        assert_int_equal(parse(f, i ? "--ema-decay 1 --feature-keys= -"
                                    : "--ema-decay 0 --feature-keys=a --feature-keys= -5"),
                         0);
        assert_true(f->c.decay == (float)i);
        assert_int_equal(f->c.n_keys, 0);
        assert_string_equal(f->c.source, i ? "-" : "-5");
    }
}

static void words_stop_the_leading_options(void **state)
{
    (void)state;
    LW_CLEANUP(close_fixture) fixture *f = open_fixture();
    char a[] = "--steps", b[] = "7", c[] = "train", d[] = "--large";
    char *argv[] = {a, b, c, d};
    assert_int_equal(lw_opts_parse(&f->opts, 4, argv, 0, false), 2);
    assert_int_equal(f->c.steps, 7);
    assert_false(f->c.large);
}

static void required_options_are_asked_for(void **state)
{
    (void)state;
    LW_CLEANUP(close_fixture) fixture *f = open_fixture();
    assert_int_equal(lw_opts_check_required(&f->opts), LW_EUSAGE);
    assert_string_equal(lw_errmsg(), "missing argument source: see --help");
    assert_int_equal(parse(f, "x"), 0);
    assert_int_equal(lw_opts_check_required(&f->opts), 0);
}

static void config_files_set_the_same_options(void **state)
{
    (void)state;
    LW_CLEANUP(close_fixture) fixture *f = open_fixture();
    assert_int_equal(load(f,
                          "command: train drift\nsource: runs/a\nsteps: 20\nlearning_rate: 1e-4\n"
                          "normalize-over-x: false\nchannel-mult: [1, 2]\ntemps: '0.5'\n"
                          "data: null\nimages: 12345678901\n"),
                     0);
    assert_string_equal(f->c.source, "runs/a");
    assert_int_equal(f->c.steps, 20);
    assert_true(f->c.rate == 1e-4);
    assert_false(f->c.normalize);
    assert_int_equal(f->c.n_mult, 2);
    assert_int_equal(f->c.n_temps, 1);
    assert_true(f->c.temps[0] == 0.5);
    assert_null(f->c.data);
    assert_true(f->c.images == 12345678901);
    assert_int_equal(parse(f, "--steps 30"), 0); /* argv after the file wins */
    assert_int_equal(f->c.steps, 30);
}

static void wrong_config_files_name_the_key(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *message;
    } wrong[] = {
        {"stesp: 5", "c.yaml: stesp: unknown key: did you mean steps?"},
        {"qqqqqq: 5", "c.yaml: qqqqqq: unknown key"},
        {"steps: [1, 2]", "c.yaml: steps: must be one value, not a list"},
        {"steps: {a: 1}", "c.yaml: steps: must be a plain value or a list of them"},
        {"steps: 0", "c.yaml: steps 0: must be 1 to 1000000 steps"},
    };
    for (size_t i = 0; i < LW_COUNT(wrong); i++) {
        LW_CLEANUP(close_fixture) fixture *f = open_fixture();
        assert_int_equal(load(f, wrong[i].yaml), LW_EUSAGE);
        assert_string_equal(lw_errmsg(), wrong[i].message);
    }
}

/* What is written is a valid config and reads back to the same struct. */
static void resolved_config_replays(void **state)
{
    (void)state;
    LW_CLEANUP(close_fixture) fixture *a = open_fixture(), *b = open_fixture();
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    LW_CLEANUP(lw_str_clear) lw_str yaml = {0}, again = {0};
    assert_int_equal(
        parse(a, "runs/x --steps 77 --no-normalize-over-x --no-together --sampler ddim --temps 0.1 "
                 "--ema-decay 0.1 --feature-keys a,b"),
        0);
    assert_int_equal(lw_opts_get_tree(&a->opts, "train drift", &tree), 0);
    assert_int_equal(lw_yaml_dump(tree, &yaml), 0);
    assert_null(strstr(lw_str_c(&yaml), "images")); /* no default and not given: left out */
    assert_non_null(strstr(lw_str_c(&yaml), "ema-decay: 0.1\n"));
    assert_int_equal(load(b, lw_str_c(&yaml)), 0);
    assert_string_equal(a->c.source, b->c.source);
    assert_int_equal(b->c.steps, 77);
    assert_non_null(strstr(lw_str_c(&yaml), "together: false\n"));
    assert_true(!b->c.normalize && b->c.apart);
    assert_int_equal(b->c.how, SAMPLER_DDIM);
    assert_int_equal(b->c.n_temps, 1);
    assert_true(b->c.temps[0] == 0.1 && b->c.decay == 0.1f);
    assert_string_equal(b->c.keys[1], "b");
    json_t *second = NULL;
    assert_int_equal(lw_opts_get_tree(&b->opts, "train drift", &second), 0);
    assert_int_equal(lw_yaml_dump(second, &again), 0);
    json_decref(second);
    assert_string_equal(lw_str_c(&yaml), lw_str_c(&again));
    static const char *const lost[] = {"runs/caf\xe9", "runs/x --feature-keys a,\xff"};
    for (size_t i = 0; i < LW_COUNT(lost); i++) { /* nothing is left out of a config in silence */
        LW_CLEANUP(close_fixture) fixture *c = open_fixture();
        assert_int_equal(parse(c, lost[i]), 0);
        assert_int_equal(lw_opts_get_tree(&c->opts, "train drift", &second), LW_EUSAGE);
        assert_non_null(strstr(lw_errmsg(), "is not UTF-8"));
    }
}

static void help_shows_groups_defaults_and_units(void **state)
{
    (void)state;
    static const lw_command command = {.name = "test it",
                                       .summary = "a test",
                                       .usage = "SOURCE [options]",
                                       .examples = "leeway test it a",
                                       .options = {rows},
                                       .config_size = sizeof(config)};
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_help_command(&text, &command);
    static const char *const parts[] = {"leeway test it: a test\n",
                                        "Usage: leeway test it SOURCE [options]\n",
                                        "Examples:\n  leeway test it a\n",
                                        "\nArguments:\n  source",
                                        "\nTraining:\n  --steps N",
                                        "optimizer steps (steps; 1 to 1000000; default 1000)",
                                        "also --lr; also --rate",
                                        "--no-normalize-over-x",
                                        "--large ",
                                        "\nGlobal options:\n",
                                        "--no-progress"};
    const char *from = lw_str_c(&text);
    for (size_t i = 0; i < LW_COUNT(parts); i++)
        if (!strstr(from, parts[i]))
            fail_msg("help lacks \"%s\":\n%s", parts[i], from);
}

/* Over all real commands: names are unique, defaults parse, every row has its help. */
static void all_command_tables_are_sound(void **state)
{
    (void)state;
    for (const lw_command *const *c = lw_commands; *c; c++) {
        LW_CLEANUP(lw_arena_free) lw_arena *arena = NULL;
        assert_int_equal(lw_arena_new(&arena), 0);
        lw_cli_globals globals = {0};
        lw_opts opts = {.arena = arena};
        void *base = lw_arena_alloc(arena, (*c)->config_size);
        for (size_t i = 0; i < LW_COUNT((*c)->options) && (*c)->options[i]; i++)
            if (lw_opts_add(&opts, (*c)->options[i], base) < 0)
                fail_msg("%s: %s", (*c)->name, lw_errmsg());
        assert_int_equal(lw_opts_add(&opts, lw_global_options, &globals), 0);
        assert_true((*c)->summary && (*c)->run);
        for (int s = 0; s < opts.n; s++) {
            for (const lw_option *row = opts.set[s].rows; row->name; row++) {
                if (lw_opts_find(&opts, row->name, strlen(row->name)).row != row)
                    fail_msg("%s: two options --%s", (*c)->name, row->name);
                if (!row->help || row->type == 0 || row->min > row->max)
                    fail_msg("%s: option --%s lacks help, type or a sane range", (*c)->name,
                             row->name);
            }
        }
    }
}

static void progress_writes_plain_lines(void **state)
{
    (void)state;
    char path[] = "/tmp/lw-test-XXXXXX";
    int fd = mkstemp(path), old = dup(STDERR_FILENO);
    assert_true(fd >= 0 && old >= 0);
    fflush(stderr);
    dup2(fd, STDERR_FILENO);
    lw_cli cli = {.global = {.progress = true}};
    lw_progress *p = NULL, *none = NULL;
    int rc = lw_progress_new(&cli, "train", 100, &p);
    for (int i = 0; i <= 100; i++) /* over before anybody could read it */
        lw_progress_set(p, i, "short");
    lw_progress_say(p, "checkpoint %d", 7);
    lw_progress_free(&p);
    rc |= lw_progress_new(&cli, "train", 1000, &p);
    lw_progress_set(p, 0, "loss 0.5");
    lw_sleep(1.02);
    for (int i = 400; i <= 1000; i++)
        lw_progress_set(p, i, "loss 0.5");
    lw_progress_set(p, 1000, "said again");
    for (int i = 0; i <= 1000; i++) /* the next of as many, again over at once */
        lw_progress_set(p, i, "next");
    lw_progress_free(&p);
    cli.global.quiet = true;
    int quiet_rc = lw_progress_new(&cli, "train", 100, &none);
    lw_progress_set(none, 1, NULL);
    lw_progress_say(none, "nothing");
    lw_progress_free(&none);
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    close(fd);
    assert_int_equal(rc, 0);
    assert_int_equal(quiet_rc, 0);
    LW_CLEANUP(lw_free) char *text = NULL;
    assert_int_equal(lw_file_read(path, 0, &text, NULL), 0);
    unlink(path);
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 3); /* one said; after a second, and at the end */
    assert_null(strstr(text, "short"));
    assert_null(strstr(text, "again"));
    assert_null(strstr(text, "next"));
    assert_non_null(strstr(text, "train:  40%  400/1000"));
    assert_non_null(strstr(text, "ETA 2s")); /* no fractions, and none below a second */
    assert_non_null(strstr(text, "train: 100%  1000/1000"));
    assert_non_null(strstr(text, "loss 0.5"));
    assert_non_null(strstr(text, "checkpoint 7\n"));
    assert_null(strchr(text, '\033'));
}

static void command_lines_are_quoted_for_a_shell(void **state)
{
    (void)state;
    char a[] = "leeway", b[] = "--data", c[] = "my dir", d[] = "it's", e[] = "";
    char *argv[] = {a, b, c, d, e};
    lw_cli cli = {.argc = 5, .argv = argv};
    LW_CLEANUP(lw_str_clear) lw_str line = {0};
    lw_cli_command_line(&cli, &line);
    assert_string_equal(lw_str_c(&line), "leeway --data 'my dir' 'it'\\''s' ''");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_from_the_table),
        cmocka_unit_test(every_spelling_of_argv_is_read),
        cmocka_unit_test(three_way_options),
        cmocka_unit_test(wrong_argv_is_one_clear_line),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(edges_of_argv),
        cmocka_unit_test(words_stop_the_leading_options),
        cmocka_unit_test(required_options_are_asked_for),
        cmocka_unit_test(config_files_set_the_same_options),
        cmocka_unit_test(wrong_config_files_name_the_key),
        cmocka_unit_test(resolved_config_replays),
        cmocka_unit_test(help_shows_groups_defaults_and_units),
        cmocka_unit_test(all_command_tables_are_sound),
        cmocka_unit_test(progress_writes_plain_lines),
        cmocka_unit_test(command_lines_are_quoted_for_a_shell),
    };
    return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
