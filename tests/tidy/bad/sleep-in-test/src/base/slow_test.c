/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py. */
static void waits(void **state)
{
    usleep(1000);
}



