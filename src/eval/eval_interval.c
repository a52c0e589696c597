/* SPDX-License-Identifier: Apache-2.0 */
/* How sure a share is, and a difference. */
#include <math.h>

#include "eval/eval.h"

lw_interval lw_share_interval(int64_t k, int64_t n, double z)
{
    if (n <= 0)
        return (lw_interval){0, 0, 1};
    double m = (double)n, p = (double)k / m, zz = z * z;
    double centre = (p + zz / (2 * m)) / (1 + zz / m);
    double half = z / (1 + zz / m) * sqrt(p * (1 - p) / m + zz / (4 * m * m));
    return (lw_interval){p, k == 0 ? 0 : LW_MAX(centre - half, 0.0),
                         k == n ? 1 : LW_MIN(centre + half, 1.0)};
}

lw_interval lw_interval_difference(lw_interval a, lw_interval b)
{
    double d = a.value - b.value;
    return (lw_interval){d, d - hypot(a.value - a.low, b.high - b.value),
                         d + hypot(a.high - a.value, b.value - b.low)};
}
