/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* statistics.c - the median and the spread of a few samples. */
#include <stdlib.h>

#include "base/assert.h"
#include "statistics.h"

static int compare(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;

    return (*left > *right) - (*left < *right);
}

double bench_quantile(double *samples, size_t count, double fraction)
{
    double place, rest;
    size_t below;

    det_assert(count > 0);
    det_assert(fraction >= 0 && fraction <= 1);
    qsort(samples, count, sizeof *samples, compare);
    place = fraction * (double)(count - 1);
    below = (size_t)place;
    rest = place - (double)below;
    if (below + 1 >= count)
        return samples[count - 1];
    return samples[below] + rest * (samples[below + 1] - samples[below]);
}
