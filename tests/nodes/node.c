/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* node.c - a process that serves one machine on a shared store, and does what it is told.
 *
 *     node URL LEASE_MS TIMEOUT_MS WORKERS CLOCK_S LOCKING
 *
 * LEASE_MS is how long its lease and its locks last, TIMEOUT_MS how long a statement may take, and
 * CLOCK_S how wrong its wall clock is. LOCKING is "optimistic", or "lease": every send takes the
 * lock of its instance. It says "ready", and then each of WORKERS threads takes a
 * line of the input when it has nothing to do:
 *
 *     start ID INSTANCE
 *     send ID INSTANCE EVENT
 *     submit ID INSTANCE EVENT               a send that nobody waits for: any number under way
 *     lock ID INSTANCE EVENT COUNT HOLD_MS   sends COUNT events, ID.1 and on, under a lock, and
 *                                            holds it for so long between two of them
 *     stop STEP                              at the next such step (step.h)
 *
 * The answers, a line each:
 *
 *     ack ID SEQUENCE          it happened
 *     refused ID CODE          nothing happened
 *     unknown ID CODE          nobody can tell
 *     grant ID FENCE           the lock is had; "end ID": it is over
 *     effect KEY INSTANCE SEQUENCE
 *     seen INSTANCE SEQUENCE   by the observer
 *     armed STEP, stopped STEP
 *
 * At the end of the input it closes everything, has the store checked, and says "findings N". */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <detent/driver/store.h>
#include <detent/driver/world.h>
#include <detent/lock.h>

#define FSM_SPEC "nodes/bell.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "nodes/bell.fsm"
#include <detent/fsm/define.h>

#include "nodes/step.h"

#define WORKERS_MAX 64
#define LINE_MAX    512

struct node {
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_lock_options lock;
    pthread_mutex_t input;
};

/* A line in its words. */
struct order {
    char verb[16], id[64], instance[64], event[16];
    unsigned count, hold;
};

static det_time shift;
static const struct det_world_ops *true_world;

static det_time shifted_now(struct det_world *world, enum det_clock clock)
{
    return true_world->now(world, clock) + (clock == DET_CLOCK_WALL ? shift : 0);
}

/* The real world with another wall clock. */
static void shift_clock(det_time by)
{
    static struct det_world_ops shifted;
    struct det_world *world = det_world_real();

    shift = by;
    true_world = world->ops;
    shifted = *true_world;
    shifted.now = shifted_now;
    world->ops = &shifted;
}

static void count_note(struct bell_data *data, const struct bell_event *event)
{
    (void)event;
    data->notes++;
}

static int tell(
    struct det_effect_call *call, const struct bell_data *data, const struct bell_event *event,
    struct bell_event *ret)
{
    (void)data, (void)event;
    step_reach("effect", "before");
    step_print(
        "effect %s %s %llu", call->key, call->move.instance,
        (unsigned long long)call->move.sequence);
    step_reach("effect", "after");
    *ret = bell_told();
    return DET_EFFECT_PRODUCED;
}

static void observe(void *user, const struct det_note *note)
{
    (void)user;
    step_print("seen %s %llu", note->instance, (unsigned long long)note->sequence);
}

/* What the contract of det_runtime_send() says about an error. */
static const char *verdict(int r)
{
    switch (r) {
    case DET_ERR_UNHANDLED:
    case DET_ERR_CONFLICT:
    case DET_ERR_CONTENTION:
    case DET_ERR_LOCKED:
    case DET_ERR_LOCK_LOST:
    case DET_ERR_NOT_FOUND:
    case DET_ERR_CLOSED:
    case DET_ERR_NO_MEMORY:
        return "refused";
    default:
        return "unknown";
    }
}

static void report_result(const char *id, int r, const struct det_sent *sent)
{
    if (r == 0)
        step_print("ack %s %llu", id, (unsigned long long)sent->sequence);
    else
        step_print("%s %s %s", verdict(r), id, det_error_text(r));
}

static struct bell_event event_of(const char *name)
{
    return strcmp(name, "arm") == 0 ? bell_arm() : bell_note();
}

static void start(struct node *node, const struct order *order)
{
    struct det_send_options options = { .event_id = order->id };
    struct det_sent sent = { 0 };
    int r;

    r = det_runtime_start(
        node->runtime, &bell_machine, order->instance, NULL, &options, &sent, NULL);
    report_result(order->id, r, &sent);
}

static void send(struct node *node, const struct order *order)
{
    struct det_send_options options = { .event_id = order->id };
    struct bell_event event = event_of(order->event);
    struct det_sent sent = { 0 };
    int r;

    r = det_runtime_send(
        node->runtime, &bell_machine, order->instance, &event, &options, &sent, NULL);
    report_result(order->id, r, &sent);
}

/* A send that nobody waits for, with all that it points to. */
struct submission {
    struct det_send send;
    struct order order;
    struct bell_event event;
};

static void submitted(struct det_send *send)
{
    struct submission *submission = send->user;

    report_result(submission->order.id, send->result, &send->sent);
    free(submission);
}

static void submit(struct node *node, const struct order *order)
{
    struct submission *submission = calloc(1, sizeof *submission);
    int r;

    if (!submission)
        abort();
    submission->order = *order;
    submission->event = event_of(order->event);
    submission->send = (struct det_send){ .machine = &bell_machine,
                                          .instance = submission->order.instance,
                                          .event = &submission->event,
                                          .options.event_id = submission->order.id,
                                          .done = submitted,
                                          .user = submission };
    r = det_runtime_submit(node->runtime, &submission->send);
    if (r < 0) {
        report_result(order->id, r, NULL);
        free(submission);
    }
}

