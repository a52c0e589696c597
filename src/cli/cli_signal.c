/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as a flag, and those that only say what a failed write says too. */
#include "cli/cli_signal.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void lw_signal_writes(bool ignore)
{
    handle(SIGPIPE, ignore ? SIG_IGN : SIG_DFL, 0);
    handle(SIGXFSZ, ignore ? SIG_IGN : SIG_DFL, 0);
}

void lw_signal_catch(void)
{
    struct sigaction was;
    /* RESETHAND: the second signal does what it always does. RESTART: files being written are not
     * torn. */
    int flags = (int)(SA_RESETHAND | (unsigned)SA_RESTART);
    handle(SIGINT, on_signal, flags);
    handle(SIGTERM, on_signal, flags);
    /* A closing terminal sends it twice, through the shell and by itself: never the end. Under
     * nohup it stays ignored. */
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        handle(SIGHUP, on_signal, SA_RESTART);
}

bool lw_signal_stopped(void)
{
    return stopped != 0;
}
