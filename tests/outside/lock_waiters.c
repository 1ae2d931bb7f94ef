/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lock_waiters.c - threads of one process that want the lock of one instance.
 *
 *     lock_waiters hold URL             takes it, says so, and keeps it until its input ends
 *     lock_waiters wait URL THREADS     each waits for it, takes it and gives it up
 *     lock_waiters ask URL THREADS      each asks for it once
 *
 * Prints "ready" when all is set up; `wait` and `ask` begin when they have read a byte. One line of
 * JSON follows: how many took it, how many were told who has it, how many were not, other errors,
 * and the milliseconds from the first request to the last answer. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <detent/detent.h>
#include <detent/lock.h>
#define FSM_SPEC "ticket.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "ticket.fsm"
#include <detent/fsm/define.h>

static int work_hard(
    struct det_effect_call *call, const struct det_empty *data, const struct ticket_event *event,
    struct ticket_event *product)
{
    (void)call;
    (void)data;
    (void)event;
    (void)product;
    return DET_EFFECT_DONE;
}

#define THREADS_MAX 1000

static struct det_runtime *runtime;

struct waiter {
    pthread_t thread;
    struct det_lock_options options;
    struct det_error error;
    int result;
};

static void *take_lock(void *argument)
{
    struct waiter *waiter = argument;
    struct det_lock *lock;

    waiter->result =
        det_lock_open(runtime, &ticket_machine, "t-1", &waiter->options, &lock, &waiter->error);
    if (waiter->result == 0)
        det_lock_close(lock);
    return NULL;
}

static void wait_for_input(void)
{
    char byte;

    puts("ready");
    fflush(stdout);
    if (read(STDIN_FILENO, &byte, 1) < 0)
        exit(1);
}

static void print_results(const struct waiter *waiters, unsigned count, det_time took)
{
    unsigned taken = 0, reported = 0, untold = 0, other = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct waiter *waiter = &waiters[i];

        taken += waiter->result == 0;
        reported +=
            waiter->result == DET_ERR_LOCKED && waiter->error.holder[0] && waiter->error.until;
        untold += waiter->result == DET_ERR_LOCKED && !waiter->error.holder[0];
        if (waiter->result < 0 && waiter->result != DET_ERR_LOCKED) {
            other++;
            fprintf(stderr, "lock_waiters: %s\n", waiter->error.text);
        }
    }
    printf(
        "{\"taken\": %u, \"told\": %u, \"untold\": %u, \"other\": %u, \"ms\": %.1f}\n", taken,
        reported, untold, other, (double)took / (double)DET_MILLISECOND);
}

static int run_waiters(det_time wait, unsigned count)
{
    struct waiter *waiters = calloc(count, sizeof *waiters);
    det_time begun;

    if (!waiters)
        return 1;
    wait_for_input();
    begun = det_world_now(NULL, DET_CLOCK_MONOTONIC);
    for (unsigned i = 0; i < count; i++) {
        waiters[i].options.wait = wait;
        if (pthread_create(&waiters[i].thread, NULL, take_lock, &waiters[i]))
            return 1;
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(waiters[i].thread, NULL);
    print_results(waiters, count, det_world_now(NULL, DET_CLOCK_MONOTONIC) - begun);
    free(waiters);
    return 0;
}

static int hold(void)
{
    struct det_error error = { 0 };
    struct det_lock *lock;

    if (det_lock_open(runtime, &ticket_machine, "t-1", NULL, &lock, &error) < 0) {
        fprintf(stderr, "lock_waiters: %s\n", error.text);
        return 1;
    }
    wait_for_input();
    det_lock_close(lock);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    struct det_runtime_options options = { .send_deadline = DET_MINUTE };
    struct det_error error = { 0 };
    struct det_store *store;
    int r;

    if (argc < 3 || count > THREADS_MAX)
        return 2;
    if (det_store_open(argv[2], &store, &error) < 0 ||
        det_runtime_open(store, &options, &runtime, &error) < 0) {
        fprintf(stderr, "lock_waiters: %s\n", error.text);
        return 1;
    }
    r = det_runtime_start(runtime, &ticket_machine, "t-1", NULL, NULL, NULL, NULL);
    if (r < 0 && r != DET_ERR_EXISTS)
        return 1;
    if (strcmp(argv[1], "hold") == 0)
        r = hold();
    else
        r = run_waiters(strcmp(argv[1], "wait") == 0 ? DET_NEVER : -1, (unsigned)count);
    det_runtime_close(runtime);
    det_store_close(store);
    return r;
}
