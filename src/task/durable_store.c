/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_store.c - the thread of a queue that talks to the store. It ends finished jobs, renews
 * running ones, and claims jobs for free places, all in one transaction.
 *
 *     wait: a job has ended | a place is free, and news or the poll is due | time to renew
 *       |
 *     batch --> store --> claimed: started, here or by the starter
 *       ^                 no answer: the ends are repeated
 *       +---- more jobs may end soon: a short wait, so that they share the transaction
 *
 * Invariants
 *   1. A claim requests as many jobs as there are free places here, so at most `width`.
 *   2. The end of a job that was not begun is sent once: with an unknown outcome the claim lapses.
 *   3. A final end is repeated until the store accepts it, however long that takes; another end
 *      only as long as its claim lasts.
 *   4. A batch that claims contains all ends: otherwise it could claim a job that has ended here,
 *      but whose claim lapsed before the store recorded the end. */
#include "base/memory.h"
#include "task/durable.h"

/* Wait for more ends: after each, and in total. */
#define LINGER_STEP (100 * DET_MICROSECOND)
#define LINGER_MAX  DET_MILLISECOND
/* Waits do not count machine sleep. */
#define CHECK_EVERY DET_SECOND
/* While there is always a job to claim, due jobs are searched at this interval, starting after this
 * many claims; when jobs come one by one, each claim searches them. */
#define DUE_EVERY  (50 * DET_MILLISECOND)
#define FULL_LEAST 2
/* Returned to the store for claimed jobs without memory for them. */
#define REFUSED 1

struct durable_batch {
    struct det_durable *durable;
    struct det_job_batch store;
    struct det_job_end *ends;
    struct det_job_renewal *renewals;
    struct durable_attempt **ended, **renewed; /* the attempts of the batch */
    struct det_list claimed;
    det_time begun; /* BOOT */
    uint64_t seen;  /* `news` before the batch */
};

static det_time monotonic(const struct det_durable *durable)
{
    return det_world_now(durable->world, DET_CLOCK_MONOTONIC);
}

/* Errors that may pass. READ_ONLY: a server that is a standby now. */
static bool is_passing(int r)
{
    return r == DET_ERR_IO || r == DET_ERR_TIMEOUT || r == DET_ERR_BUSY || r == DET_ERR_NO_MEMORY ||
           r == DET_ERR_NO_SPACE || r == DET_ERR_READ_ONLY;
}

static bool is_lost(struct det_store *store)
{
    return store->ops->is_lost && store->ops->is_lost(store);
}

/* The time without known work. Jobs of other processes are unknown. */
static det_time span_until(const struct det_durable *durable, det_time next)
{
    struct det_store *store = durable->options.store;
    det_time span = next == DET_NEVER ? DET_NEVER : next - store->ops->now(store);

    if (span > durable->options.poll)
        span = durable->options.poll;
    return span > DET_MILLISECOND ? span : DET_MILLISECOND;
}

/* Number of occupied places; all of these functions are under the mutex. */

static uint32_t held(const struct det_durable *durable)
{
    uint32_t count = 0;

    for (int i = 0; i < DURABLE_STAGES; i++)
        count += durable->counts[i];
    return count;
}

static bool can_claim(const struct det_durable *durable, det_time now, uint32_t places)
{
    return !durable->is_stopping && !durable->ends_alone && places > 0 &&
           (durable->news != durable->seen || now >= durable->claim_at);
}

static bool can_end(const struct det_durable *durable, det_time now)
{
    return durable->counts[DURABLE_ENDED] > 0 && (durable->is_stopping || now >= durable->ends_at);
}

/* BOOT; DET_NEVER: no claims. Jobs that wait for their start are renewed, too. */
static det_time next_renewal(struct det_durable *durable)
{
    det_time next = DET_NEVER;

    for (int stage = 0; stage < DURABLE_ENDED; stage++) {
        DET_LIST_EACH(node, &durable->attempts[stage])
        {
            const struct durable_attempt *attempt = durable_attempt_at(node);

            if (!attempt->is_lost && attempt->renew_at < next)
                next = attempt->renew_at;
        }
    }
    return next;
}

static bool is_over(const struct det_durable *durable)
{
    return durable->is_stopping && held(durable) == 0;
}

/* Waits until there is work; false: no more work will come. */
static bool wait_for_work(struct det_durable *durable)
{
    for (;;) {
        det_time now = monotonic(durable), until = now + CHECK_EVERY;
        det_time renewal = next_renewal(durable), boot = durable_boot(durable);
        uint32_t places = durable->options.width - held(durable);

        if (is_over(durable))
            return false;
        if (can_end(durable, now) || can_claim(durable, now, places) || renewal <= boot)
            return true;
        if (renewal != DET_NEVER && now + renewal - boot < until)
            until = now + renewal - boot;
        if (places && !durable->is_stopping && durable->claim_at < until)
            until = durable->claim_at;
        if (durable->counts[DURABLE_ENDED] && durable->ends_at < until)
            until = durable->ends_at;
        (void)det_condition_wait(durable->world, durable->for_keeper, durable->mutex, until);
    }
}

