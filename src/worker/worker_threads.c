/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads.c - one queue, one lock, and places for threads, the hands.
 *
 *              start_hand()                det_crew_give_up()            its job comes back
 *     HAND_FREE -----------> HAND_MEMBER ------------------> HAND_HUNG -----------------+
 *         ^                                                                             v
 *         +--- joined, when the place is needed again ----------------------------- HAND_ENDED
 *
 * Invariants
 *   1. Everything here changes under `mutex`; no lock is held while a job runs or its end is
 *      posted.
 *   2. A job is in the queue, or with one hand, or posted; once posted it is not touched.
 *   3. There is at least one member, so whatever is submitted gets its turn.
 *   4. members <= threads_max and hung <= hung_max; there are as many places as both together, so
 *      there is always one for a thread that may start.
 *   5. A member in `idle` waits, and is called by whoever takes it out. One that neither waits
 *      there nor runs a job looks at the queue before it does either, so as many jobs as there are
 *      such members need nobody else.
 *   6. A thread whose hand has ended takes no lock any more, so it may be joined under `mutex`.
 *   7. Once `is_closing` is true no job starts and no thread does. */
#include <detent/driver/loop.h>

#include "worker/worker_threads.h"

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"

enum job_state {
    JOB_AWAY, /* not submitted, or posted */
    JOB_QUEUED,
    JOB_RUNNING,
};

enum hand_state {
    HAND_FREE,
    HAND_MEMBER,
    HAND_HUNG,
    HAND_ENDED,
};

struct det_crew_hand {
    struct det_crew *crew;
    enum hand_state state;
    struct det_thread *thread;
    struct det_condition *woken; /* when it is idle, or its job waits; kept until the crew closes */
    struct det_crew_job *job;
    bool is_idle;
    struct det_list node; /* of `idle` */
};

struct det_crew {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_loop *loop;
    char *name;
    struct det_mutex *mutex;
    struct det_list queue;
    struct det_list idle; /* who came last is called first: the others may sleep on */
    unsigned queued, running, members, hung, idle_count;
    unsigned threads_max, hung_max;
    bool is_closing;
    bool is_held; /* whoever submits goes on to do so */
    size_t hands_count;
    struct det_crew_hand *hands;
};

static struct det_crew_job *job_of(struct det_list *node)
{
    return DET_CONTAINER(node, struct det_crew_job, node);
}

static void job_done(void *argument)
{
    struct det_crew_job *job = argument;

    job->done(job->argument);
}

static void post_end(struct det_crew *crew, struct det_crew_job *job)
{
    job->post = (struct det_post){ .run = job_done, .argument = job };
    det_loop_post(crew->loop, &job->post);
}

static void unqueue(struct det_crew *crew, struct det_crew_job *job)
{
    det_assert(job->state == JOB_QUEUED && crew->queued > 0);
    det_list_remove(&job->node);
    job->state = JOB_AWAY;
    crew->queued--;
}

static bool may_work(const struct det_crew_hand *hand)
{
    return hand->state == HAND_MEMBER && !hand->crew->is_closing;
}

static void unidle(struct det_crew_hand *hand)
{
    det_assert(hand->is_idle && hand->crew->idle_count > 0);
    hand->is_idle = false;
    hand->crew->idle_count--;
    det_list_remove(&hand->node);
}

static void wait_for_call(struct det_crew_hand *hand)
{
    struct det_crew *crew = hand->crew;

    hand->is_idle = true;
    crew->idle_count++;
    det_list_prepend(&crew->idle, &hand->node);
    (void)det_condition_wait(crew->world, hand->woken, crew->mutex, DET_NEVER);
    if (hand->is_idle)
        unidle(hand);
}

/* The next job of this hand, or NULL when its thread is to end. */
static struct det_crew_job *take_job(struct det_crew_hand *hand)
{
    struct det_crew *crew = hand->crew;
    struct det_crew_job *job = NULL;

