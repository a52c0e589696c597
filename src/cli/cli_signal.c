/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT and SIGTERM as a flag. */
#include "cli/cli_signal.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

void lw_signal_catch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    /* RESETHAND: the second signal does what it always does. RESTART: files being written are not
     * torn. */
    action.sa_flags = (int)(SA_RESETHAND | (unsigned)SA_RESTART);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool lw_signal_stopped(void)
{
    return stopped != 0;
}
