/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a picture with a generator and shows it in letters while it is made:
 *     sample_preview runs/ddpm [STEPS [SEED [CLASS]]]
 */
#include <stdio.h>
#include <stdlib.h>

#include <leeway.h>

enum { COLUMNS = 32 };

/* Brightness of the mean of the channels, dark to light. */
static void show(const lw_sampler_info *i, const float *pixels)
{
    static const char shades[] = " .:-=+*#%@";
    int step = i->width > COLUMNS ? i->width / COLUMNS : 1;
    for (int y = 0; y < i->height; y += 2 * step) { /* letters are twice as high as wide */
        for (int x = 0; x < i->width; x += step) {
            double sum = 0;
            for (int c = 0; c < i->channels; c++)
                sum += (double)pixels[(c * i->height + y) * i->width + x];
            int k = (int)((sum / i->channels + 1) / 2 * 9.999);
            putchar(shades[k < 0 ? 0 : k > 9 ? 9 : k]);
        }
        putchar('\n');
    }
}

static void on_preview(void *self, int64_t first, int64_t count, int step, int steps,
                       const float *pixels)
{
    (void)first;
    (void)count;
    if (step % (steps / 4 > 0 ? steps / 4 : 1) == 0 || step == steps) {
        printf("evaluation %d of %d\n", step, steps);
        show(self, pixels);
    }
}

static int make(lw_device *device, lw_model *model, int argc, char **argv)
{
    lw_sampler *sampler = NULL;
    lw_sampler_info info = {.size = sizeof info};
    lw_sampler_options options = {.size = sizeof options,
                                  .batch = 1,
                                  .steps = argc > 2 ? atoi(argv[2]) : 0,
                                  .seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0};
    lw_callbacks callbacks = {.size = sizeof callbacks, .self = &info, .preview = on_preview};
    int32_t label = argc > 4 ? atoi(argv[4]) : 0;
    float *pixels = NULL;
    int rc = lw_sampler_open(device, model, &options, &sampler);
    if (rc == 0)
        rc = lw_sampler_describe(sampler, &info);
    if (rc == 0) {
        printf("%s, %d evaluations, %dx%d\n", info.sampler, info.evaluations, info.width,
               info.height);
        pixels = malloc((size_t)(info.channels * info.height * info.width) * sizeof *pixels);
        rc = pixels ? lw_sampler_pictures(sampler, 0, 1, info.classes ? &label : NULL, &callbacks,
                                          pixels)
                    : LW_ERROR_MEMORY;
    }
    free(pixels);
    lw_sampler_close(&sampler);
    return rc;
}

int main(int argc, char **argv)
{
    lw_device *device = NULL;
    lw_model *model = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: %s MODEL [STEPS [SEED [CLASS]]]\n", argv[0]);
        return 2;
    }
    int rc = lw_device_open(NULL, &device);
    if (rc == 0)
        rc = lw_model_open(argv[1], &model);
    if (rc == 0)
        rc = make(device, model, argc, argv);
    if (rc < 0)
        fprintf(stderr, "%s\n", lw_error_message());
    lw_model_close(&model);
    lw_device_close(&device);
    return rc < 0 ? 1 : 0;
}
