/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py. */
static int first(int file)
{
    return fsync(file);
}



