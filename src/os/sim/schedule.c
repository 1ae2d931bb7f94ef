/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* schedule.c - selects the next thread and the time: the only place that switches threads. */
#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "os/real.h"
#include "os/sim/simulation.h"

/* A caller that gets the same error this often in a row is in a loop that ignores it. */
#define IGNORED_MAX 10000

static void add_runnable(struct det_sim *sim, struct det_thread *thread)
{
    det_assert(sim->runnable_count < sim->runnable_capacity);
    thread->state = THREAD_RUNNABLE;
    thread->position = sim->runnable_count;
    sim->runnable[sim->runnable_count++] = thread;
}

static void remove_runnable(struct det_sim *sim, struct det_thread *thread)
{
    struct det_thread *last = sim->runnable[--sim->runnable_count];

    det_assert(thread->state == THREAD_RUNNABLE);
    sim->runnable[thread->position] = last;
    last->position = thread->position;
}

static void stop_waiting(struct det_sim *sim, struct det_thread *thread)
{
    det_assert(thread->state == THREAD_WAITING);
    det_list_remove(&thread->waiting);
    if (det_heap_contains(&thread->deadline))
        det_heap_remove(&sim->deadlines, &thread->deadline);
}

/* Wakes a waiting thread: its wait returns `result`. */
static void wake_thread(struct det_sim *sim, struct det_thread *thread, int result)
{
    stop_waiting(sim, thread);
    thread->result = result;
    add_runnable(sim, thread);
}

/* Moves the clock to the next deadline and wakes its waiters; while the first thread is idle, no
 * further than that thread requested. Returns false if there is no deadline. */
static bool move_clock(struct det_sim *sim)
{
    bool is_idle = sim->first.state == THREAD_WAITING && sim->first.wait == WAIT_IDLE;
    det_time limit = is_idle ? sim->idle_until : DET_NEVER - 1;
    struct det_heap_node *node = det_heap_first(&sim->deadlines);

    if (!is_idle && !node)
        return false;
    sim->now = node && node->key <= limit ? node->key : limit;
    det_sim_trace(sim, TRACE_CLOCK, (uint64_t)sim->now, 0);
    if (!node || node->key > limit)
        wake_thread(sim, &sim->first, 0);
    while ((node = det_heap_first(&sim->deadlines)) && node->key <= sim->now)
        wake_thread(sim, DET_CONTAINER(node, struct det_thread, deadline), DET_ERR_TIMEOUT);
    return true;
}

static void report_deadlock(struct det_sim *sim)
{
    enum det_wait wait = sim->first.wait;

    det_assert(sim->first.state == THREAD_WAITING);
    if (wait == WAIT_MUTEX)
        det_assert_failed(
            "simulated deadlock: the first thread waits for a mutex for ever", __FILE__, __LINE__);
    if (wait == WAIT_JOIN)
        det_assert_failed(
            "simulated deadlock: the first thread joins a thread that waits for ever", __FILE__,
            __LINE__);
    sim->failed = DET_ERR_DEADLOCK;
    wake_thread(sim, &sim->first, DET_ERR_DEADLOCK);
}

/* Too many steps: from here on only the first thread runs, and none of its waits blocks. */
static struct det_thread *report_limit(struct det_sim *sim)
{
    sim->failed = DET_ERR_LIMIT;
    if (sim->first.state == THREAD_WAITING)
        wake_thread(sim, &sim->first, DET_ERR_LIMIT);
    return &sim->first;
}

static struct det_thread *choose_thread(struct det_sim *sim)
{
    uint64_t index;

    if (++sim->steps > sim->options.steps_max)
        return report_limit(sim);
    while (!sim->runnable_count)
        if (!move_clock(sim))
            report_deadlock(sim);
    index = det_chance_below(&sim->schedule_chance, sim->runnable_count);
    det_sim_trace(sim, TRACE_SCHEDULE, sim->runnable[index]->number, sim->runnable_count);
    return sim->runnable[index];
}

/* Makes the chosen thread the running one; the caller then switches to it. */
static struct det_thread *switch_running(struct det_sim *sim)
{
    struct det_thread *next = choose_thread(sim);

    remove_runnable(sim, next);
    next->state = THREAD_RUNNING;
    sim->current = next;
    return next;
}

static void switch_away(struct det_sim *sim, struct det_thread *self)
{
    struct det_thread *next;

    det_assert(sim->owner == det_real_thread_self(NULL));
    next = switch_running(sim);
    if (next != self)
        det_context_switch(&self->context, &next->context);
}

static int count_ignored(struct det_sim *sim, int result)
{
    if (result != DET_ERR_DEADLOCK && result != DET_ERR_LIMIT)
        sim->ignored = 0;
    else if (++sim->ignored > IGNORED_MAX)
        det_assert_failed(
            "the simulation has failed, but a loop in the first thread continues to wait in it",
            __FILE__, __LINE__);
    return result;
}

int det_schedule_wait(
    struct det_sim *sim, struct det_list *waiters, enum det_wait wait, det_time deadline)
{
    struct det_thread *self = sim->current;
    int r;

    if (sim->failed == DET_ERR_LIMIT)
        return count_ignored(sim, DET_ERR_LIMIT);
    self->state = THREAD_WAITING;
    self->wait = wait;
    if (waiters)
        det_list_append(waiters, &self->waiting);
    if (deadline <= sim->now) {
        wake_thread(sim, self, DET_ERR_TIMEOUT);
    } else if (deadline != DET_NEVER) {
        r = det_heap_insert(&sim->deadlines, &self->deadline, deadline);
        det_assert(r == 0);
    }
    switch_away(sim, self);
    return self == &sim->first ? count_ignored(sim, self->result) : self->result;
}

