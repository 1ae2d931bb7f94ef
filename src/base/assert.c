/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* assert.c - the only place that aborts the process. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void det_assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}
