/* SPDX-License-Identifier: Apache-2.0 */
/* Samplers timed in turns. */
#include "session/session_sampler_turns.h"

#include "base/base.h"

static int run_once(const lw_timed_sampler *s, const lw_observer *obs, lw_sampler_time *out)
{
    double network = lw_sampler_network_seconds(s->sampler), cpu = lw_process_seconds(),
           t = lw_now();
    LW_TRY(lw_sampler_run(s->sampler, 0, s->batch, NULL, NULL, s->pictures));
    *out = (lw_sampler_time){.wall = lw_now() - t,
                             .cpu = lw_process_seconds() - cpu,
                             .network = lw_sampler_network_seconds(s->sampler) - network};
    return lw_observe_stop(obs) ? lw_fail(LW_ESTOPPED, "stopped while timing") : 0;
}

int lw_sampler_take_turns(
    const lw_timed_sampler *s, int n, const lw_turn_limits *limits, const lw_observer *obs,
    int (*keep)(void *self, int which, int32_t turn, const lw_sampler_time *time), void *self)
{
    double began = 0;
    for (int32_t turn = -1; turn < limits->most; turn++) {
        if (turn == 0)
            began = lw_now();
        if (turn >= limits->least && limits->seconds > 0 && lw_now() - began >= limits->seconds)
            break;
        for (int i = 0; i < n; i++)
            for (int32_t k = 0; s[i].sampler && k < s[i].times; k++) {
                lw_sampler_time time;
                LW_TRY(run_once(&s[i], obs, &time));
                if (turn >= 0)
                    LW_TRY(keep(self, i, turn, &time));
            }
    }
    return 0;
}
