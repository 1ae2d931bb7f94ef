/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py. */
static void tell(unsigned count, unsigned all)
{
    say("%u tasks wait; look at them", count);
    say("%u of %u are healthy", count, all);
}



