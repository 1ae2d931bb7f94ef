/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* statistics.h - the middle and the spread of a few samples. */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <stddef.h>

/* The value below which `fraction` (0 to 1) of the samples lie, between two of them where it does
 * not meet one. Sorts the samples. There is at least one. */
double bench_quantile(double *samples, size_t count, double fraction);

#endif
