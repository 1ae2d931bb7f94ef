/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py. */
static void copy(char *to, const char *from)
{
    strcpy(to, from);
}



