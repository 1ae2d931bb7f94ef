/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_thread_cases.h - a supervisor with its own loop, and four threads that call it all the
 * time: for real threads and for simulated ones. */
#ifndef DET_WORKER_WORKERS_THREAD_CASES_H
#define DET_WORKER_WORKERS_THREAD_CASES_H

#include "lib/test.h"

#include <stdatomic.h>

#include <detent/tool/workers.h>
#include <detent/workers.h>

#include "base/memory.h"
#include "os/os.h"

#define WORKER_LOCAL
#define WORKER_SPEC "worker/link_test.worker"
#include <detent/worker/declare.h>
/* Used by actions and by collect, each on a separate thread. */
struct link_deps {
    bool is_up;
    uint64_t noise;
};
#define WORKER_LOCAL
#define WORKER_SPEC "worker/link_test.worker"
#include <detent/worker/define.h>

static atomic_uint opened, closed;

static struct link_next link_in_stopped(const struct link_view *view)
{
    (void)view;
    return link_goto(LINK_CONNECTING, "is to run");
}

static struct link_next link_in_connecting(const struct link_view *view)
{
    return view->observed->is_up ? link_goto(LINK_UP, "up") : link_do(LINK_CONNECT, "down");
}

/* Goes down by itself now and then, so that there is always something to do. */
static struct link_next link_in_up(const struct link_view *view)
{
    if (view->observed->noise % 8 == 7)
        return link_do(LINK_CLOSE, "enough");
    return view->observed->is_up ? link_hold("up") : link_goto(LINK_LOST, "lost");
}

static struct link_next link_in_lost(const struct link_view *view)
{
    return view->observed->is_up ? link_goto(LINK_UP, "up") : link_do(LINK_CONNECT, "lost");
}

static struct link_next link_in_closing(const struct link_view *view)
{
    return view->observed->is_up ? link_do(LINK_CLOSE, "is to stop")
                                 : link_goto(LINK_STOPPED, "closed");
}

static int set(struct det_worker_context *context, struct link_deps *deps, bool is_up)
{
    det_time now = context->world->ops->now(context->world, DET_CLOCK_MONOTONIC);
    int r;

    r = det_worker_wait(context, now + 200 * DET_MICROSECOND);
    if (r < 0)
        return r;
    det_worker_lock(context);
    deps->is_up = is_up;
    deps->noise++;
    det_worker_unlock(context);
    det_worker_count(context, "changes", 1);
    return 0;
}

static int link_do_connect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    (void)desired;
    return set(context, deps, true);
}

static int link_do_close(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    (void)desired;
    return set(context, deps, false);
}

static int link_collect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired,
    struct link_observed *observed)
{
    det_worker_lock(context);
    observed->is_up = deps->is_up;
    observed->noise = ++deps->noise;
    det_worker_unlock(context);
    observed->port = desired->port;
    det_worker_gauge(context, "noise", (double)observed->noise);
    return 0;
}

static int link_open(struct det_worker_context *context, struct link_deps *deps)
{
    (void)context;
    (void)deps;
    atomic_fetch_add(&opened, 1);
    return 0;
}

static void link_close(struct link_deps *deps)
{
    (void)deps;
    atomic_fetch_add(&closed, 1);
}

static int link_derive(
    struct det_derive *derive, const struct link_desired *config, struct link_desired *desired)
{
    (void)derive;
    *desired = *config;
    return 0;
}

static int link_children(const struct link_view *view, struct det_children *children)
{
    struct det_child_spec spec = { .name = "child", .kind = "link", .config = "{port: 2}" };

    return view->desired->children ? children->add(children, &spec) : 0;
}

/* The office: workers, and what callers need. */
struct office {
    struct det_world *world;
    struct det_workers *workers;
    atomic_uint rounds, answers; /* all callers' */
    atomic_bool is_over;
    unsigned rounds_max;
};

static void office_open(struct office *office, struct det_world *world, unsigned rounds_max)
{
    static const struct det_worker_kind *const kinds[] = { &link_kind, NULL };
    struct det_workers_options options = {
        .world = world,
        .kinds = kinds,
        .limits = { .tick = DET_MILLISECOND,
                    .observe_every = 2 * DET_MILLISECOND,
                    .action_backoff = { .first = DET_MILLISECOND, .max = 2 * DET_MILLISECOND } },
    };
    struct det_error error = { 0 };

    office->world = world;
    office->rounds_max = rounds_max;
    atomic_init(&office->rounds, 0);
    atomic_init(&office->answers, 0);
    atomic_init(&office->is_over, false);
    atomic_store(&opened, 0);
    atomic_store(&closed, 0);
    if (det_workers_open(&options, &office->workers, &error) < 0)
        fail_msg("%s", error.text);
}

static int look(void *user, const struct det_worker_status *status)
{
    assert_true(status->id[0] != '\0');
    (*(unsigned *)user)++;
    return 0;
}

