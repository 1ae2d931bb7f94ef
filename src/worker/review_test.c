/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* review_test.c - throw-away proofs. */
#include "base/memory.h"
#include "worker/lab_test.h"
#include <detent/documents.h>

static det_time close_takes;
static struct det_world *the_world;

static void sleep_for(det_time span)
{
    struct det_mutex *mutex;
    struct det_condition *condition;
    det_time until = the_world->ops->now(the_world, DET_CLOCK_MONOTONIC) + span;

    assert_int_equal(det_mutex_open(the_world, &mutex), 0);
    assert_int_equal(det_condition_open(the_world, &condition), 0);
    det_mutex_lock(the_world, mutex);
    while (det_condition_wait(the_world, condition, mutex, until) == 0)
        continue;
    det_mutex_unlock(the_world, mutex);
    det_condition_close(the_world, condition);
    det_mutex_close(the_world, mutex);
}
static void slow_close(void *deps)
{
    (void)deps;
    if (close_takes)
        sleep_for(close_takes);
    ((struct link_deps *)deps)->plant->closed++;
}
static det_time open_takes;
static int slow_open(struct det_worker_context *context, void *deps)
{
    if (open_takes)
        sleep_for(open_takes);
    return link_kind.open(context, deps);
}
static struct det_worker_kind slow_kind, twin_kind;
static const struct det_worker_kind *const more[] = { &slow_kind, &twin_kind, NULL };

static void begin(struct lab *lab, struct lab_options options)
{
    slow_kind = link_kind;
    slow_kind.name = "slow";
    slow_kind.close = slow_close;
    slow_kind.open = slow_open;
    slow_kind.children = NULL;
    twin_kind = link_kind;
    twin_kind.name = "twin";
    if (!options.kinds)
        options.kinds = more;
    lab_open(lab, options);
    the_world = lab->world;
}

static bool is_life(struct lab *lab, const char *id, const char *life)
{
    struct det_worker_status status = lab_status(lab, id);
    return !strcmp(status.life, life);
}

/* 1 */
static void t1_unwanted_while_closing(void **state)
{
    struct lab lab;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    close_takes = 50 * DET_MILLISECOND;
    lab_apply(
        &lab, "children: [{name: w, kind: slow, config: {host: h, port: 1}, children: [{name: c, "
              "kind: link, config: {host: h, port: 1}, children: [{name: g, kind: link, config: "
              "{host: h, port: 1}}]}]}]");
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(det_workers_order(lab.workers, "lab/w", DET_WORKER_ORDER_RESTART), 0);
    for (int i = 0; i < 9000 && !is_life(&lab, "lab/w", "closing"); i++)
        lab_run(&lab, 1 * DET_MILLISECOND);
    assert_true(is_life(&lab, "lab/w", "closing"));
    lab_apply(&lab, "children: []");
    lab_run(&lab, 5 * DET_SECOND);
    lab_close(&lab);
}

