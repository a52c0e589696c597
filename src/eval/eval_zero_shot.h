/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ambiguous a picture is to a network that compares it with texts: classes are texts, one for each
 * class in each of several templates ("a photo of a {}").
 *
 *   logits = exp(scale) cos(picture, text) + bias      of the first template
 *   margin              the largest logit less the second
 *   entropy             of the softmax, in nats; probabilities below 1e-12 count as that in the logarithm
 *   prompt_sensitivity  variance (templates - 1) over templates of the largest probability; 0 of one
 */
#ifndef LW_EVAL_ZERO_SHOT_H
#define LW_EVAL_ZERO_SHOT_H

#include <stdint.h>

typedef struct lw_zero_shot {
    int32_t dim, classes, templates;
    const double *text; /* [templates][classes][dim], of any length */
    double scale, bias; /* scale: its logarithm, as models keep it */
} lw_zero_shot;

/* features [n][dim] -> margin, entropy, prompt_sensitivity [n], best class [n] of the first template.
 * LW_EUSAGE: fewer than 2 classes; LW_ENUMERIC: a row has no direction. */
int lw_zero_shot_of(const lw_zero_shot *z, const float *features, int64_t n, double *margin,
                    double *entropy, double *sensitivity, int32_t *best);

#endif
