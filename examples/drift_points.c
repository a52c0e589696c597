/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves points to where other points are by the drift field, and runs a model folder if one is
 * given.
 *
 *     cc drift_points.c $(pkg-config --cflags --libs leeway) -lm -o drift_points
 *     ./drift_points [MODEL_DIR]
 *
 * 64 points start in a heap at the origin; 96 positives lie on a circle. Every step asks for the
 * field F and moves each point by a part of sigma F, a smaller one each time: F always has RMS 1.
 * The loss stays at 1, as it must with one temperature; what falls is the distance from the circle.
 */
#include <leeway.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 64, TARGETS = 96, STEPS = 40 };

static int failed(const char *what, int code)
{
    fprintf(stderr, "%s: %s (%s)\n", what, lw_error_message(), lw_error_name(code));
    return 1;
}

/* Mean distance of the points to the circle. */
static double miss(const float *x)
{
    double sum = 0;
    for (int i = 0; i < POINTS; i++)
        sum += fabs(hypot((double)x[2 * i], (double)x[2 * i + 1]) - 1.0);
    return sum / POINTS;
}

static int drift(lw_device *device)
{
    float x[2 * POINTS], positive[2 * TARGETS], field[2 * POINTS];
    const double temperature = 0.2;
    for (int i = 0; i < POINTS; i++) { /* a small spiral */
        x[2 * i] = (float)(0.004 * i * cos(2.4 * i));
        x[2 * i + 1] = (float)(0.004 * i * sin(2.4 * i));
    }
    for (int i = 0; i < TARGETS; i++) {
        positive[2 * i] = (float)cos(6.283185307179586 * i / TARGETS);
        positive[2 * i + 1] = (float)sin(6.283185307179586 * i / TARGETS);
    }
    lw_field_request request = {.size = sizeof request,
                                .generated = POINTS,
                                .positives = TARGETS,
                                .channels = 2,
                                .x = x,
                                .positive = positive,
                                .temperatures = &temperature,
                                .temperature_count = 1,
                                .field = field};
    for (int step = 0; step <= STEPS; step++) {
        lw_field_report report = {.size = sizeof report};
        int rc = lw_field_run(device, &request, &report);
        if (rc < 0)
            return failed("lw_field_run", rc);
        if (step % 10 == 0)
            printf("step %2d  S %.4f  loss %.4f  mean V^2 %.6f  off the circle by %.4f\n", step,
                   report.scale, report.loss, report.raw_mean_v2[0], miss(x));
        for (int i = 0; i < 2 * POINTS; i++)
            x[i] += (float)(0.2 * (1 - step / (double)STEPS) * report.sigma) * field[i];
    }
    return miss(x) < 0.1 ? 0 : 1;
}

static void on_progress(void *self, int64_t done, int64_t total)
{
    (void)self;
    printf("  %lld of %lld rows\n", (long long)done, (long long)total);
}

/* Three rows through a session that takes two at a time. */
static int run_model(lw_device *device, const char *path)
{
    enum { ROWS = 3 };
    lw_model *model = NULL;
    lw_session *session = NULL;
    lw_model_info info = {.size = sizeof info};
    lw_session_options options = {.size = sizeof options, .batch = 2};
    lw_session_rows io[2] = {{.name = "x"}};
    float *in = NULL, *out = NULL;
    int64_t row[2] = {0, 0}; /* elements of a row of x and of the output */
    int rc = lw_model_open(path, &model);
    if (rc == 0)
        rc = lw_model_describe(model, &info);
    if (rc == 0)
        rc = lw_session_new(device, model, &options, &session);
    for (int i = 0; rc == 0 && i < lw_session_tensors(session); i++) {
        lw_tensor_info t = {.size = sizeof t};
        rc = lw_session_tensor(session, i, &t);
        if (rc == 0) {
            printf("  %s %s, %zu bytes\n", t.is_output ? "output" : "input ", t.name, t.bytes);
            row[t.is_output ? 1 : 0] = i == 0 || t.is_output ? (int64_t)t.bytes / 4 / options.batch
                                                             : row[0];
            io[1].name = t.is_output ? t.name : io[1].name;
        }
    }
    if (rc == 0) {
        printf("%s: %s, %lld parameters\n", path, info.network, (long long)info.parameters);
        io[0].in = in = calloc((size_t)(ROWS * row[0]), sizeof *in);
        io[1].out = out = calloc((size_t)(ROWS * row[1]), sizeof *out);
        lw_callbacks callbacks = {.size = sizeof callbacks, .progress = on_progress};
        rc = in && out ? lw_session_run_rows(session, ROWS, io, 2, &callbacks) : LW_ERROR_MEMORY;
    }
    if (rc == 0)
        printf("  first numbers: %g %g %g\n", (double)out[0], (double)out[1], (double)out[2]);
    free(in);
    free(out);
    lw_session_free(&session);
    lw_model_close(&model);
    return rc < 0 ? failed(path, rc) : 0;
}

int main(int argc, char **argv)
{
    lw_device *device = NULL;
    lw_device_options options = {.size = sizeof options, .threads = 2};
    int rc = lw_device_open(&options, &device);
    if (rc < 0)
        return failed("lw_device_open", rc);
    printf("leeway %s, API %d, %d threads, %s\n", lw_api_release(), lw_api_version(),
           lw_device_threads(device), lw_device_isa(device));
    int status = drift(device);
    if (status == 0 && argc > 1)
        status = run_model(device, argv[1]);
    lw_device_close(&device);
    return status;
}
