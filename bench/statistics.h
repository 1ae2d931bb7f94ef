/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* statistics.h - the median and the spread of a few samples. */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <stddef.h>

/* Returns the value below which `fraction` (0 to 1) of the samples are, interpolated between two of
 * them. Sorts the samples, of which there must be at least one. */
double bench_quantile(double *samples, size_t count, double fraction);

#endif
