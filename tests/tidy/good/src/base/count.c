/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* A snippet for tidy.py. */
static void tell(unsigned count, unsigned all)
{
    say("%u task%s; code %u is wrong, %u ms", count, det_plural(count), all, all);
    say("an id has %d bytes", ID_BYTES_MAX);
    say("%u tasks; at most %u can be kept", count, all);
    say(count == 1 ? "%u task has ended" : "%u tasks have ended", count);
}
