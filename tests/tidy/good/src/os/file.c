/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py. */
#include <sys/stat.h>

static int both(int file, const char *a, const char *b)
{
    fsync(file);
    return rename(a, b);
}
