/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* retention.c - which rows may be dropped: a release permits it, size and age ask for it; what is
 * set must agree. */
#include "journal/retention.h"

bool det_journal_may_drop(
    const struct det_journal_options *options, uint64_t released, det_time now,
    const struct det_journal_oldest *oldest)
{
    if (released == 0 && options->retain_size == 0 && options->retain_age == 0)
        return false;
    if (released > 0 && oldest->last >= released)
        return false;
    if (options->retain_size > 0 && oldest->bytes_left < options->retain_size)
        return false;
    return options->retain_age == 0 || oldest->newest < now - options->retain_age;
}
