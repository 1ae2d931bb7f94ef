/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* patience.h - limits of real time in tests that hold on a busy machine, as patience.py has them.
 *
 * Prefer virtual time, processor time or counts of steps. DET_TEST_HANG catches what never ends,
 * and nothing else. A limit that has to be short is multiplied by det_test_load(). */
#ifndef DET_TEST_PATIENCE_H
#define DET_TEST_PATIENCE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <detent/base.h>

#define DET_TEST_HANG (10 * DET_MINUTE)

/* How many programs are ready to run for each processor, now; at least 1. */
static inline int64_t det_test_load(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), ready = 1;
    FILE *file = fopen("/proc/loadavg", "re");
    char text[128] = "", *at = text;

    if (file && fgets(text, sizeof text, file)) {
        /* "1.25 0.80 0.40 3/250 4711": the fourth is ready of all. */
        for (int i = 0; i < 3 && at; i++)
            at = strchr(at + (i > 0), ' ');
        ready = at ? strtol(at, NULL, 10) : 1;
    }
    if (file)
        (void)fclose(file);
    return ready > cores && cores > 0 ? (ready + cores - 1) / cores : 1;
}

/* The most that was seen: for a limit on what has taken a while. */
static inline int64_t det_test_load_since(int64_t before)
{
    int64_t now = det_test_load();

    return now > before ? now : before;
}

#endif