/* Running jobs may be as short as those that have just ended. */
static void linger(struct det_durable *durable)
{
    det_time now = monotonic(durable), end = now + LINGER_MAX;
    uint32_t count = 0;

    while (durable->counts[DURABLE_ENDED] > count && durable->counts[DURABLE_RUNNING] &&
           !durable->is_stopping && now < end) {
        count = durable->counts[DURABLE_ENDED];
        (void)det_condition_wait(
            durable->world, durable->for_keeper, durable->mutex, now + LINGER_STEP);
        now = monotonic(durable);
    }
}

static void collect_ends(struct det_durable *durable, struct durable_batch *batch)
{
    DET_LIST_EACH(node, &durable->attempts[DURABLE_ENDED])
    {
        struct durable_attempt *attempt = durable_attempt_at(node);

        batch->ended[batch->store.end_count] = attempt;
        batch->ends[batch->store.end_count++] = attempt->end;
    }
}

static void renew(struct durable_batch *batch, struct durable_attempt *attempt)
{
    batch->renewed[batch->store.renewal_count] = attempt;
    batch->renewals[batch->store.renewal_count++] =
        (struct det_job_renewal){ .key = attempt->key, .token = attempt->job.attempt };
}

/* Claims that are due soon are renewed with those that are due. */
static void collect_renewals(struct det_durable *durable, struct durable_batch *batch)
{
    det_time soon = batch->begun + durable->options.lease / 12;

    if (next_renewal(durable) > batch->begun)
        return;
    for (int stage = 0; stage < DURABLE_ENDED; stage++) {
        DET_LIST_EACH(node, &durable->attempts[stage])
        {
            struct durable_attempt *attempt = durable_attempt_at(node);

            if (!attempt->is_lost && attempt->renew_at <= soon)
                renew(batch, attempt);
        }
    }
}

static int keep_claimed(void *context, const struct det_job_row *row)
{
    struct durable_batch *batch = context;
    struct durable_attempt *attempt = det_durable_attempt_open(batch->durable, row, batch->begun);

    if (!attempt)
        return REFUSED;
    det_list_append(&batch->claimed, &attempt->node);
    return 0;
}

static void drop_claimed(struct durable_batch *batch)
{
    struct det_list *node;

    while ((node = det_list_take(&batch->claimed)))
        det_durable_attempt_close(durable_attempt_at(node));
}

/* Ends of lost claims are not sent. */
static void drop_lost_ends(struct det_durable *durable)
{
    struct det_list *ended = &durable->attempts[DURABLE_ENDED];

    for (struct det_list *node = ended->next; node != ended;) {
        struct durable_attempt *attempt = durable_attempt_at(node);

        node = node->next;
        if (attempt->end.token)
            continue;
        det_durable_attempt_set_stage(attempt, DURABLE_STAGES);
        det_durable_attempt_close(attempt);
    }
}

static void compose(struct det_durable *durable, struct durable_batch *batch)
{
    const struct det_durable_options *options = &durable->options;
    det_time now = monotonic(durable);
    bool is_claiming;

    batch->begun = durable_boot(durable);
    batch->seen = durable->news;
    batch->store = (struct det_job_batch){ .queue = options->queue,
                                           .ends = batch->ends,
                                           .renewals = batch->renewals,
                                           .span = options->lease,
                                           .capacity = options->width,
                                           .visit = keep_claimed,
                                           .context = batch };
    drop_lost_ends(durable);
    if (can_end(durable, now) || can_claim(durable, now, options->width - held(durable)))
        collect_ends(durable, batch);
    collect_renewals(durable, batch);
    /* An end frees a place, and a claim of another job costs little. */
    is_claiming = !durable->is_stopping && !durable->ends_alone &&
                  (batch->store.end_count || can_claim(durable, now, 1));
    if (is_claiming)
        batch->store.wanted = options->width - held(durable) + (uint32_t)batch->store.end_count;
    batch->store.leaves_due = durable->full >= FULL_LEAST && now < durable->due_at;
}

/* Handles the result of an end; under the mutex. */

static void settle_end(struct durable_attempt *attempt, int r, bool is_stopping)
{
    bool is_for_good = attempt->end.state != DET_JOB_DELAYED;
    bool is_again = is_passing(r) && !attempt->end.is_unbegun && !is_stopping &&
                    !is_lost(attempt->durable->options.store) &&
                    (is_for_good || durable_boot(attempt->durable) < attempt->lease_end);

    if (is_again)
        return;
    det_durable_attempt_set_stage(attempt, DURABLE_STAGES);
    det_durable_attempt_close(attempt);
}

static void settle_ends(struct det_durable *durable, struct durable_batch *batch, int r)
{
    bool is_kept = r < 0 && !is_passing(r) && batch->store.wanted;

    durable->ends_alone = is_kept && batch->store.end_count;
    if (durable->ends_alone)
        return;
    if (batch->store.end_count && r < 0 && is_passing(r))
        durable->ends_at = monotonic(durable) + durable->options.lease / 12;
    for (size_t i = 0; i < batch->store.end_count; i++)
        settle_end(batch->ended[i], r, durable->is_stopping);
}

