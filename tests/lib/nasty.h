/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* nasty.h - where the misbehaving program of tests/nasty is: it is built beside the suites. */
#ifndef DET_TEST_NASTY_H
#define DET_TEST_NASTY_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char nasty[4096];

/* A setup of a group; not 0 when it is not there. */
static inline int find_nasty(void **state)
{
    ssize_t size = readlink("/proc/self/exe", nasty, sizeof nasty - 32);
    char *end;

    (void)state;
    if (size <= 0)
        return -1;
    nasty[size] = '\0';
    end = strrchr(nasty, '/');
    (void)snprintf(end, 32, "/nasty-child");
    return access(nasty, X_OK);
}

#endif
