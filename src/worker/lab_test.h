/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lab_test.h - a supervisor of workers in virtual time, for suites: a plant that its links work on
 * and a test controls, and a log of the events.
 *
 *     struct lab lab;
 *     lab_open(&lab, (struct lab_options){ 0 });
 *     lab_apply(&lab, "children: [{name: a, kind: link, config: {host: h, port: 1}}]");
 *     lab_run(&lab, 3 * DET_SECOND);
 *     lab_assert_state(&lab, "lab/a", "up");
 *     lab_assert_log(&lab, "state_transition lab/a stopped connecting");
 *     lab_close(&lab); */
#ifndef DET_WORKER_LAB_TEST_H
#define DET_WORKER_LAB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <detent/sim.h>
#include <detent/workers.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "os/os.h"

#define WORKER_LOCAL
#define WORKER_SPEC "worker/link_test.worker"
#include <detent/worker/declare.h>

/* The plant of the links of one host. */
struct link_deps {
    struct plant *plant;
    bool is_open;
};
/* Atomic enough: in a simulation nothing happens at the same time. */
struct plant {
    bool is_up;             /* what is observed */
    uint16_t port;          /* of the last connect */
    uint64_t noise;         /* observed as it is */
    int open_error;         /* of open() */
    int connect_error;      /* of connect(); 0: it works */
    uint32_t connect_fails; /* so often it fails, then it works */
    det_time connect_takes; /* may be cancelled */
    det_time connect_hangs; /* may not */
    bool connect_panics;
    int close_error;
    int collect_error;
    det_time collect_takes, collect_hangs;
    bool collect_panics;
    bool is_stuck;      /* next() of a link that closes holds for ever */
    bool wants_restart; /* next() of a link that is up requests a restart */
    bool is_wrong;      /* next() answers what is no answer */
    const char *children_prefix;
    /* Counts for the test. */
    uint32_t opened, closed, connects, closes, collects, derives, nexts;
};
#define WORKER_LOCAL
#define WORKER_SPEC "worker/link_test.worker"
#include <detent/worker/define.h>

/* next() sees only its view: what a test wants of it comes through here. */
static struct plant *lab_plant;

static struct link_next link_in_stopped(const struct link_view *view)
{
    (void)view;
    lab_plant->nexts++;
    return link_goto(LINK_CONNECTING, "is to run");
}

static struct link_next link_in_connecting(const struct link_view *view)
{
    lab_plant->nexts++;
    if (view->observed->is_up)
        return link_goto(LINK_UP, "link is up");
    return link_do(LINK_CONNECT, det_reason(view->all, "%s is down", view->desired->host));
}

static struct link_next link_in_up(const struct link_view *view)
{
    lab_plant->nexts++;
    if (lab_plant->is_wrong)
        return link_goto(LINK_UP, "to itself");
    if (lab_plant->wants_restart)
        return link_restart("all is lost");
    if (!view->observed->is_up)
        return link_goto(LINK_LOST, "link was lost");
    if (view->observed->port != view->desired->port)
        return link_do(LINK_CONNECT, "another port");
    return link_hold(det_reason(
        view->all, "link is up, noise %llu, %u of %u children are healthy",
        (unsigned long long)view->observed->noise, view->all->children->healthy,
        view->all->children->count));
}

static struct link_next link_in_lost(const struct link_view *view)
{
    lab_plant->nexts++;
    if (view->observed->is_up)
        return link_goto(LINK_UP, "link is up again");
    return link_do(LINK_CONNECT, "link was lost");
}

static struct link_next link_in_closing(const struct link_view *view)
{
    lab_plant->nexts++;
    if (lab_plant->is_stuck)
        return link_hold("stuck");
    if (view->observed->is_up)
        return link_do(LINK_CLOSE, "is to stop");
    return link_goto(LINK_STOPPED, "closed");
}

static int lab_take(struct det_worker_context *context, det_time takes, det_time hangs)
{
    det_time now = context->world->ops->now(context->world, DET_CLOCK_MONOTONIC);
    struct det_mutex *mutex;
    struct det_condition *condition;

    if (takes)
        return det_worker_wait(context, now + takes);
    if (!hangs)
        return 0;
    assert_int_equal(det_mutex_open(context->world, &mutex), 0);
    assert_int_equal(det_condition_open(context->world, &condition), 0);
    det_mutex_lock(context->world, mutex);
    while (det_condition_wait(context->world, condition, mutex, now + hangs) == 0)
        continue;
    det_mutex_unlock(context->world, mutex);
    det_condition_close(context->world, condition);
    det_mutex_close(context->world, mutex);
    return 0;
}

