/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* signals.c - the first Ctrl-C interrupts the command, the second one kills it. */
#include <signal.h>
#include <stdatomic.h>

#include "terminal/terminal.h"

static volatile sig_atomic_t was_interrupted;
static atomic_int noted;

static void handle_interrupt(int number)
{
    (void)number;
    was_interrupted = 1;
}

void cli_catch_signals(void)
{
    struct sigaction on_interrupt = { .sa_handler = handle_interrupt,
                                      .sa_flags = (int)SA_RESETHAND };
    struct sigaction ignored = { .sa_handler = SIG_IGN };

    sigaction(SIGINT, &on_interrupt, NULL);
    /* A closed reader, or the file size limit, is an error of the write, which is handled there. */
    sigaction(SIGPIPE, &ignored, NULL);
    sigaction(SIGXFSZ, &ignored, NULL);
}

bool cli_is_interrupted(void)
{
    return was_interrupted != 0;
}

void cli_note_signal(int number)
{
    atomic_store(&noted, number);
}

int cli_noted_signal(void)
{
    return atomic_load(&noted);
}