    det_mutex_lock(crew->world, crew->mutex);
    while (may_work(hand) && det_list_is_empty(&crew->queue))
        wait_for_call(hand);
    if (may_work(hand)) {
        job = job_of(crew->queue.next);
        unqueue(crew, job);
        job->state = JOB_RUNNING;
        job->hand = hand;
        hand->job = job;
        crew->running++;
    }
    det_mutex_unlock(crew->world, crew->mutex);
    return job;
}

/* From here on nobody can give it up, so `is_late` says whether somebody has. Whether the hand goes
 * on: if not it may be joined at once, by somebody who has the lock. */
static bool end_job(struct det_crew_hand *hand, struct det_crew_job *job)
{
    struct det_crew *crew = hand->crew;
    bool is_late;

    det_mutex_lock(crew->world, crew->mutex);
    det_assert(hand->job == job && job->hand == hand && job->state == JOB_RUNNING);
    job->is_late = is_late = hand->state == HAND_HUNG;
    job->state = JOB_AWAY;
    job->hand = NULL;
    hand->job = NULL;
    if (is_late) {
        hand->state = HAND_ENDED;
        crew->hung--;
    } else
        crew->running--;
    det_mutex_unlock(crew->world, crew->mutex);
    post_end(crew, job);
    return !is_late;
}

static void run_job(struct det_crew *crew, struct det_crew_job *job)
{
    atomic_store(&job->started_at, det_world_now(crew->world, DET_CLOCK_MONOTONIC));
    atomic_store(&job->is_started, true);
    job->run(job->argument);
}

static void hand_main(void *argument)
{
    struct det_crew_hand *hand = argument;
    struct det_crew_job *job;

    do {
        job = take_job(hand);
        if (job)
            run_job(hand->crew, job);
    } while (job && end_job(hand, job));
}

/* Where a thread can start. One that was given up and has ended makes room here. */
static struct det_crew_hand *free_hand(struct det_crew *crew)
{
    for (size_t i = 0; i < crew->hands_count; i++) {
        struct det_crew_hand *hand = &crew->hands[i];

        if (hand->state == HAND_ENDED) {
            det_thread_join(crew->world, hand->thread);
            hand->thread = NULL;
            hand->state = HAND_FREE;
        }
        if (hand->state == HAND_FREE)
            return hand;
    }
    return NULL;
}

static int start_hand(struct det_crew *crew)
{
    struct det_crew_hand *hand = free_hand(crew);
    int r = 0;

    det_assert(hand && !crew->is_closing);
    if (!hand->woken)
        r = det_condition_open(crew->world, &hand->woken);
    if (r < 0)
        return r;
    hand->crew = crew;
    hand->state = HAND_MEMBER;
    hand->is_idle = false;
    r = det_thread_start(crew->world, crew->name, hand_main, hand, &hand->thread);
    if (r < 0) {
        hand->state = HAND_FREE;
        return r;
    }
    crew->members++;
    return 0;
}

static int open_parts(struct det_crew *crew, const char *name)
{
    int r;

    crew->name = det_string_copy(crew->allocator, name);
    if (!crew->name)
        return DET_ERR_NO_MEMORY;
    crew->hands = DET_NEW_ARRAY(crew->allocator, crew->hands_count, struct det_crew_hand);
    if (!crew->hands)
        return DET_ERR_NO_MEMORY;
    r = det_mutex_open(crew->world, &crew->mutex);
    if (r < 0)
        return r;
    det_mutex_lock(crew->world, crew->mutex);
    r = start_hand(crew);
    det_mutex_unlock(crew->world, crew->mutex);
    return r;
}

