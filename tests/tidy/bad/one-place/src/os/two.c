/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py. */
static int second(const char *a, const char *b)
{
    return rename(a, b);
}



