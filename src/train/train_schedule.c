/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate and averaging decay. */

#include <math.h>

#include "train/train_config.h"
#include "train/train_schedule.h"

double lw_schedule_lr(const lw_train_config *c, int64_t steps, int64_t step)
{
    if (step < c->warmup_steps)
        return c->learning_rate * (double)(step + 1) / (double)c->warmup_steps;
    if (c->scheduler == LW_SCHEDULE_CONSTANT || steps <= c->warmup_steps)
        return c->learning_rate;
    double at = (double)(step - c->warmup_steps) / (double)(steps - c->warmup_steps);
    at = at < 0.0 ? 0.0 : at > 1.0 ? 1.0 : at;
    double wave = 0.5 * (1.0 + cos(3.14159265358979323846 * at));
    return c->learning_rate * (c->lr_floor + (1.0 - c->lr_floor) * wave);
}

double lw_schedule_ema(double decay, int64_t step)
{
    double s = (double)step + 1.0, warm = (1.0 + s) / (10.0 + s);
    return warm < decay ? warm : decay;
}
