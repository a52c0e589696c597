/* SPDX-License-Identifier: Apache-2.0 */
/* Paces measured in turns, then slices in turns. */
#include "train/train_turns.h"
#include "train/train_loop_parts.h"

#include <math.h>

#include "base/base.h"

enum { PACE_TURNS = 12, MOST_SLICES = 100000 };

int lw_turns_goals(lw_training *const t[2], double seconds, const lw_observer *obs, int64_t goal[2])
{
    double both[PACE_TURNS], cpu[2][PACE_TURNS];
    for (int k = -1; k < PACE_TURNS; k++) { /* the first of each packs weights */
        double sum = 0;
        for (int i = 0; i < 2; i++) {
            lw_train_work one;
            LW_TRY(lw_training_replay(t[i], LW_MAX(k, 0), &one));
            if (k >= 0)
                cpu[i][k] = one.cpu;
            sum += one.wall;
            if (lw_observe_stop(obs))
                return lw_fail(LW_ESTOPPED, "stopped before the first step");
        }
        if (k >= 0)
            both[k] = sum;
    }
    /* How fast the machine is now says the clock; how the two compare, processor time, which other
     * programs disturb least. The update takes some 5 % more. */
    double pair = 1.05 * lw_summarize(both, PACE_TURNS).p50;
    double of[2] = {lw_summarize(cpu[0], PACE_TURNS).p50, lw_summarize(cpu[1], PACE_TURNS).p50};
    for (int i = 0; i < 2; i++)
        goal[i] = LW_MAX(llround(seconds * (of[0] + of[1]) / (pair * of[i])), 1);
    return 0;
}

/* Both up to the fraction k / n of their steps. */
static int run_slice(lw_training *const t[2], int64_t k, int64_t n, int rc[2])
{
    for (int i = 0; i < 2; i++) {
        int64_t goal = t[i] ? lw_training_goal(t[i]) : 0;
        if (!t[i])
            continue;
        rc[i] = lw_training_advance(t[i], goal > 0 ? (goal * k + n - 1) / n : INT64_MAX);
        LW_TRY(rc[i]);
    }
    return 0;
}

int lw_turns_run(lw_training *t[2], double seconds, double slice)
{
    int rc[2] = {0, 0}, first = 0;
    int64_t n = LW_MIN(LW_MAX(llround(seconds / slice), 1), MOST_SLICES);
    for (int i = 0; i < 2; i++)
        if (t[i])
            t[i]->in_turns = true;
    for (int64_t k = 1; first == 0 && k <= n; k++)
        first = run_slice(t, k, n, rc);
    for (int i = 0; first < 0 && i < 2; i++)
        if (t[i] && rc[i] == 0) /* the other's end is not its own: it goes on from here */
            rc[i] = lw_training_done(t[i]) == lw_training_goal(t[i]) ? 0
                    : lw_training_save(t[i]) < 0                     ? LW_EIO
                                                                     : LW_ESTOPPED;
    for (int i = 0; i < 2; i++) {
        int closed = lw_training_close(&t[i], rc[i], NULL);
        first = first == 0 ? closed : first;
    }
    return first;
}
