/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* threads.c - threads that write journals: of one journal, or shared by many.
 *
 *     urgent:  journals that are served in turn
 *     patient: journals by the time at which they are due
 *
 * Invariants, under `mutex`
 *   1. A journal is in at most one of the two queues.
 *   2. `sleepers` threads wait for `wake`. */
#include "journal/journal_internal.h"

#include "base/assert.h"
#include "base/memory.h"

#define THREADS_MAX     64u
#define THREADS_DEFAULT 2u
/* How long frames wait that nobody waits for: a caller may come that does. */
#define LINGER DET_MILLISECOND

struct writer_thread {
    struct det_journal_threads *threads;
    struct det_thread *thread;
    struct det_journal *served;
};

struct det_journal_threads {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_mutex *mutex;
    struct det_condition *wake, *served;
    struct det_list urgent, patient;
    struct writer_thread *writers;
    unsigned count;
    unsigned sleepers, dozers; /* that wait without and with a deadline */
    bool is_started, stop_wanted;
};

static void enqueue(
    struct det_journal_threads *threads, struct det_journal *journal, bool is_urgent)
{
    det_list_remove(&journal->queued);
    if (is_urgent) {
        det_list_append(&threads->urgent, &journal->queued);
        return;
    }
    journal->due = det_world_now(threads->world, DET_CLOCK_MONOTONIC) + LINGER;
    det_list_append(&threads->patient, &journal->queued);
}

void det_journal_threads_queue(
    struct det_journal_threads *threads, struct det_journal *journal, bool is_urgent)
{
    bool must_wake;

    det_mutex_lock(threads->world, threads->mutex);
    enqueue(threads, journal, is_urgent);
    must_wake = is_urgent || threads->dozers == 0;
    det_mutex_unlock(threads->world, threads->mutex);
    if (must_wake)
        det_condition_signal(threads->world, threads->wake);
}

void det_journal_threads_forget(struct det_journal_threads *threads, struct det_journal *journal)
{
    bool is_served = true;

    det_mutex_lock(threads->world, threads->mutex);
    while (is_served) {
        det_list_remove(&journal->queued);
        is_served = false;
        for (unsigned i = 0; i < threads->count; i++)
            is_served = is_served || threads->writers[i].served == journal;
        if (is_served &&
            det_condition_wait(threads->world, threads->served, threads->mutex, DET_NEVER) < 0)
            break;
    }
    det_mutex_unlock(threads->world, threads->mutex);
}

static struct det_journal *take_due(struct det_journal_threads *threads, det_time *ret_due)
{
    struct det_list *node = det_list_take(&threads->urgent);
    struct det_journal *journal;

    *ret_due = DET_NEVER;
    if (node)
        return DET_CONTAINER(node, struct det_journal, queued);
    if (det_list_is_empty(&threads->patient))
        return NULL;
    journal = DET_CONTAINER(threads->patient.next, struct det_journal, queued);
    if (journal->due > det_world_now(threads->world, DET_CLOCK_MONOTONIC)) {
        *ret_due = journal->due;
        return NULL;
    }
    det_list_remove(&journal->queued);
    return journal;
}

/* Returns the first journal that is due; NULL after a wait, or to stop. */
static struct det_journal *take_journal(struct det_journal_threads *threads)
{
    struct det_journal *journal;
    unsigned *count;
    det_time due;

    journal = take_due(threads, &due);
    if (journal || threads->stop_wanted)
        return journal;
    count = due == DET_NEVER ? &threads->sleepers : &threads->dozers;
    ++*count;
    (void)det_condition_wait(threads->world, threads->wake, threads->mutex, due);
    --*count;
    return NULL;
}

static void serve_journal(struct writer_thread *writer, struct det_journal *journal)
{
    struct det_journal_threads *threads = writer->threads;
    bool again;

    writer->served = journal;
    det_mutex_unlock(threads->world, threads->mutex);
    again = det_journal_serve(journal);
    det_mutex_lock(threads->world, threads->mutex);
    writer->served = NULL;
    if (again)
        enqueue(threads, journal, true);
    det_condition_broadcast(threads->world, threads->served);
}

static void run_writer(void *argument)
{
    struct writer_thread *writer = argument;
    struct det_journal_threads *threads = writer->threads;
    struct det_journal *journal;

    det_mutex_lock(threads->world, threads->mutex);
    for (;;) {
        journal = take_journal(threads);
        if (journal)
            serve_journal(writer, journal);
        else if (threads->stop_wanted)
            break;
    }
    det_mutex_unlock(threads->world, threads->mutex);
}

static int open_parts(struct det_journal_threads *threads)
{
    int r;

    threads->writers = DET_NEW_ARRAY(threads->allocator, threads->count, struct writer_thread);
    if (!threads->writers)
        return DET_ERR_NO_MEMORY;
    r = det_mutex_open(threads->world, &threads->mutex);
    if (r == 0)
        r = det_condition_open(threads->world, &threads->wake);
    if (r == 0)
        r = det_condition_open(threads->world, &threads->served);
    return r;
}

int det_journal_threads_open(
    struct det_world *world, const struct det_allocator *allocator, unsigned count,
    struct det_journal_threads **ret, struct det_error *reterr)
{
    struct det_journal_threads *threads;
    int r;

    if (count > THREADS_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "%u threads for journals: at most %u", count, THREADS_MAX);
    threads = DET_NEW(allocator, struct det_journal_threads);
    if (!threads)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for threads of journals");
    threads->world = det_world_or_real(world);
    threads->allocator = allocator;
    threads->count = count ? count : THREADS_DEFAULT;
    det_list_init(&threads->urgent);
    det_list_init(&threads->patient);
    r = open_parts(threads);
    if (r < 0) {
        det_journal_threads_close(threads);
        return det_error_set(reterr, r, "threads of journals: %s", det_error_text(r));
    }
    *ret = threads;
    return 0;
}

/* At least one thread has started when this succeeds. */
int det_journal_threads_start(struct det_journal_threads *threads)
{
    int r = 0;

    det_mutex_lock(threads->world, threads->mutex);
    for (unsigned i = 0; i < threads->count && !threads->is_started; i++) {
        threads->writers[i].threads = threads;
        r = det_thread_start(
            threads->world, "journal", run_writer, &threads->writers[i],
            &threads->writers[i].thread);
        if (r < 0)
            break;
    }
    threads->is_started = threads->writers[0].thread != NULL;
    r = threads->is_started ? 0 : r;
    det_mutex_unlock(threads->world, threads->mutex);
    return r;
}

void det_journal_threads_close(struct det_journal_threads *threads)
{
    if (!threads)
        return;
    if (threads->mutex) {
        det_mutex_lock(threads->world, threads->mutex);
        det_assert(det_list_is_empty(&threads->urgent) && det_list_is_empty(&threads->patient));
        threads->stop_wanted = true;
        if (threads->wake)
            det_condition_broadcast(threads->world, threads->wake);
        det_mutex_unlock(threads->world, threads->mutex);
    }
    for (unsigned i = 0; threads->writers && i < threads->count; i++) {
        if (threads->writers[i].thread)
            det_thread_join(threads->world, threads->writers[i].thread);
    }
    det_condition_close(threads->world, threads->served);
    det_condition_close(threads->world, threads->wake);
    det_mutex_close(threads->world, threads->mutex);
    if (threads->writers)
        DET_DELETE_ARRAY(threads->allocator, threads->writers, threads->count);
    DET_DELETE(threads->allocator, threads);
}
