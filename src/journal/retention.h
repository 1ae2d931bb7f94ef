/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* retention.h - which rows may be dropped. */
#ifndef DET_JOURNAL_RETENTION_H
#define DET_JOURNAL_RETENTION_H

#include <detent/journal.h>

/* What could be dropped: the oldest segment. */
struct det_journal_oldest {
    uint64_t last;       /* position of its last row */
    det_time newest;     /* wall time of it */
    uint64_t bytes_left; /* of the journal without the segment */
};

/* `released`: rows before it may be dropped; 0: nothing was released. */
bool det_journal_may_drop(
    const struct det_journal_options *options, uint64_t released, det_time now,
    const struct det_journal_oldest *oldest);

#endif