static int link_do_connect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    struct plant *plant = deps->plant;
    int r;

    plant->connects++;
    det_worker_count(context, "connects", 1);
    if (plant->connect_panics)
        det_worker_panic(context, "cannot be");
    r = lab_take(context, plant->connect_takes, plant->connect_hangs);
    if (r < 0)
        return r;
    if (plant->connect_error)
        return det_worker_fail(context, plant->connect_error, "no route to %s", desired->host);
    if (plant->connect_fails) {
        plant->connect_fails--;
        return det_worker_fail(context, DET_ERR_IO, "refused by %s", desired->host);
    }
    plant->is_up = true;
    plant->port = desired->port;
    return 0;
}

static int link_do_close(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    struct plant *plant = deps->plant;

    (void)context;
    (void)desired;
    plant->closes++;
    if (!plant->close_error)
        plant->is_up = false;
    return plant->close_error;
}

static int link_collect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired,
    struct link_observed *observed)
{
    struct plant *plant = deps->plant;
    int r;

    (void)desired;
    plant->collects++;
    if (plant->collect_panics)
        det_worker_panic(context, "cannot look");
    observed->is_up = plant->is_up;
    observed->port = plant->port;
    observed->noise = plant->noise;
    r = lab_take(context, plant->collect_takes, plant->collect_hangs);
    if (r < 0)
        return r;
    if (plant->collect_error)
        return det_worker_fail(context, plant->collect_error, "cannot see");
    return 0;
}

static int link_open(struct det_worker_context *context, struct link_deps *deps)
{
    struct plant *plant = det_worker_inherited(context, "plant");

    if (plant->open_error)
        return det_worker_fail(context, plant->open_error, "cannot open");
    plant->opened++;
    assert_null(deps->plant);
    assert_false(deps->is_open);
    deps->plant = plant;
    deps->is_open = true;
    det_worker_provide(context, "parent", deps);
    return 0;
}

static void link_close(struct link_deps *deps)
{
    assert_true(deps->is_open);
    deps->is_open = false;
    deps->plant->closed++;
}

static int link_derive(
    struct det_derive *derive, const struct link_desired *config, struct link_desired *desired)
{
    lab_plant->derives++;
    if (config->port == 666)
        return derive->refuse(derive, "port %u is not for us", config->port);
    *desired = *config;
    return 0;
}

static int link_children(const struct link_view *view, struct det_children *children)
{
    for (uint32_t i = 0; i < view->desired->children; i++) {
        char name[32];
        struct det_child_spec spec = {
            .name = name,
            .kind = view->desired->child_kind[0] ? view->desired->child_kind : "link",
            .config = "{host: below, port: 7}",
            .run_in = DET_IN(LINK_UP) | DET_IN(LINK_LOST),
        };
        int r;

        snprintf(
            name, sizeof name, "%s%u",
            lab_plant->children_prefix ? lab_plant->children_prefix : "c", i);
        r = children->add(children, &spec);
        if (r < 0)
            return r;
    }
    return 0;
}

struct lab_options {
    uint64_t seed;
    const struct det_allocator *allocator; /* of the supervisor */
    /* Sees each event, beside the log. */
    void (*watch)(const struct det_worker_event *event);
    const char *store; /* a URL; NULL: none */
    struct det_worker_limits limits;
    const struct det_worker_kind *const *kinds; /* beside the link; NULL at the end */
    bool is_paused;
    const char *globals;
};

struct lab {
    struct det_sim *sim;
    struct det_world *world;
    struct det_loop *loop;
    struct det_store *store;
    struct det_workers *workers;
    struct plant plant;
    struct det_buffer log; /* one line for each event */
    const struct det_worker_kind *kinds[16];
    struct det_provided provided[2];
    struct lab_options options;
};

/* "name id [from to] [action] [reason]" */
static void lab_on_event(void *user, const struct det_worker_event *event)
{
    struct lab *lab = user;

    if (lab->options.watch)
        lab->options.watch(event);
    det_buffer_format(&lab->log, "%s %s", det_worker_event_name(event->kind), event->identity->id);
    if (event->from)
        det_buffer_format(&lab->log, " %s %s", event->from, event->to);
    if (event->action)
        det_buffer_format(&lab->log, " %s", event->action);
    if (event->number)
        det_buffer_format(&lab->log, " #%llu", (unsigned long long)event->number);
    if (event->reason)
        det_buffer_format(&lab->log, ": %s", event->reason);
    det_buffer_append_char(&lab->log, '\n');
}