int det_crew_open(
    const struct det_allocator *allocator, struct det_loop *loop, const char *name,
    unsigned threads, unsigned hung_max, struct det_crew **ret)
{
    struct det_crew *crew;
    int r;

    det_assert(threads > 0 && loop);
    crew = DET_NEW(allocator, struct det_crew);
    if (!crew)
        return DET_ERR_NO_MEMORY;
    crew->world = det_loop_world(loop);
    crew->allocator = allocator;
    crew->loop = loop;
    crew->threads_max = threads;
    crew->hung_max = hung_max;
    crew->hands_count = (size_t)threads + hung_max;
    det_list_init(&crew->queue);
    det_list_init(&crew->idle);
    r = open_parts(crew, name);
    if (r < 0) {
        det_crew_close(crew);
        return r;
    }
    *ret = crew;
    return 0;
}

/* After this no thread is left, and the queue is ours alone. */
static void stop_hands(struct det_crew *crew)
{
    det_mutex_lock(crew->world, crew->mutex);
    crew->is_closing = true;
    for (size_t i = 0; i < crew->hands_count; i++) {
        struct det_crew_hand *hand = &crew->hands[i];

        if (hand->job)
            atomic_store(&hand->job->is_cancelled, true);
        if (hand->woken)
            det_condition_signal(crew->world, hand->woken);
    }
    det_mutex_unlock(crew->world, crew->mutex);
    for (size_t i = 0; i < crew->hands_count; i++)
        if (crew->hands[i].thread)
            det_thread_join(crew->world, crew->hands[i].thread);
}

static void drop_queue(struct det_crew *crew)
{
    while (!det_list_is_empty(&crew->queue)) {
        struct det_crew_job *job = job_of(crew->queue.next);

        unqueue(crew, job);
        job->is_dropped = true;
        post_end(crew, job);
    }
}

void det_crew_close(struct det_crew *crew)
{
    if (!crew)
        return;
    if (crew->mutex)
        stop_hands(crew);
    drop_queue(crew);
    if (crew->hands) {
        for (size_t i = 0; i < crew->hands_count; i++)
            det_condition_close(crew->world, crew->hands[i].woken);
        DET_DELETE_ARRAY(crew->allocator, crew->hands, crew->hands_count);
    }
    det_mutex_close(crew->world, crew->mutex);
    det_free_string(crew->allocator, crew->name);
    DET_DELETE(crew->allocator, crew);
}

/* Somebody who sleeps, to be woken without the lock, for which it would only wait; NULL when there
 * are enough awake, or all are busy. */
static struct det_condition *call_hand(struct det_crew *crew)
{
    unsigned awake = crew->members - crew->running - crew->idle_count;
    struct det_crew_hand *hand;

    if (crew->queued <= awake || crew->is_closing)
        return NULL;
    if (crew->idle_count > 0) {
        hand = DET_CONTAINER(crew->idle.next, struct det_crew_hand, node);
        unidle(hand);
        return hand->woken;
    }
    /* Without it those that are there come to the job; the next submit tries again. */
    if (crew->members < crew->threads_max)
        (void)start_hand(crew);
    return NULL;
}

/* Of jobs that are submitted one after the other, this many wait for each hand that is awake: most
 * are so short that one hand does many of them, and to wake one costs more than a job. */
#define HELD_MAX 64

static bool may_wait(const struct det_crew *crew)
{
    return crew->is_held && crew->queued < HELD_MAX * (crew->members - crew->idle_count + 1);
}

void det_crew_hold(struct det_crew *crew)
{
    if (!crew)
        return;
    det_mutex_lock(crew->world, crew->mutex);
    crew->is_held = true;
    det_mutex_unlock(crew->world, crew->mutex);
}

void det_crew_release(struct det_crew *crew)
{
    struct det_condition *called;
    unsigned members;
    bool has_started;

    if (!crew)
        return;
    do {
        det_mutex_lock(crew->world, crew->mutex);
        crew->is_held = false;
        members = crew->members;
        called = call_hand(crew);
        has_started = crew->members != members;
        det_mutex_unlock(crew->world, crew->mutex);
        if (called)
            det_condition_signal(crew->world, called);
    } while (called || has_started);
}