/* A renewed attempt may have ended meanwhile, but it exists: only this thread frees attempts. */
static void settle_renewals(struct det_durable *durable, struct durable_batch *batch, int r)
{
    det_time lease = durable->options.lease, now = durable_boot(durable);
    bool is_any_lost = false;

    for (size_t i = 0; i < batch->store.renewal_count; i++) {
        struct durable_attempt *attempt = batch->renewed[i];
        int result = r < 0 ? r : batch->renewals[i].result;

        if (result == 0)
            attempt->lease_end = batch->begun + lease;
        attempt->renew_at = now + (result == 0 ? lease / 3 : lease / 12);
        attempt->is_lost = attempt->is_lost || result == DET_ERR_LOCK_LOST ||
                           attempt->renew_at >= attempt->lease_end - lease / 4;
        is_any_lost = is_any_lost || attempt->is_lost;
    }
    if (is_any_lost)
        det_condition_signal(durable->world, durable->for_starter);
}

static void settle_claim(struct det_durable *durable, struct durable_batch *batch, int r)
{
    det_time now = monotonic(durable);
    struct det_list *node;

    while ((node = det_list_take(&batch->claimed)))
        det_durable_attempt_set_stage(durable_attempt_at(node), DURABLE_CLAIMED);
    durable->claim_at = now;
    durable->full = r == 0 && batch->store.claimed == batch->store.wanted ? durable->full + 1 : 0;
    if (!batch->store.leaves_due)
        durable->due_at = now + DUE_EVERY;
    /* The next batch claims at once the jobs that this one left. */
    if (durable->full || (r == 0 && batch->store.leaves_due))
        return;
    durable->seen = batch->seen;
    durable->claim_at =
        now + (r == 0 ? span_until(durable, batch->store.next) : durable->options.poll);
}

/* The store's result; 0 also for an empty batch. */
static int run_batch(struct det_durable *durable, struct durable_batch *batch)
{
    const struct det_job_batch *store = &batch->store;
    int r;

    if (!store->end_count && !store->renewal_count && !store->wanted)
        return 0;
    det_mutex_unlock(durable->world, durable->mutex);
    r = durable->ops->apply(durable->options.store, &batch->store);
    if (r < 0)
        drop_claimed(batch);
    det_mutex_lock(durable->world, durable->mutex);
    if (store->wanted)
        settle_claim(durable, batch, r);
    settle_renewals(durable, batch, r);
    settle_ends(durable, batch, r);
    det_durable_start_claimed(durable);
    return r;
}

static void run_keeper(void *argument)
{
    struct det_durable *durable = argument;
    struct durable_batch *batch = durable->batch;
    int r;

    det_mutex_lock(durable->world, durable->mutex);
    while (wait_for_work(durable)) {
        linger(durable);
        compose(durable, batch);
        r = run_batch(durable, batch);
        if (r == 0 && batch->store.wanted && !batch->store.claimed && !batch->store.leaves_due &&
            batch->store.next == DET_NEVER && !durable->options.schedule_count)
            det_durable_let_go(durable, batch->seen);
    }
    durable->has_kept = true;
    det_condition_broadcast(durable->world, durable->for_starter);
    det_durable_leave(durable);
    det_mutex_unlock(durable->world, durable->mutex);
}

int det_durable_keeper_open(struct det_durable *durable)
{
    const struct det_allocator *allocator = durable->allocator;
    uint32_t width = durable->options.width;
    struct durable_batch *batch = DET_NEW(allocator, struct durable_batch);

    if (!batch)
        return DET_ERR_NO_MEMORY;
    durable->batch = batch;
    batch->durable = durable;
    det_list_init(&batch->claimed);
    batch->ends = DET_NEW_ARRAY(allocator, width, struct det_job_end);
    batch->renewals = DET_NEW_ARRAY(allocator, width, struct det_job_renewal);
    batch->ended = DET_NEW_ARRAY(allocator, width, struct durable_attempt *);
    batch->renewed = DET_NEW_ARRAY(allocator, width, struct durable_attempt *);
    if (!batch->ends || !batch->renewals || !batch->ended || !batch->renewed)
        return DET_ERR_NO_MEMORY;
    return det_durable_thread(durable, run_keeper, &durable->keeper);
}

void det_durable_keeper_close(struct det_durable *durable)
{
    const struct det_allocator *allocator = durable->allocator;
    uint32_t width = durable->options.width;
    struct durable_batch *batch = durable->batch;

    if (durable->keeper)
        det_thread_join(durable->world, durable->keeper);
    if (!batch)
        return;
    if (batch->ends)
        DET_DELETE_ARRAY(allocator, batch->ends, width);
    if (batch->renewals)
        DET_DELETE_ARRAY(allocator, batch->renewals, width);
    if (batch->ended)
        DET_DELETE_ARRAY(allocator, batch->ended, width);
    if (batch->renewed)
        DET_DELETE_ARRAY(allocator, batch->renewed, width);
    DET_DELETE(allocator, batch);
}