/* 1b: one level is enough by hand */
static void t1b_deleted_while_closing(void **state)
{
    struct lab lab;
    struct det_child_spec w = { .name = "w", .kind = "slow", .config = "{host: h, port: 1}" };
    struct det_child_spec c = { .name = "c", .kind = "link", .config = "{host: h, port: 1}" };
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    close_takes = 50 * DET_MILLISECOND;
    lab_run(&lab, DET_SECOND);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &w, NULL), 0);
    assert_int_equal(det_workers_upsert(lab.workers, "lab/w", &c, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(det_workers_order(lab.workers, "lab/w", DET_WORKER_ORDER_RESTART), 0);
    for (int i = 0; i < 2000 && !is_life(&lab, "lab/w", "closing"); i++)
        lab_run(&lab, 1 * DET_MILLISECOND);
    assert_true(is_life(&lab, "lab/w", "closing"));
    assert_int_equal(det_workers_delete(lab.workers, "lab/w", NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_close(&lab);
}

/* 2: compaction after the recorder is closed */
static void t2_compacting_after_close(void **state)
{
    struct lab lab;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    close_takes = 0;
    slow_kind.close = NULL;
    lab.plant.connect_hangs = 180 * DET_SECOND;
    lab_apply(&lab, "children: [{name: a, kind: slow, config: {host: h, port: 1}}]");
    lab_run(&lab, 3 * DET_SECOND);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 20 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    det_workers_cancel(lab.workers);
    det_workers_cancel(lab.workers);
    fprintf(
        stderr, "now %lld next timer %lld\n", (long long)lab_now(&lab),
        (long long)det_loop_deadline(lab.loop));
    fprintf(stderr, "%s", det_buffer_text(&lab.log));
    lab_close(&lab);
}

/* 3: a close() that hangs */
static void t3_hung_close(void **state)
{
    struct lab lab;
    struct det_error error = { 0 };
    det_time before;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    close_takes = 3600 * DET_SECOND;
    lab_apply(&lab, "children: [{name: w, kind: slow, config: {host: h, port: 1}}]");
    lab_run(&lab, 5 * DET_SECOND);
    before = lab_now(&lab);
    int r = det_workers_stop(lab.workers, &error);
    fprintf(
        stderr, "stop: %d after %lld s\n", r, (long long)((lab_now(&lab) - before) / DET_SECOND));
    assert_true(lab_now(&lab) - before < 60 * DET_SECOND);
    lab_close(&lab);
}

/* 3b: an open() that hangs: ten of them keep all actions of others */
static void t3b_hung_open(void **state)
{
    struct lab lab;
    struct det_buffer yaml;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    close_takes = 0;
    open_takes = 3600 * DET_SECOND;
    det_buffer_init(&yaml, NULL);
    det_buffer_append_text(&yaml, "children:\n");
    for (int i = 0; i < 10; i++)
        det_buffer_format(&yaml, "  - {name: s%d, kind: slow, config: {host: h, port: 1}}\n", i);
    det_buffer_append_text(&yaml, "  - {name: a, kind: link, config: {host: h, port: 1}}\n");
    lab_apply(&lab, det_buffer_text(&yaml));
    lab_run(&lab, 600 * DET_SECOND);
    struct det_worker_status s = lab_status(&lab, "lab/a");
    fprintf(stderr, "a: %s %s: %s\nlog:\n%s", s.life, s.state, s.reason, det_buffer_text(&lab.log));
    assert_string_equal(s.state, "up");
    lab_close(&lab);
}

/* 4: a panic with the lock held */
static int lock_and_panic(struct det_worker_context *context, void *deps, const void *desired)
{
    (void)deps;
    (void)desired;
    det_worker_lock(context);
    det_worker_panic(context, "while locked");
    return 0;
}
static int locked_collect(
    struct det_worker_context *context, void *deps, const void *desired, void *observed)
{
    (void)deps;
    (void)desired;
    (void)observed;
    det_worker_lock(context);
    det_worker_unlock(context);
    return 0;
}
static void t4_panic_with_lock(void **state)
{
    struct lab lab;
    static struct det_worker_action actions[2];
    static struct det_worker_kind k;
    static const struct det_worker_kind *const ks[] = { &k, NULL };
    (void)state;
    k = link_kind;
    memcpy(actions, link_kind.actions, sizeof actions);
    actions[0].run = lock_and_panic;
    k.actions = actions;
    k.name = "locky";
    k.collect = locked_collect;
    begin(&lab, (struct lab_options){ .kinds = ks });
    lab_apply(&lab, "children: [{name: w, kind: locky, config: {host: h, port: 1}}]");
    lab_run(&lab, 30 * DET_SECOND);
    fprintf(stderr, "%s", det_buffer_text(&lab.log));
    lab_assert_no_log(&lab, "collector_stuck");
    lab_close(&lab);
}

/* 5: more collects than threads */
static void t5_overload(void **state)
{
    struct lab lab;
    struct det_buffer yaml;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    close_takes = 0;
    lab.plant.collect_takes = 2 * DET_SECOND;
    det_buffer_init(&yaml, NULL);
    det_buffer_append_text(&yaml, "children:\n");
    for (int i = 0; i < 80; i++)
        det_buffer_format(&yaml, "  - {name: s%d, kind: link, config: {host: h, port: 1}}\n", i);
    lab_apply(&lab, det_buffer_text(&yaml));
    lab_run(&lab, 300 * DET_SECOND);
    struct det_worker_status s = lab_status(&lab, "lab");
    struct det_workers_summary sum;
    det_workers_summary(lab.workers, &sum);
    fprintf(
        stderr, "root: %s %s: %s\nrestarts %u given up %u stale %u hung %u threads %u\n", s.life,
        s.state, s.reason, lab_count(&lab, "collector_restarting"),
        lab_count(&lab, "collector_unresponsive"), sum.stale, sum.hung, sum.threads);
    assert_int_equal(lab_count(&lab, "collector_unresponsive"), 0);
    lab_close(&lab);
}

/* 6: hung collects of a few */
static det_time bad_hangs;
static int bad_collect(
    struct det_worker_context *context, void *deps, const void *desired, void *observed)
{
    (void)deps;
    (void)desired;
    (void)observed;
    (void)context;
    sleep_for(bad_hangs);
    return 0;
}
static void t6_hung_collects(void **state)
{
    struct lab lab;
    struct det_buffer yaml;
    static struct det_worker_kind k;
    static const struct det_worker_kind *const ks[] = { &k, NULL };
    (void)state;
    k = link_kind;
    k.name = "bad";
    k.collect = bad_collect;
    bad_hangs = 3600 * DET_SECOND;
    begin(&lab, (struct lab_options){ .kinds = ks });
    det_buffer_init(&yaml, NULL);
    det_buffer_append_text(&yaml, "children:\n");
    det_buffer_format(&yaml, "  - {name: good, kind: link, config: {host: h, port: 1}}\n");
    for (int i = 0; i < 8; i++)
        det_buffer_format(&yaml, "  - {name: s%d, kind: bad, config: {host: h, port: 1}}\n", i);
    lab_apply(&lab, det_buffer_text(&yaml));
    lab_run(&lab, 300 * DET_SECOND);
    struct det_worker_status s = lab_status(&lab, "lab/good"), t = lab_status(&lab, "lab");
    struct det_workers_summary sum;
    det_workers_summary(lab.workers, &sum);
    fprintf(
        stderr, "good: %s %s: %s\nroot: %s %s: %s\nstale %u hung %u threads %u\n", s.life, s.state,
        s.reason, t.life, t.state, t.reason, sum.stale, sum.hung, sum.threads);
    assert_string_equal(s.state, "up");
    assert_int_equal(s.freshness, DET_FRESH);
    lab_close(&lab);
}

/* 7: a circuit heals while its child is down */
static void t7_circuit_heals(void **state)
{
    struct lab lab;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    lab_apply(
        &lab, "children: [{name: g, kind: application, children: [{name: a, kind: link, config: "
              "{host: h, port: 1}}]}]");
    lab.plant.open_error = DET_ERR_IO;
    lab_run(&lab, 1800 * DET_SECOND);
    fprintf(
        stderr, "opened %u probing %u closed %u escalated %u failed %u\n",
        lab_count(&lab, "circuit_breaker_opened"), lab_count(&lab, "retry_scheduled"),
        lab_count(&lab, "circuit_breaker_closed"), lab_count(&lab, "escalation"),
        lab_count(&lab, "worker_add_failed"));
    assert_int_equal(lab_count(&lab, "circuit_breaker_closed"), 0);
    lab_close(&lab);
}

/* 8: a visitor that deletes */
static int delete_it(void *user, const struct det_worker_status *status)
{
    struct lab *lab = user;
    if (status->is_dynamic)
        assert_int_equal(det_workers_delete(lab->workers, status->id, NULL), 0);
    fprintf(stderr, "%s %s there %d\n", status->id, status->life, lab_has(lab, status->id));
    return 0;
}
static void t8_visitor_deletes(void **state)
{
    struct lab lab;
    struct det_child_spec a = { .name = "a", .kind = "link", .config = "{host: h, port: 1}" };
    struct det_child_spec b = { .name = "b", .kind = "link", .config = "{host: h, port: 1}" };
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    lab.plant.open_error = DET_ERR_IO;
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &a, NULL), 0);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &b, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(det_workers_each(lab.workers, delete_it, &lab), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_close(&lab);
}

/* 9: put by hand under another kind, deleted, opened again */
static void t9_hand_kind(void **state)
{
    struct lab lab;
    struct det_child_spec a = { .name = "a", .kind = "link", .config = "{host: h, port: 1}" };
    (void)state;
    begin(&lab, (struct lab_options){ .store = "memory:" });
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &a, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    a.kind = "twin";
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &a, NULL), 0);
    lab_run(&lab, 10 * DET_SECOND);
    struct det_worker_status s = lab_status(&lab, "lab/a");
    assert_string_equal(s.kind, "twin");
    det_workers_close(lab.workers);
    lab_plant = &lab.plant;
    assert_int_equal(lab_open_workers(&lab, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    s = lab_status(&lab, "lab/a");
    fprintf(stderr, "after reopening its kind is %s\n", s.kind);
    int r = det_workers_delete(lab.workers, "lab/a", NULL);
    lab_run(&lab, 20 * DET_SECOND);
    fprintf(stderr, "deleted: %d, there: %d\n", r, lab_has(&lab, "lab/a"));
    det_workers_close(lab.workers);
    assert_int_equal(lab_open_workers(&lab, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    fprintf(stderr, "after delete and reopening there: %d\n", lab_has(&lab, "lab/a"));
    assert_false(lab_has(&lab, "lab/a"));
    lab_close(&lab);
}

/* 10: by hand, then in the YAML too, then deleted by hand */
static void t10_hand_and_yaml(void **state)
{
    struct lab lab;
    struct det_error error = { 0 };
    struct det_child_spec a = { .name = "a", .kind = "link", .config = "{host: hand, port: 1}" };
    (void)state;
    begin(&lab, (struct lab_options){ .store = "memory:" });
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &a, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_apply(&lab, "children: [{name: a, kind: link, config: {host: yaml, port: 2}}]");
    lab_run(&lab, 3 * DET_SECOND);
    char *text;
    size_t size;
    assert_int_equal(det_workers_show(lab.workers, "lab/a", &text, &size), 0);
    fprintf(stderr, "%s\n", text);
    det_free(NULL, text, size + 1);
    int r = det_workers_delete(lab.workers, "lab/a", &error);
    lab_run(&lab, 20 * DET_SECOND);
    fprintf(stderr, "delete %d %s\n", r, error.text);
    assert_int_equal(r, DET_ERR_INVALID);
    if (lab_has(&lab, "lab/a")) {
        assert_int_equal(det_workers_show(lab.workers, "lab/a", &text, &size), 0);
        fprintf(stderr, "%s\n", text);
        assert_non_null(strstr(text, "yaml"));
        det_free(NULL, text, size + 1);
    }
    lab_close(&lab);
}

static void t10b_yaml_over_hand(void **state)
{
    struct lab lab;
    char *text;
    size_t size;
    struct det_child_spec a = { .name = "a", .kind = "link", .config = "{host: hand, port: 1}" };
    (void)state;
    begin(&lab, (struct lab_options){ .store = "memory:" });
    lab_run(&lab, DET_SECOND);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &a, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_apply(&lab, "children: [{name: a, kind: link, config: {host: yaml, port: 2}}]");
    lab_run(&lab, 3 * DET_SECOND);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 20 * DET_SECOND);
    assert_int_equal(det_workers_show(lab.workers, "lab/a", &text, &size), 0);
    fprintf(stderr, "%s\n", text);
    assert_non_null(strstr(text, "hand"));
    lab_close(&lab);
}
/* 10c: YAML and kind */
static void t10c_twice(void **state)
{
    struct lab lab;
    char *text;
    size_t size;
    (void)state;
    begin(&lab, (struct lab_options){ .store = "memory:" });
    /* its own children() wants c0, the YAML too */
    lab_apply(
        &lab, "children: [{name: p, kind: link, config: {host: h, port: 1, children: 1}, children: "
              "[{name: c0, kind: link, config: {host: yaml, port: 3}}]}]");
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(det_workers_show(lab.workers, "lab/p/c0", &text, &size), 0);
    fprintf(stderr, "%.60s\n", text);
    lab_apply(
        &lab, "children: [{name: p, kind: link, config: {host: h, port: 1, children: 0}, children: "
              "[{name: c0, kind: link, config: {host: yaml, port: 3}}]}]");
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(det_workers_show(lab.workers, "lab/p/c0", &text, &size), 0);
    fprintf(stderr, "%.60s\n", text);
    lab_apply(
        &lab, "children: [{name: p, kind: link, config: {host: h, port: 1, children: 1}, children: "
              "[{name: c0, kind: link, config: {host: yaml, port: 3}}]}]");
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(det_workers_show(lab.workers, "lab/p/c0", &text, &size), 0);
    fprintf(stderr, "%.60s\n", text);
    assert_non_null(strstr(text, "below"));
    lab_close(&lab);
}

/* 11: the parent of one put by hand changes its kind */
static void t11_parent_kind(void **state)
{
    struct lab lab;
    struct det_child_spec c = { .name = "c", .kind = "link", .config = "{host: hand, port: 1}" };
    (void)state;
    begin(&lab, (struct lab_options){ .store = "memory:" });
    lab_apply(&lab, "children: [{name: p, kind: link, config: {host: h, port: 1}}]");
    lab_run(&lab, DET_SECOND);
    assert_int_equal(det_workers_upsert(lab.workers, "lab/p", &c, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_true(lab_has(&lab, "lab/p/c"));
    lab_apply(&lab, "children: [{name: p, kind: twin, config: {host: h, port: 1}}]");
    lab_run(&lab, 30 * DET_SECOND);
    struct det_worker_status s = lab_status(&lab, "lab/p");
    fprintf(stderr, "p is %s, c there: %d\n", s.kind, lab_has(&lab, "lab/p/c"));
    bool has = lab_has(&lab, "lab/p/c");
    det_workers_close(lab.workers);
    assert_int_equal(lab_open_workers(&lab, NULL), 0);
    lab_apply(&lab, "children: [{name: p, kind: twin, config: {host: h, port: 1}}]");
    lab_run(&lab, 30 * DET_SECOND);
    fprintf(stderr, "after reopening c there: %d\n", lab_has(&lab, "lab/p/c"));
    assert_int_equal(has, lab_has(&lab, "lab/p/c"));
    lab_close(&lab);
}

/* 12: config changes while it goes to rest */
static void t12_config_while_going_to_rest(void **state)
{
    struct lab lab;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    lab_apply(&lab, LAB_LINK);
    lab_run(&lab, 3 * DET_SECOND);
    lab.plant.collect_error = DET_ERR_IO;
    lab.plant.is_stuck = true;
    for (int i = 0; i < 1000 && !lab_count(&lab, "collector_unresponsive"); i++)
        lab_run(&lab, 100 * DET_MILLISECOND);
    lab_run(&lab, DET_SECOND);
    fprintf(stderr, "life %s\n", lab_status(&lab, "lab/a").life);
    lab.plant.collect_error = 0;
    lab.plant.is_stuck = false;
    lab_apply(&lab, "children: [{name: a, kind: link, config: {host: h, port: 2}}]");
    lab_run(&lab, 600 * DET_SECOND);
    struct det_worker_status s = lab_status(&lab, "lab/a");
    fprintf(stderr, "life %s: %s\n", s.life, s.reason);
    assert_string_equal(s.life, "live");
    lab_close(&lab);
}
/* 12b: variables change while it rests */
static void t12b_variables_while_down(void **state)
{
    struct lab lab;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    lab_apply(
        &lab, "variables: {P: 1}\nchildren: [{name: a, kind: link, config: {host: h, port: '{{ .P "
              "}}'}}]");
    lab_run(&lab, 3 * DET_SECOND);
    lab.plant.collect_error = DET_ERR_IO;
    lab_run(&lab, 100 * DET_SECOND);
    fprintf(stderr, "life %s\n", lab_status(&lab, "lab/a").life);
    lab.plant.collect_error = 0;
    lab_apply(
        &lab, "variables: {P: 2}\nchildren: [{name: a, kind: link, config: {host: h, port: '{{ .P "
              "}}'}}]");
    lab_run(&lab, 600 * DET_SECOND);
    struct det_worker_status s = lab_status(&lab, "lab/a");
    fprintf(stderr, "life %s: %s\n", s.life, s.reason);
    fprintf(stderr, "root %s\n", lab_status(&lab, "lab").reason);
    assert_string_equal(s.life, "live");
    lab_close(&lab);
}

/* 13: stopped while an action runs that does not look */
static void t13_stop_during_action(void **state)
{
    struct lab lab;
    struct det_error error = { 0 };
    static struct det_worker_state states[8];
    static struct det_worker_kind k;
    static const struct det_worker_kind *const ks[] = { &k, NULL };
    (void)state;
    k = link_kind;
    k.name = "docs";
    memcpy(states, link_kind.states, link_kind.state_count * sizeof states[0]);
    states[LINK_CONNECTING].on_stop = LINK_CLOSING; /* as in docs/workers.md */
    k.states = states;
    begin(&lab, (struct lab_options){ .kinds = ks });
    lab.plant.connect_hangs = 300 * DET_MILLISECOND;
    lab_apply(&lab, "children: [{name: a, kind: docs, config: {host: h, port: 1}}]");
    for (int i = 0; i < 1000 && !lab.plant.connects; i++)
        lab_run(&lab, 10 * DET_MILLISECOND);
    assert_false(lab.plant.is_up);
    int r = det_workers_stop(lab.workers, &error);
    fprintf(
        stderr, "stop %d; up %d closes %u\n%s", r, lab.plant.is_up, lab.plant.closes,
        det_buffer_text(&lab.log));
    assert_false(lab.plant.is_up);
    lab_close(&lab);
}

/* 14: what is left in the store of a removed subtree */
static int count_document(void *context, const struct det_document *document)
{
    fprintf(
        stderr, "left: %s %s %s\n", document->kind, document->id,
        det_document_role_name(document->role));
    ++*(int *)context;
    return 0;
}
static void t14_documents_left(void **state)
{
    struct lab lab;
    int count = 0;
    struct det_document_query query = { .below = "lab/p" };
    (void)state;
    begin(&lab, (struct lab_options){ .store = "memory:" });
    lab_apply(
        &lab, "children: [{name: p, kind: link, config: {host: h, port: 1}, children: [{name: c, "
              "kind: link, config: {host: h, port: 1}}]}]");
    lab_run(&lab, 3 * DET_SECOND);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 20 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/p"));
    assert_int_equal(det_store_documents_list(lab.store, &query, count_document, &count, NULL), 0);
    assert_int_equal(count, 0);
    lab_close(&lab);
}

/* 15: a child that is being opened while its parent restarts, and fails */
static void t15_phantom_life(void **state)
{
    struct lab lab;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    close_takes = 0;
    open_takes = 2 * DET_SECOND;
    lab.plant.open_error = 0;
    lab_apply(
        &lab, "children: [{name: p, kind: link, config: {host: h, port: 1}, children: [{name: c, "
              "kind: slow, config: {host: h, port: 1}}]}]");
    lab_run(&lab, 1 * DET_SECOND);
    fprintf(stderr, "c %s\n", lab_status(&lab, "lab/p/c").life);
    lab.plant.open_error = DET_ERR_IO;
    assert_int_equal(det_workers_order(lab.workers, "lab/p", DET_WORKER_ORDER_RESTART), 0);
    lab_run(&lab, 1500 * DET_MILLISECOND);
    lab.plant.open_error = 0;
    lab_run(&lab, 60 * DET_SECOND);
    fprintf(stderr, "%s", det_buffer_text(&lab.log));
    assert_int_equal(lab_count(&lab, "worker_added lab/p/c"), 1);
    lab_close(&lab);
}

/* 16: what the parent sees of a child that was given up */
static void t16_down_is_neutral(void **state)
{
    struct lab lab;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    lab_apply(&lab, LAB_LINK);
    lab_run(&lab, 3 * DET_SECOND);
    lab.plant.wants_restart = true;
    lab_run(&lab, 300 * DET_SECOND);
    struct det_worker_status s = lab_status(&lab, "lab"), a = lab_status(&lab, "lab/a");
    fprintf(stderr, "a %s %s: %s\nroot: %s %s\n", a.life, a.state, a.reason, s.state, s.reason);
    assert_string_equal(s.state, "degraded");
    lab_close(&lab);
}

/* 17 */
static void t17_get_without_record(void **state)
{
    struct lab lab;
    struct det_worker_status s;
    char place[64];
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    lab_run(&lab, DET_SECOND);
    fprintf(stderr, "%d\n", det_workers_get(lab.workers, "lab", &s, det_empty_record(), place));
    fprintf(stderr, "%d\n", det_workers_get(lab.workers, "lab", &s, NULL, place));
    lab_close(&lab);
}

/* 18: a store that fails, and a child put at once */
static void t18_upsert_then_get(void **state)
{
    struct lab lab;
    struct det_worker_status s;
    struct det_child_spec a = { .name = "a", .kind = "link", .config = "{host: hand, port: 1}" };
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &a, NULL), 0);
    assert_int_equal(det_workers_get(lab.workers, "lab/a", &s, NULL, NULL), 0);
    lab_close(&lab);
}
/* 19: delete right away */
static void t19_upsert_then_delete(void **state)
{
    struct lab lab;
    struct det_child_spec a = { .name = "a", .kind = "link", .config = "{host: hand, port: 1}" };
    (void)state;
    begin(&lab, (struct lab_options){ .store = "memory:" });
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &a, NULL), 0);
    fprintf(stderr, "%d\n", det_workers_delete(lab.workers, "lab/a", NULL));
    lab_run(&lab, 10 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    lab_close(&lab);
}
/* 20: a monitor that looks once a minute */
static void t20_rare_monitor(void **state)
{
    struct lab lab;
    struct det_error error = { 0 };
    static struct det_worker_kind k;
    (void)state;
    begin(&lab, (struct lab_options){ 0 });
    k = link_kind;
    k.name = "rare";
    k.observe_every = 60 * DET_SECOND;
    struct det_workers *other;
    const struct det_worker_kind *ks[] = { &k, NULL };
    struct det_workers_options options = { .world = lab.world, .loop = lab.loop, .kinds = ks };
    int r = det_workers_open(&options, &other, &error);
    fprintf(stderr, "%d %s\n", r, error.text);
    assert_int_equal(r, 0);
    lab_close(&lab);
}
#include <time.h>
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static void t21_upserts(void **state)
{
    struct lab lab;
    (void)state;
    begin(&lab, (struct lab_options){ .is_paused = true });
    for (int i = 0; i < 20; i++) {
        det_workers_tick(lab.workers);
        det_loop_turn(lab.loop, 0);
    }
    double at = seconds();
    for (int i = 0; i < 8000; i++) {
        char name[20];
        struct det_child_spec a = { .name = name, .kind = "application", .is_disabled = true };
        snprintf(name, sizeof name, "w%d", i);
        assert_int_equal(det_workers_upsert(lab.workers, NULL, &a, NULL), 0);
        if (i % 2000 == 1999) {
            fprintf(stderr, "%d: %.2f s for 2000\n", i + 1, seconds() - at);
            at = seconds();
        }
    }
    lab_close(&lab);
}
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t1_unwanted_while_closing),
        cmocka_unit_test(t1b_deleted_while_closing),
        cmocka_unit_test(t2_compacting_after_close),
        cmocka_unit_test(t3_hung_close),
        cmocka_unit_test(t3b_hung_open),
        cmocka_unit_test(t4_panic_with_lock),
        cmocka_unit_test(t5_overload),
        cmocka_unit_test(t6_hung_collects),
        cmocka_unit_test(t7_circuit_heals),
        cmocka_unit_test(t8_visitor_deletes),
        cmocka_unit_test(t9_hand_kind),
        cmocka_unit_test(t10_hand_and_yaml),
        cmocka_unit_test(t10b_yaml_over_hand),
        cmocka_unit_test(t10c_twice),
        cmocka_unit_test(t11_parent_kind),
        cmocka_unit_test(t12_config_while_going_to_rest),
        cmocka_unit_test(t12b_variables_while_down),
        cmocka_unit_test(t13_stop_during_action),
        cmocka_unit_test(t14_documents_left),
        cmocka_unit_test(t15_phantom_life),
        cmocka_unit_test(t16_down_is_neutral),
        cmocka_unit_test(t17_get_without_record),
        cmocka_unit_test(t18_upsert_then_get),
        cmocka_unit_test(t19_upsert_then_delete),
        cmocka_unit_test(t20_rare_monitor),
        cmocka_unit_test(t21_upserts),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