static void send_locked(struct det_lock *lock, const struct order *order, unsigned number)
{
    struct bell_event event = event_of(order->event);
    struct det_sent sent = { 0 };
    char id[80];
    int r;

    snprintf(id, sizeof id, "%s.%u", order->id, number);
    r = det_lock_send(lock, &event, &(struct det_send_options){ .event_id = id }, &sent, NULL);
    report_result(id, r, &sent);
}

static void lock(struct node *node, const struct order *order)
{
    struct det_lock *held = NULL;
    int r;

    r = det_lock_open(node->runtime, &bell_machine, order->instance, &node->lock, &held, NULL);
    if (r < 0)
        report_result(order->id, r, NULL);
    else
        step_print("grant %s %llu", order->id, (unsigned long long)det_lock_fence(held));
    for (unsigned i = 1; i <= order->count && r == 0; i++) {
        step_reach("between", "before");
        send_locked(held, order, i);
        r = det_world_sleep(det_world_real(), order->hold * DET_MILLISECOND);
        step_reach("between", "after");
    }
    det_lock_close(held);
    step_print("end %s", order->id);
}

/* False: there is no more. What must not wait is done at once. */
static bool next_order(struct node *node, struct order *ret)
{
    char line[LINE_MAX];
    bool is_there;

    pthread_mutex_lock(&node->input);
    while ((is_there = fgets(line, sizeof line, stdin) != NULL)) {
        memset(ret, 0, sizeof *ret);
        /* NOLINTNEXTLINE(cert-err34-c): numbers that are not there are zero. */
        (void)sscanf(
            line, "%15s %63s %63s %15s %u %u", ret->verb, ret->id, ret->instance, ret->event,
            &ret->count, &ret->hold);
        if (strcmp(ret->verb, "stop") != 0)
            break;
        step_arm(ret->id);
        step_print("armed %s", ret->id);
    }
    pthread_mutex_unlock(&node->input);
    return is_there;
}

static void *work(void *argument)
{
    struct node *node = argument;
    struct order order;

    while (next_order(node, &order)) {
        if (strcmp(order.verb, "start") == 0)
            start(node, &order);
        else if (strcmp(order.verb, "send") == 0)
            send(node, &order);
        else if (strcmp(order.verb, "submit") == 0)
            submit(node, &order);
        else if (strcmp(order.verb, "lock") == 0)
            lock(node, &order);
    }
    return NULL;
}

static int open_node(
    struct node *node, const char *url, det_time lease, det_time timeout, enum det_locking locking)
{
    struct det_runtime_options options = { .pool_threads = 2, .shards = 4 };
    struct det_error error = { 0 };
    int r;

    options.node = (struct det_node_options){ .lease = lease, .sweep_interval = lease / 4 };
    node->lock =
        (struct det_lock_options){ .span = lease, .wait = 60 * DET_SECOND, .retry = lease / 8 };
    options.observe = observe;
    options.locking = locking;
    options.lock = &node->lock;
    r = det_store_open_with(
        url, &(struct det_store_options){ .timeout = timeout, .connections = 3 }, &node->store,
        &error);
    if (r == 0) {
        step_watch(node->store);
        r = det_runtime_open(node->store, &options, &node->runtime, &error);
    }
    if (r == 0)
        r = det_runtime_serve(node->runtime, &bell_machine, &error);
    if (r < 0)
        step_print("failed %s", error.text);
    return r;
}

static int note_finding(void *context, const struct det_store_finding *row)
{
    ++*(unsigned *)context;
    fprintf(stderr, "%s %s: %s\n", row->machine, row->id, row->text);
    return 0;
}

static void close_node(struct node *node)
{
    unsigned findings = 0;
    int r = DET_ERR_CLOSED;

    det_runtime_close(node->runtime);
    if (node->store)
        r = node->store->ops->check(node->store, note_finding, NULL, &findings);
    if (r == 0)
        step_print("findings %u", findings);
    det_store_close(node->store);
}

int main(int argc, char **argv)
{
    struct node node = { .input = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[WORKERS_MAX];
    unsigned long count;
    int r;

    if (argc != 7) {
        fprintf(stderr, "see the head of node.c\n");
        return 2;
    }
    /* Also when it is stopped. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    shift_clock(strtol(argv[5], NULL, 10) * DET_SECOND);
    count = strtoul(argv[4], NULL, 10);
    r = open_node(
        &node, argv[1], strtol(argv[2], NULL, 10) * DET_MILLISECOND,
        strtol(argv[3], NULL, 10) * DET_MILLISECOND,
        strcmp(argv[6], "lease") == 0 ? DET_LOCKING_LEASE : DET_LOCKING_OPTIMISTIC);
    if (r == 0) {
        step_print("ready");
        for (unsigned long i = 0; i < count && i < WORKERS_MAX; i++)
            r |= pthread_create(&threads[i], NULL, work, &node);
        for (unsigned long i = 0; i < count && i < WORKERS_MAX; i++)
            (void)pthread_join(threads[i], NULL);
    }
    close_node(&node);
    return r == 0 ? 0 : 3;
}
