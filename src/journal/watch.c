/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* watch.c - watchers: changes of a journal as a message to a loop, at most one under way. A watch
 * that is removed while its message is under way is freed by the message. */
#include "journal/journal_internal.h"

#include "base/assert.h"
#include "base/memory.h"

static void run_watch(void *argument)
{
    struct det_journal_watch *watch = argument;

    if (!watch->watcher) {
        DET_DELETE(watch->allocator, watch);
        return;
    }
    atomic_store(&watch->is_posted, false);
    watch->watcher->run(watch->watcher->argument);
}

int det_journal_watch(struct det_journal *journal, struct det_journal_watcher *watcher)
{
    struct det_journal_watch *watch;

    det_assert(watcher->loop && watcher->run && !watcher->internal.watch);
    watch = DET_NEW(journal->allocator, struct det_journal_watch);
    if (!watch)
        return DET_ERR_NO_MEMORY;
    watch->allocator = journal->allocator;
    watch->watcher = watcher;
    watch->loop = watcher->loop;
    watch->post = (struct det_post){ .run = run_watch, .argument = watch };
    watcher->internal.watch = watch;
    det_journal_lock(journal);
    det_list_init(&watch->node);
    det_list_append(&journal->watches, &watch->node);
    if (det_journal_buffers_has_frames(journal))
        det_journal_write_soon(journal);
    det_journal_unlock(journal);
    return 0;
}

void det_journal_unwatch(struct det_journal *journal, struct det_journal_watcher *watcher)
{
    struct det_journal_watch *watch = watcher->internal.watch;

    if (!watch)
        return;
    det_journal_lock(journal);
    det_list_remove(&watch->node);
    det_journal_unlock(journal);
    watcher->internal.watch = NULL;
    watch->watcher = NULL;
    if (!atomic_load(&watch->is_posted))
        DET_DELETE(watch->allocator, watch);
}
