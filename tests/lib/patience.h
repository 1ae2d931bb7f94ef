/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* patience.h - limits of real time in tests that hold on a busy machine, as patience.py has them.
 *
 * Prefer virtual time, processor time or counts of steps. DET_TEST_HANG catches what never ends,
 * and nothing else. A limit that has to be short is multiplied by det_test_load(). */
#ifndef DET_TEST_PATIENCE_H
#define DET_TEST_PATIENCE_H

#include <stdio.h>
#include <unistd.h>

#include <detent/base.h>

#define DET_TEST_HANG (10 * DET_MINUTE)

/* How many programs are ready to run for each processor, now; at least 1. */
static inline int64_t det_test_load(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), ready = 1;
    FILE *file = fopen("/proc/loadavg", "re");

    if (file && fscanf(file, "%*f %*f %*f %ld/", &ready) != 1)
        ready = 1;
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