static void want(struct office *office, unsigned number, unsigned round)
{
    char yaml[256], name[32], id[64];
    struct det_child_spec spec = { .name = name, .kind = "link", .config = "{port: 3}" };
    int r;

    snprintf(name, sizeof name, "hand%u", round % 3);
    snprintf(id, sizeof id, "root/%s", name);
    snprintf(
        yaml, sizeof yaml,
        "children: [{name: a, kind: link, config: {port: %u, children: %u}}, {name: b%u, kind: "
        "link}]",
        round % 4 + 1, round % 2, round % 3);
    if (number == 0)
        r = det_workers_apply(office->workers, yaml, NULL);
    else if (round % 3 == 0)
        r = det_workers_delete(office->workers, id, NULL);
    else if (round % 7 == 0)
        r = det_workers_order(office->workers, "root/a", (enum det_worker_order)(round % 3), NULL);
    else
        r = det_workers_upsert(office->workers, NULL, &spec, NULL);
    if (r == 0)
        atomic_fetch_add(&office->answers, 1);
    else
        assert_true(r == DET_ERR_NOT_FOUND || r == DET_ERR_CLOSED || r == DET_ERR_INVALID);
}

static void ask(struct office *office)
{
    struct det_worker_status status;
    struct link_observed observed;
    struct det_workers_summary summary;
    unsigned count = 0;
    size_t size;
    char *text;
    int r;

    r = link_get(office->workers, "root/a", &status, &observed);
    if (r == 0)
        assert_string_equal(status.name, "a");
    else
        assert_true(r == DET_ERR_NOT_FOUND || r == DET_ERR_CLOSED);
    r = det_workers_each(office->workers, look, &count);
    assert_true(r == 0 || r == DET_ERR_CLOSED);
    r = det_workers_show(office->workers, "root/a", &text, &size);
    if (r == 0)
        det_free(NULL, text, size + 1);
    r = det_workers_history(office->workers, "root/a", &text, &size);
    if (r == 0)
        det_free(NULL, text, size + 1);
    det_workers_summary(office->workers, &summary);
    assert_true(summary.workers < 100);
}

struct caller {
    struct office *office;
    unsigned number;
    struct det_thread *thread;
};

static void call(void *argument)
{
    struct caller *caller = argument;
    struct office *office = caller->office;

    for (unsigned i = 0; i < office->rounds_max && !atomic_load(&office->is_over); i++) {
        if (caller->number % 2 == 0)
            want(office, caller->number, i);
        else
            ask(office);
        atomic_fetch_add(&office->rounds, 1);
    }
}

#define CALLERS 4
static void callers_start(struct office *office, struct caller *callers)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){ .office = office, .number = i };
        assert_int_equal(
            det_thread_start(office->world, "caller", call, &callers[i], &callers[i].thread), 0);
    }
}

static void callers_join(struct office *office, struct caller *callers)
{
    for (unsigned i = 0; i < CALLERS; i++)
        det_thread_join(office->world, callers[i].thread);
}

static void office_close(struct office *office)
{
    det_workers_close(office->workers);
    assert_int_equal(atomic_load(&opened), atomic_load(&closed));
}

static void all_callers_are_answered(struct det_world *world, unsigned rounds)
{
    struct caller callers[CALLERS];
    struct office office;

    office_open(&office, world, rounds);
    callers_start(&office, callers);
    callers_join(&office, callers);
    assert_true(atomic_load(&office.answers) > rounds);
    assert_int_equal(det_workers_stop(office.workers, NULL), 0);
    assert_true(atomic_load(&opened) > 0);
    office_close(&office);
}

/* A thread stops all while the others go on asking: they are answered, if only that it is over. */
static void stop_during_calls_answers_all_callers(struct det_world *world, unsigned rounds)
{
    struct caller callers[CALLERS];
    struct office office;

    office_open(&office, world, rounds);
    callers_start(&office, callers);
    assert_int_equal(
        det_workers_apply(office.workers, "children: [{name: a, kind: link}]", NULL), 0);
    assert_int_equal(det_workers_stop(office.workers, NULL), 0);
    callers_join(&office, callers);
    office_close(&office);
}

static void close_during_calls_leaves_nothing(struct det_world *world, unsigned rounds)
{
    struct caller callers[CALLERS];
    struct office office;

    office_open(&office, world, rounds);
    callers_start(&office, callers);
    callers_join(&office, callers);
    /* Actions and collects run. */
    office_close(&office);
    office_open(&office, world, rounds);
    /* It has hardly begun. */
    office_close(&office);
}

static void stop(void *argument)
{
    struct caller *caller = argument;

    if (caller->number % 2)
        det_workers_cancel(caller->office->workers);
    else
        (void)!det_workers_stop(caller->office->workers, NULL);
}

static void two_concurrent_stops_both_return(struct det_world *world, unsigned rounds)
{
    struct caller callers[CALLERS];
    struct office office;

    office_open(&office, world, rounds);
    assert_int_equal(
        det_workers_apply(office.workers, "children: [{name: a, kind: link}]", NULL), 0);
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){ .office = &office, .number = i };
        assert_int_equal(
            det_thread_start(world, "stopper", stop, &callers[i], &callers[i].thread), 0);
    }
    callers_join(&office, callers);
    office_close(&office);
}

#endif
