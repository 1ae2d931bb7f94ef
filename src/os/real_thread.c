/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_thread.c - threads, mutexes and conditions of the real world, by POSIX threads. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/real.h"

/* Linux keeps 15 bytes of a thread's name. */
#define NAME_SIZE 16

struct det_thread {
    pthread_t native;
    det_thread_fn *run;
    void *argument;
};

/* Padded, so that two mutexes never share a cache line. */
struct det_mutex {
    pthread_mutex_t native;
    char unused[128 - sizeof(pthread_mutex_t)];
};

struct det_condition {
    pthread_cond_t native;
};

static void *thread_main(void *argument)
{
    struct det_thread *thread = argument;

    thread->run(thread->argument);
    return NULL;
}

int det_real_thread_start(
    struct det_world *world, const char *name, det_thread_fn *run, void *argument,
    struct det_thread **ret)
{
    const struct det_allocator *allocator = det_real_allocator(world);
    struct det_thread *thread;
    char cut[NAME_SIZE];
    int r;

    thread = DET_NEW(allocator, struct det_thread);
    if (!thread)
        return DET_ERR_NO_MEMORY;
    thread->run = run;
    thread->argument = argument;
    r = pthread_create(&thread->native, NULL, thread_main, thread);
    if (r) {
        DET_DELETE(allocator, thread);
        return det_real_error(r);
    }
    /* Names are for debuggers: a thread works without one. */
    det_text_copy(cut, sizeof cut, name);
    pthread_setname_np(thread->native, cut);
    *ret = thread;
    return 0;
}

void det_real_thread_join(struct det_world *world, struct det_thread *thread)
{
    int r;

    r = pthread_join(thread->native, NULL);
    det_assert(r == 0);
    DET_DELETE(det_real_allocator(world), thread);
}

const void *det_real_thread_self(struct det_world *world)
{
    static _Thread_local char here;

    (void)world;
    return &here;
}

/* Critical sections are short: a thread that finds the mutex locked spins briefly before it sleeps,
 * since a wakeup costs a thousand times as much. */
static void init_mutex(struct det_mutex *mutex)
{
    pthread_mutexattr_t attributes;
    int r;

    r = pthread_mutexattr_init(&attributes);
    det_assert(r == 0);
    r = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    det_assert(r == 0);
    r = pthread_mutex_init(&mutex->native, &attributes);
    det_assert(r == 0);
    (void)pthread_mutexattr_destroy(&attributes);
}

int det_real_mutex_open(struct det_world *world, struct det_mutex **ret)
{
    struct det_mutex *mutex;

    mutex = DET_NEW(det_real_allocator(world), struct det_mutex);
    if (!mutex)
        return DET_ERR_NO_MEMORY;
    init_mutex(mutex);
    *ret = mutex;
    return 0;
}

void det_real_mutex_close(struct det_world *world, struct det_mutex *mutex)
{
    int r;

    r = pthread_mutex_destroy(&mutex->native);
    det_assert(r == 0);
    DET_DELETE(det_real_allocator(world), mutex);
}

void det_real_mutex_lock(struct det_world *world, struct det_mutex *mutex)
{
    (void)world;
    pthread_mutex_lock(&mutex->native);
}

void det_real_mutex_unlock(struct det_world *world, struct det_mutex *mutex)
{
    (void)world;
    pthread_mutex_unlock(&mutex->native);
}

int det_real_condition_open(struct det_world *world, struct det_condition **ret)
{
    struct det_condition *condition;
    pthread_condattr_t attributes;
    int r;

    condition = DET_NEW(det_real_allocator(world), struct det_condition);
    if (!condition)
        return DET_ERR_NO_MEMORY;
    pthread_condattr_init(&attributes);
    r = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    det_assert(r == 0);
    r = pthread_cond_init(&condition->native, &attributes);
    det_assert(r == 0);
    pthread_condattr_destroy(&attributes);
    *ret = condition;
    return 0;
}

void det_real_condition_close(struct det_world *world, struct det_condition *condition)
{
    int r;

    r = pthread_cond_destroy(&condition->native);
    det_assert(r == 0);
    DET_DELETE(det_real_allocator(world), condition);
}

int det_real_condition_wait(
    struct det_world *world, struct det_condition *condition, struct det_mutex *mutex,
    det_time deadline)
{
    struct timespec until = det_real_timespec(deadline < 0 ? 0 : deadline);
    int r;

    (void)world;
    if (deadline == DET_NEVER)
        r = pthread_cond_wait(&condition->native, &mutex->native);
    else
        r = pthread_cond_timedwait(&condition->native, &mutex->native, &until);
    det_assert(r == 0 || r == ETIMEDOUT);
    return r ? DET_ERR_TIMEOUT : 0;
}

void det_real_condition_signal(struct det_world *world, struct det_condition *condition)
{
    (void)world;
    pthread_cond_signal(&condition->native);
}

void det_real_condition_broadcast(struct det_world *world, struct det_condition *condition)
{
    (void)world;
    pthread_cond_broadcast(&condition->native);
}