void det_crew_submit(struct det_crew *crew, struct det_crew_job *job)
{
    struct det_condition *called;

    det_assert(job->run && job->done);
    job->is_dropped = job->is_late = false;
    atomic_store_explicit(&job->is_started, false, memory_order_relaxed);
    atomic_store_explicit(&job->is_cancelled, false, memory_order_relaxed);
    det_mutex_lock(crew->world, crew->mutex);
    det_assert(job->state == JOB_AWAY);
    job->state = JOB_QUEUED;
    job->hand = NULL;
    det_list_append(&crew->queue, &job->node);
    crew->queued++;
    called = may_wait(crew) ? NULL : call_hand(crew);
    det_mutex_unlock(crew->world, crew->mutex);
    if (called)
        det_condition_signal(crew->world, called);
}

bool det_crew_withdraw(struct det_crew *crew, struct det_crew_job *job)
{
    bool is_mine;

    det_mutex_lock(crew->world, crew->mutex);
    is_mine = job->state == JOB_QUEUED;
    if (is_mine)
        unqueue(crew, job);
    det_mutex_unlock(crew->world, crew->mutex);
    return is_mine;
}

void det_crew_cancel(struct det_crew *crew, struct det_crew_job *job)
{
    det_mutex_lock(crew->world, crew->mutex);
    atomic_store(&job->is_cancelled, true);
    if (job->hand)
        det_condition_signal(crew->world, job->hand->woken);
    det_mutex_unlock(crew->world, crew->mutex);
}

static int replace_hand(struct det_crew *crew, struct det_crew_hand *hand)
{
    int r;

    if (!hand || hand->state == HAND_HUNG)
        return DET_ERR_NOT_FOUND;
    det_assert(hand->state == HAND_MEMBER && hand->job);
    if (crew->hung >= crew->hung_max)
        return DET_ERR_LIMIT;
    r = start_hand(crew);
    if (r < 0)
        return r;
    hand->state = HAND_HUNG;
    crew->members--;
    crew->running--;
    crew->hung++;
    return 0;
}

int det_crew_give_up(struct det_crew *crew, struct det_crew_job *job)
{
    int r;

    det_mutex_lock(crew->world, crew->mutex);
    r = replace_hand(crew, job->hand);
    det_mutex_unlock(crew->world, crew->mutex);
    return r;
}

int det_crew_wait(struct det_crew *crew, struct det_crew_job *job, det_time deadline)
{
    bool is_cancelled;
    int r = 0;

    det_mutex_lock(crew->world, crew->mutex);
    det_assert(job->hand && job->hand->job == job);
    while (!atomic_load(&job->is_cancelled) && r != DET_ERR_TIMEOUT)
        r = det_condition_wait(crew->world, job->hand->woken, crew->mutex, deadline);
    is_cancelled = atomic_load(&job->is_cancelled);
    det_mutex_unlock(crew->world, crew->mutex);
    return is_cancelled ? DET_ERR_CANCELLED : 0;
}

static unsigned read_count(struct det_crew *crew, const unsigned *count, const unsigned *more)
{
    unsigned sum;

    det_mutex_lock(crew->world, crew->mutex);
    sum = *count + (more ? *more : 0);
    det_mutex_unlock(crew->world, crew->mutex);
    return sum;
}

unsigned det_crew_queued(struct det_crew *crew)
{
    return read_count(crew, &crew->queued, NULL);
}

unsigned det_crew_running(struct det_crew *crew)
{
    return read_count(crew, &crew->running, NULL);
}

unsigned det_crew_hung(struct det_crew *crew)
{
    return read_count(crew, &crew->hung, NULL);
}

unsigned det_crew_threads(struct det_crew *crew)
{
    return read_count(crew, &crew->members, &crew->hung);
}
