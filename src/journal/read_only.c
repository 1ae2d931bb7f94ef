/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* read_only.c - a journal that another process writes: follows its end. */
#include "journal/journal_internal.h"

int det_journal_refresh(struct det_journal *journal, struct det_error *reterr)
{
    struct det_journal_stream_sink sink = { journal, det_journal_streams_found };
    uint64_t end;
    int r;

    det_journal_lock(journal);
    r = journal->log->ops->refresh(journal->log, &sink, &end, reterr);
    if (r == 0 && end > atomic_load(&journal->end)) {
        journal->written = end;
        atomic_store(&journal->end, end);
        atomic_store(&journal->acknowledged, end);
    }
    if (r == 0)
        atomic_store(&journal->begin, journal->log->ops->extent(journal->log).begin);
    det_journal_unlock(journal);
    return r;
}
