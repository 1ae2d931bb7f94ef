/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_forker.c - the thread that forks for other threads.
 *
 * A parent-death signal is sent when the thread that forked ends, not when its process ends. So a
 * child that must end with us is forked by a thread that stays: the first one of the program, or
 * this one, which is started when another thread needs it, and never ends.
 *
 *     caller    requests, waits ------------------> number, errno
 *     forker              takes, forks, answers
 *
 * Invariants
 *   1. One request is served at a time; other callers wait for its end.
 *   2. A child that the program itself has forked has no forker: it is started again. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/real_process.h"

struct request {
    det_real_fork_fn *run;
    const void *argument;
    pid_t number;
    int error; /* errno */
    bool is_done;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct request *request;   /* NULL: none */
    bool is_running, is_known; /* known: pthread_atfork() knows */
} forker = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void forget_thread(void)
{
    pthread_mutex_init(&forker.lock, NULL);
    pthread_cond_init(&forker.changed, NULL);
    forker.request = NULL;
    forker.is_running = false;
}

static void *serve_forks(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&forker.lock);
    for (;;) {
        struct request *request = forker.request;

        if (!request || request->is_done) {
            pthread_cond_wait(&forker.changed, &forker.lock);
            continue;
        }
        request->number = request->run(request->argument);
        request->error = errno;
        request->is_done = true;
        pthread_cond_broadcast(&forker.changed);
    }
    return NULL;
}

/* Returns a positive errno. Lock held. */
static int start_thread(void)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int r;

    if (!forker.is_known && pthread_atfork(NULL, NULL, forget_thread) != 0)
        return ENOMEM;
    forker.is_known = true;
    r = pthread_attr_init(&attributes);
    det_assert(r == 0);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Signals of the program are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&thread, &attributes, serve_forks, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    forker.is_running = r == 0;
    return r;
}

pid_t det_real_fork_by_forker(det_real_fork_fn *run, const void *argument)
{
    struct request request = { .run = run, .argument = argument, .number = -1 };

    if (gettid() == getpid())
        return run(argument);
    pthread_mutex_lock(&forker.lock);
    if (!forker.is_running)
        request.error = start_thread();
    if (forker.is_running) {
        while (forker.request)
            pthread_cond_wait(&forker.changed, &forker.lock);
        forker.request = &request;
        pthread_cond_broadcast(&forker.changed);
        while (!request.is_done)
            pthread_cond_wait(&forker.changed, &forker.lock);
        forker.request = NULL;
        pthread_cond_broadcast(&forker.changed);
    }
    pthread_mutex_unlock(&forker.lock);
    errno = request.error;
    return request.number;
}