void det_schedule_wake_one(struct det_sim *sim, struct det_list *waiters)
{
    struct det_list *node = waiters->next;
    uint64_t count = 0;

    DET_LIST_EACH(each, waiters)
    count++;
    if (!count)
        return;
    for (uint64_t i = det_chance_below(&sim->schedule_chance, count); i; i--)
        node = node->next;
    wake_thread(sim, DET_CONTAINER(node, struct det_thread, waiting), 0);
}

void det_schedule_wake_all(struct det_sim *sim, struct det_list *waiters)
{
    while (!det_list_is_empty(waiters))
        wake_thread(sim, DET_CONTAINER(waiters->next, struct det_thread, waiting), 0);
}

void det_schedule_yield(struct det_sim *sim)
{
    struct det_thread *self = sim->current;

    if (sim->failed == DET_ERR_LIMIT)
        return;
    add_runnable(sim, self);
    switch_away(sim, self);
}

void det_schedule_preempt(struct det_sim *sim)
{
    if (sim->runnable_count && det_chance_happens(&sim->schedule_chance, sim->options.preempt))
        det_schedule_yield(sim);
}

static int reserve_threads(struct det_sim *sim)
{
    size_t needed = sim->threads_count + 2, capacity = sim->runnable_capacity;
    struct det_thread **grown;

    if (needed > capacity) {
        grown = det_realloc(
            sim->allocator, sim->runnable, capacity * sizeof(struct det_thread *),
            2 * needed * sizeof(struct det_thread *));
        if (!grown)
            return DET_ERR_NO_MEMORY;
        sim->runnable = grown;
        sim->runnable_capacity = 2 * needed;
    }
    return det_heap_reserve(&sim->deadlines, needed);
}

static void thread_main(void *argument)
{
    struct det_thread *self = argument;

    self->run(self->argument);
    det_schedule_leave(self->sim);
}

int det_schedule_start(
    struct det_sim *sim, det_thread_fn *run, void *argument, struct det_process *process,
    struct det_thread **ret)
{
    struct det_thread *thread;
    int r;

    r = reserve_threads(sim);
    if (r < 0)
        return r;
    thread = DET_NEW(sim->allocator, struct det_thread);
    if (!thread)
        return DET_ERR_NO_MEMORY;
    r = det_context_init(&thread->context, sim->options.stack_size, thread_main, thread);
    if (r < 0) {
        DET_DELETE(sim->allocator, thread);
        return r;
    }
    thread->sim = sim;
    thread->run = run;
    thread->argument = argument;
    thread->process = process;
    thread->number = ++sim->threads_started;
    det_list_init(&thread->waiting);
    det_list_init(&thread->joiners);
    det_heap_node_init(&thread->deadline);
    det_list_append(&sim->threads, &thread->all);
    sim->threads_count++;
    add_runnable(sim, thread);
    *ret = thread;
    return 0;
}

void det_schedule_drop(struct det_sim *sim, struct det_thread *thread)
{
    det_assert(thread != sim->current);
    switch (thread->state) {
    case THREAD_RUNNABLE:
        remove_runnable(sim, thread);
        break;
    case THREAD_WAITING:
        stop_waiting(sim, thread);
        break;
    case THREAD_RUNNING:
    case THREAD_ENDED:
        return;
    }
    thread->state = THREAD_ENDED;
    det_schedule_wake_all(sim, &thread->joiners);
}

_Noreturn void det_schedule_leave(struct det_sim *sim)
{
    struct det_thread *self = sim->current;

    det_assert(self != &sim->first);
    self->state = THREAD_ENDED;
    det_schedule_wake_all(sim, &self->joiners);
    det_context_leave(&self->context, &switch_running(sim)->context);
}

void det_schedule_free(struct det_sim *sim, struct det_thread *thread)
{
    det_list_remove(&thread->all);
    sim->threads_count--;
    det_context_deinit(&thread->context);
    DET_DELETE(sim->allocator, thread);
}

/* Waits until no thread can run and the clock has reached `until`. */
static int wait_idle(struct det_sim *sim, det_time until)
{
    det_assert(sim->current == &sim->first);
    sim->idle_until = until;
    return det_schedule_wait(sim, NULL, WAIT_IDLE, DET_NEVER);
}

int det_sim_settle(struct det_sim *sim)
{
    return wait_idle(sim, sim->now);
}

int det_sim_advance(struct det_sim *sim, det_time span)
{
    det_assert(span >= 0 && det_add_time(sim->now, span) != DET_NEVER);
    return wait_idle(sim, sim->now + span);
}

void det_sim_jump_wall(struct det_sim *sim, det_time by)
{
    sim->wall_offset = det_add_time(sim->wall_offset, by);
    det_sim_trace(sim, TRACE_CLOCK, (uint64_t)sim->wall_offset, 1);
    det_sim_pollers_wake(sim);
}

void det_sim_suspend(struct det_sim *sim, det_time span)
{
    det_assert(span >= 0);
    sim->boot_offset = det_add_time(sim->boot_offset, span);
    det_sim_trace(sim, TRACE_CLOCK, (uint64_t)sim->boot_offset, 2);
    det_sim_jump_wall(sim, span);
}