static int lab_open_workers(struct lab *lab, struct det_error *reterr)
{
    struct det_workers_options options = {
        .world = lab->world,
        .allocator = lab->options.allocator,
        .loop = lab->loop,
        .store = lab->store,
        .name = "lab",
        .kinds = lab->kinds,
        .provided = lab->provided,
        .globals = lab->options.globals,
        .limits = lab->options.limits,
        .is_paused = lab->options.is_paused,
        .on_event = lab_on_event,
        .user = lab,
    };

    return det_workers_open(&options, &lab->workers, reterr);
}

/* A lab that could not be opened must be closed, too. */
static inline int lab_try_open(
    struct lab *lab, struct lab_options options, struct det_error *reterr)
{
    struct det_sim_options sim = { .seed = options.seed };
    size_t count = 0;
    int r;

    memset(lab, 0, sizeof *lab);
    lab->options = options;
    lab_plant = &lab->plant;
    det_buffer_init(&lab->log, NULL);
    assert_int_equal(det_sim_open(&sim, &lab->sim, NULL), 0);
    lab->world = det_sim_world(lab->sim);
    r = det_loop_open(lab->world, options.allocator, &lab->loop);
    if (r < 0)
        return r;
    if (options.store) {
        struct det_store_options store = { .world = lab->world };

        assert_int_equal(det_store_open_with(options.store, &store, &lab->store, NULL), 0);
    }
    lab->kinds[count++] = &link_kind;
    while (options.kinds && *options.kinds)
        lab->kinds[count++] = *options.kinds++;
    lab->provided[0] = (struct det_provided){ "plant", &lab->plant };
    return lab_open_workers(lab, reterr);
}

static inline void lab_open(struct lab *lab, struct lab_options options)
{
    struct det_error error = { 0 };

    if (lab_try_open(lab, options, &error) < 0)
        fail_msg("%s", error.text);
}

static inline void lab_close(struct lab *lab)
{
    det_workers_close(lab->workers);
    if (lab->store)
        det_store_close(lab->store);
    if (lab->loop)
        det_loop_close(lab->loop);
    det_sim_close(lab->sim);
    assert_int_equal(lab->plant.opened, lab->plant.closed);
    det_buffer_deinit(&lab->log);
}

static inline det_time lab_now(const struct lab *lab)
{
    return lab->world->ops->now(lab->world, DET_CLOCK_MONOTONIC);
}

static inline void lab_run(struct lab *lab, det_time span)
{
    det_time end = lab_now(lab) + span;

    while (lab_now(lab) < end)
        assert_true(det_loop_turn(lab->loop, end) >= 0);
}

static inline void lab_apply(struct lab *lab, const char *yaml)
{
    struct det_error error = { 0 };

    if (det_workers_apply(lab->workers, yaml, &error) < 0)
        fail_msg("%s", error.text);
}

static inline struct det_worker_status lab_status(struct lab *lab, const char *id)
{
    struct det_worker_status status;
    int r = det_workers_get(lab->workers, id, NULL, &status, NULL, NULL);

    if (r < 0)
        fail_msg("%s: %s\n%s", id, det_error_name(r), det_buffer_text(&lab->log));
    return status;
}

static inline void lab_assert_state(struct lab *lab, const char *id, const char *state)
{
    struct det_worker_status status = lab_status(lab, id);

    if (strcmp(status.state, state) != 0)
        fail_msg(
            "%s is %s (%s), not %s\n%s", id, status.state, status.reason, state,
            det_buffer_text(&lab->log));
}

static inline bool lab_has(struct lab *lab, const char *id)
{
    struct det_worker_status status;

    return det_workers_get(lab->workers, id, NULL, &status, NULL, NULL) == 0;
}

/* How many lines have this in them. */
static inline uint32_t lab_count(const struct lab *lab, const char *text)
{
    uint32_t count = 0;

    for (const char *at = det_buffer_text(&lab->log); (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

static inline void lab_assert_log(const struct lab *lab, const char *text)
{
    if (!lab_count(lab, text))
        fail_msg("not told: %s\n%s", text, det_buffer_text(&lab->log));
}

static inline void lab_assert_no_log(const struct lab *lab, const char *text)
{
    if (lab_count(lab, text))
        fail_msg("told: %s\n%s", text, det_buffer_text(&lab->log));
}

#define LAB_LINK "children: [{name: a, kind: link, config: {host: h, port: 1}}]"

#endif
