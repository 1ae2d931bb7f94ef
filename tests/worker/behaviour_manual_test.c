/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_manual_test.c - workers created manually, and orders: created, changed, refused,
 * stopped, and restored when the store is opened again. */
#include "worker/forest_test.h"

#include <detent/tool/documents.h>

static int put(
    struct lab *lab, const char *parent, const char *name, const char *kind, const char *config)
{
    struct det_child_spec spec = { .name = name, .kind = kind, .config = config };

    return det_workers_upsert(lab->workers, parent, &spec, NULL);
}

static void begin(struct lab *lab, uint64_t seed, const char *store)
{
    struct lab_options options = forest_options(seed);

    options.store = store;
    lab_open(lab, options);
    lab_apply(lab, "variables: {IP: ip}\nchildren: [" NODE("a") "]");
    lab_run(lab, 3 * DET_SECOND);
}

/* The supervisor goes and comes, the store stays. */
static void again(struct lab *lab)
{
    det_workers_close(lab->workers);
    assert_int_equal(lab_open_workers(lab, NULL), 0);
}

SENTENCE(manual_worker_is_created_changed_and_deleted)
{
    struct lab lab;
    struct det_worker_status status;
    struct det_error error = { 0 };

    begin(&lab, seed, NULL);
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: \"{{ .IP }}\", port: 1}"), 0);
    assert_int_equal(put(&lab, "lab/a", "h", "node", "{host: below, port: 2}"), 0);
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    lab_assert_state(&lab, "lab/a/h", "well");
    assert_string_equal(node_of("lab/h")->host, "ip");
    assert_string_equal(node_of("lab/a/h")->host, "below");
    status = lab_status(&lab, "lab/h");
    assert_true(status.is_dynamic);
    assert_false(lab_status(&lab, "lab/a").is_dynamic);
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: other, port: 9}"), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_string_equal(node_of("lab/h")->host, "other");
    assert_int_equal(node_of("lab/h")->opened, 1);
    /* What the user applies does not touch it. */
    lab_apply(&lab, "children: [" NODE("a") ", " NODE("b") "]");
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", &error), 0);
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", &error), DET_ERR_NOT_FOUND);
    assert_true(error.text[0]);
    lab_run(&lab, 4 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/h"));
    lab_assert_state(&lab, "lab/a/h", "well");
    assert_false(node_of("lab/h")->is_up);
    forest_end(&lab);
}

SENTENCE(invalid_manual_worker_is_refused_with_a_reason)
{
    static const struct {
        const char *parent;
        struct det_child_spec spec;
        int code;
    } bad[] = {
        { "lab/none", { .name = "x", .kind = "node" }, DET_ERR_NOT_FOUND },
        { NULL, { .name = "x", .kind = "nobody" }, DET_ERR_NOT_FOUND },
        { NULL, { .name = "a", .kind = "node" }, DET_ERR_EXISTS },
        { NULL, { .name = "", .kind = "node" }, DET_ERR_INVALID },
        { NULL, { .name = NULL, .kind = "node" }, DET_ERR_INVALID },
        { NULL, { .name = "a/b", .kind = "node" }, DET_ERR_INVALID },
        { NULL, { .name = "x", .kind = NULL }, DET_ERR_INVALID },
        { NULL, { .name = "x", .kind = "node", .config = "{port: 666}" }, DET_ERR_INVALID },
        { NULL, { .name = "x", .kind = "node", .config = "{prot: 1}" }, DET_ERR_INVALID },
        { NULL, { .name = "x", .kind = "node", .config = "{{ .NO }}" }, DET_ERR_INVALID },
        { NULL, { .name = "x", .kind = "node", .variables = "[1]" }, DET_ERR_INVALID },
        { NULL, { .name = "x", .kind = "node", .location = "{a: b}" }, DET_ERR_INVALID },
        { "lab/a", { .name = "x", .kind = "node", .run_in = DET_IN(40) }, DET_ERR_INVALID },
    };
    struct lab lab;

    begin(&lab, seed, "memory:");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct det_error error = { 0 };
        int r = det_workers_upsert(lab.workers, bad[i].parent, &bad[i].spec, &error);

        if (r != bad[i].code)
            fail_msg("%zu: %s: %s", i, det_error_name(r), error.text);
        assert_true(error.text[0]);
    }
    lab_run(&lab, DET_SECOND);
    assert_int_equal(lab_status(&lab, "lab").child_count, 1);
    again(&lab);
    lab_run(&lab, 3 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/x"));
    forest_end(&lab);
}

SENTENCE(refused_change_keeps_the_manual_worker)
{
    struct lab lab;

    begin(&lab, seed, "memory:");
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: good, port: 1}"), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: bad, port: 666}"), DET_ERR_INVALID);
    lab_run(&lab, 3 * DET_SECOND);
    assert_string_equal(node_of("lab/h")->host, "good");
    assert_string_equal(lab_status(&lab, "lab/h").degraded_by, "");
    again(&lab);
    lab_run(&lab, 3 * DET_SECOND);
    assert_string_equal(node_of("lab/h")->host, "good");
    lab_assert_state(&lab, "lab/h", "well");
    forest_end(&lab);
}

SENTENCE(manual_workers_are_restored_from_the_store)
{
    struct det_child_spec spec = { .name = "h",
                                   .kind = "node",
                                   .config = "{host: \"{{ .OWN }}.{{ .location_path }}\", port: 3}",
                                   .variables = "{OWN: mine}",
                                   .location = "{site: s}" };
    struct det_child_spec below = {
        .name = "k", .kind = "twin", .config = "host: {{ .OWN }}", .is_disabled = true
    };
    struct lab lab;

    begin(&lab, seed, "memory:");
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, DET_SECOND);
    assert_int_equal(det_workers_upsert(lab.workers, "lab/h", &below, NULL), 0);
    assert_int_equal(put(&lab, "lab/a", "j", "node", NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    again(&lab);
    lab_run(&lab, 3 * DET_SECOND);
    /* Those of the root are there; that of a waits for a. */
    lab_assert_state(&lab, "lab/h", "well");
    assert_string_equal(node_of("lab/h")->host, "mine.s");
    lab_assert_state(&lab, "lab/h/k", "running_connected");
    assert_true(lab_status(&lab, "lab/h/k").is_disabled);
    assert_true(lab_status(&lab, "lab/h/k").is_dynamic);
    assert_false(lab_has(&lab, "lab/a/j"));
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/j", "well");
    assert_int_equal(lab_status(&lab, "lab/h").counts.startups, 2);
    assert_int_equal(lab_status(&lab, "lab/a").counts.startups, 2);
    assert_int_equal(lab_status(&lab, "lab").counts.startups, 2);
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", NULL), 0);
    assert_int_equal(det_workers_delete(lab.workers, "lab/a/j", NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    again(&lab);
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 4 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/h"));
    assert_false(lab_has(&lab, "lab/a/j"));
    forest_end(&lab);
}

/* Node as a program of tomorrow has it: a state more in front of well, and no state "ill". */
static const struct det_worker_state tomorrow_states[] = {
    { "down", DET_PHASE_STOPPED, 0, node_next },
    { "starting", DET_PHASE_STARTING, NODE_DOWN, node_next },
    { "warming", DET_PHASE_RUNNING, NODE_ENDING, node_next },
    { "shaky", DET_PHASE_DEGRADED, NODE_ENDING, node_next },
    { "ending", DET_PHASE_STOPPING, 0, node_next },
    { "well", DET_PHASE_RUNNING, NODE_ENDING, node_next },
};

static void again_tomorrow(struct lab *lab, struct det_worker_kind *tomorrow)
{
    *tomorrow = node_kind;
    tomorrow->states = tomorrow_states;
    tomorrow->state_count = sizeof tomorrow_states / sizeof tomorrow_states[0];
    for (size_t i = 0; lab->kinds[i]; i++)
        if (!strcmp(lab->kinds[i]->name, "node"))
            lab->kinds[i] = tomorrow;
    again(lab);
    lab_apply(lab, "variables: {IP: ip}\nchildren: [" NODE("a") "]");
    lab_run(lab, 4 * DET_SECOND);
}

static int find_spec(void *context, const struct det_document *document)
{
    struct det_buffer *text = context;

    det_buffer_format(text, "%.*s", (int)document->size, document->text);
    return 0;
}

SENTENCE(run_in_states_are_recorded_by_name)
{
    struct det_child_spec spec = { .name = "h", .kind = "node" };
    struct det_document_query query = { .id = "lab/a/h",
                                        .has_role = true,
                                        .role = DET_DOCUMENT_SPEC };
    struct det_worker_kind tomorrow;
    struct det_buffer text;
    struct lab lab;

    begin(&lab, seed, "memory:");
    spec.run_in = DET_IN(NODE_STARTING) | DET_IN(NODE_WELL);
    assert_int_equal(det_workers_upsert(lab.workers, "lab/a", &spec, NULL), 0);
    det_buffer_init(&text, NULL);
    assert_int_equal(det_store_documents_list(lab.store, &query, find_spec, &text, NULL), 0);
    assert_non_null(strstr(det_buffer_text(&text), "\"run_in\":[\"starting\",\"well\"]"));
    det_buffer_deinit(&text);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/h", "well");
    again(&lab);
    lab_apply(&lab, "variables: {IP: ip}\nchildren: [" NODE("a") "]");
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/h", "well");
    /* A stands in the state of the same number now, which is another one. */
    again_tomorrow(&lab, &tomorrow);
    lab_assert_state(&lab, "lab/a", "warming");
    lab_assert_state(&lab, "lab/a/h", "down");
    lab_assert_no_log(&lab, "child_spec_validation_failed");
    forest_end(&lab);
}

SENTENCE(unknown_run_in_state_is_reported_and_may_stop_the_child)
{
    struct det_child_spec one = { .name = "one", .kind = "node", .run_in = DET_IN(NODE_ILL) };
    struct det_child_spec two = { .name = "two", .kind = "node" };
    struct det_worker_kind tomorrow;
    struct lab lab;

    begin(&lab, seed, "memory:");
    two.run_in = DET_IN(NODE_ILL) | DET_IN(NODE_ENDING);
    assert_int_equal(det_workers_upsert(lab.workers, "lab/a", &one, NULL), 0);
    assert_int_equal(det_workers_upsert(lab.workers, "lab/a", &two, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    again_tomorrow(&lab, &tomorrow);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CHILD_REFUSED, "lab/a"), 2);
    lab_assert_log(&lab, "child_spec_validation_failed lab/a: child one: its run_in has ill");
    lab_assert_state(&lab, "lab/a/one", "down");
    assert_true(lab_status(&lab, "lab/a/one").is_disabled);
    lab_assert_state(&lab, "lab/a/two", "down");
    assert_false(lab_status(&lab, "lab/a/two").is_disabled);
    forest_end(&lab);
}

SENTENCE(deleted_worker_takes_its_manual_children)
{
    struct lab lab;

    begin(&lab, seed, "memory:");
    assert_int_equal(put(&lab, NULL, "h", "node", NULL), 0);
    lab_run(&lab, DET_SECOND);
    assert_int_equal(put(&lab, "lab/h", "k", "node", NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/h/k", "well");
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/h"));
    assert_int_equal(put(&lab, NULL, "h", "node", NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    assert_false(lab_has(&lab, "lab/h/k"));
    again(&lab);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    assert_false(lab_has(&lab, "lab/h/k"));
    forest_end(&lab);
}

SENTENCE(another_kind_by_hand_is_another_worker_also_after_the_store_is_opened_again)
{
    struct lab lab;

    begin(&lab, seed, "memory:");
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: one}"), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(put(&lab, NULL, "h", "twin", "{host: two}"), 0);
    lab_run(&lab, 6 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "not_stopped_degraded");
    again(&lab);
    lab_run(&lab, 4 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/h").kind, "twin");
    assert_string_equal(node_of("lab/h")->host, "two");
    lab_assert_no_log(&lab, "child_spec_validation_failed");
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    again(&lab);
    lab_run(&lab, 4 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/h"));
    forest_end(&lab);
}

SENTENCE(worker_upserted_while_stopping_restarts)
{
    struct lab lab;

    begin(&lab, seed, "memory:");
    node_of("lab/h")->end_takes = 2 * DET_SECOND;
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: one}"), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", NULL), 0);
    lab_run(&lab, 500 * DET_MILLISECOND);
    assert_true(lab_has(&lab, "lab/h"));
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: two}"), 0);
    lab_run(&lab, 10 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    assert_string_equal(node_of("lab/h")->host, "two");
    again(&lab);
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    forest_end(&lab);
}

SENTENCE(name_taken_over_by_the_spec_belongs_to_it)
{
    struct lab lab;
    struct det_error error = { 0 };

    begin(&lab, seed, "memory:");
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: hand}"), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_apply(&lab, "children: [{name: h, kind: node, config: {host: spec}}]");
    lab_run(&lab, 3 * DET_SECOND);
    assert_string_equal(node_of("lab/h")->host, "spec");
    assert_int_equal(node_of("lab/h")->opened, 1);
    /* That by hand may still be taken back; the one of the spec stays. */
    (void)!det_workers_delete(lab.workers, "lab/h", &error);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    assert_string_equal(node_of("lab/h")->host, "spec");
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", &error), DET_ERR_INVALID);
    forest_end(&lab);
}

SENTENCE(name_dropped_by_the_spec_is_manual_again)
{
    struct lab lab;

    begin(&lab, seed, "memory:");
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: hand}"), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(put(&lab, "lab/h", "k", "node", NULL), 0);
    lab_apply(&lab, "children: [{name: h, kind: node, config: {host: spec}}]");
    lab_run(&lab, 3 * DET_SECOND);
    assert_string_equal(node_of("lab/h")->host, "spec");
    assert_false(lab_status(&lab, "lab/h").is_dynamic);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 3 * DET_SECOND);
    assert_string_equal(node_of("lab/h")->host, "hand");
    assert_true(lab_status(&lab, "lab/h").is_dynamic);
    assert_int_equal(node_of("lab/h")->opened, 1);
    lab_assert_state(&lab, "lab/h/k", "well");
    forest_end(&lab);
}

SENTENCE(manual_children_return_with_their_parent)
{
    struct lab lab;

    begin(&lab, seed, "memory:");
    assert_int_equal(put(&lab, "lab/a", "h", "node", "{host: hand}"), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(put(&lab, "lab/a/h", "k", "node", "{host: far}"), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 5 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    for (size_t i = 0; i < node_count; i++)
        nodes[i].host[0] = '\0';
    lab_apply(&lab, "children: [{name: a, kind: twin}]");
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/h/k", "well");
    assert_string_equal(node_of("lab/a/h")->host, "hand");
    assert_string_equal(node_of("lab/a/h/k")->host, "far");
    assert_int_equal(det_workers_delete(lab.workers, "lab/a/h", NULL), 0);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 5 * DET_SECOND);
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    assert_false(lab_has(&lab, "lab/a/h"));
    forest_end(&lab);
}

SENTENCE(freshness_is_reported_by_class)
{
    struct lab lab;
    struct det_worker_status status;
    struct link_observed observed = { .noise = 77 };

    begin(&lab, seed, NULL);
    assert_int_equal(
        det_workers_get(lab.workers, "lab/none", NULL, &status, NULL, NULL), DET_ERR_NOT_FOUND);
    node_of("lab/h")->collect_error = DET_ERR_IO;
    assert_int_equal(put(&lab, NULL, "h", "node", NULL), 0);
    lab_run(&lab, 2 * DET_SECOND);
    assert_int_equal(lab_status(&lab, "lab/h").freshness, DET_FRESHNESS_NEVER);
    assert_int_equal(lab_status(&lab, "lab/h").observed, 0);
    node_of("lab/h")->collect_error = 0;
    node_of("lab/h")->noise = 5;
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(
        det_workers_get(lab.workers, "lab/h", link_observed_record(), &status, &observed, NULL), 0);
    assert_int_equal(status.freshness, DET_FRESHNESS_FRESH);
    assert_int_equal(observed.noise, 5);
    assert_int_equal(
        det_workers_get(lab.workers, "lab/h", link_desired_record(), &status, &observed, NULL),
        DET_ERR_INVALID);
    node_of("lab/h")->collect_error = DET_ERR_IO;
    lab_run(&lab, 12 * DET_SECOND);
    assert_int_equal(lab_status(&lab, "lab/h").freshness, DET_FRESHNESS_STALE);
    assert_int_equal(lab_status(&lab, "lab/a").freshness, DET_FRESHNESS_FRESH);
    forest_end(&lab);
}

SENTENCE(disabled_worker_exists_and_stays_stopped)
{
    struct det_child_spec spec = { .name = "h", .kind = "node", .is_disabled = true };
    struct lab lab;

    begin(&lab, seed, NULL);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "down");
    assert_string_equal(lab_status(&lab, "lab/h").life, "live");
    assert_int_equal(lab_status(&lab, "lab/h").freshness, DET_FRESHNESS_FRESH);
    assert_true(lab_status(&lab, "lab/h").is_disabled);
    assert_int_equal(node_of("lab/h")->acts, 0);
    spec.is_disabled = false;
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    spec.is_disabled = true;
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "down");
    assert_int_equal(node_of("lab/h")->opened, 1);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    forest_end(&lab);
}

SENTENCE(orders_disable_enable_and_restart)
{
    struct lab lab;

    begin(&lab, seed, NULL);
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE("b")) "]");
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "down");
    assert_true(lab_status(&lab, "lab/a").is_disabled);
    assert_non_null(strstr(lab_status(&lab, "lab/a").reason, "order"));
    assert_int_equal(node_of("lab/a")->opened, 1);
    /* A spec that says the same as before does not undo it. */
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE("b")) "]");
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "down");
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_ENABLE, NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    assert_int_equal(det_workers_order(lab.workers, "lab/a/b", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/b", "well");
    assert_int_equal(node_of("lab/a/b")->opened, 2);
    assert_int_equal(node_of("lab/a")->opened, 1);
    assert_int_equal(
        det_workers_order(lab.workers, "lab/x", DET_WORKER_ORDER_DISABLE, NULL), DET_ERR_NOT_FOUND);
    forest_end(&lab);
}

SENTENCE(disable_order_survives_a_reopen_until_revoked)
{
    struct lab lab;

    begin(&lab, seed, "memory:");
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: one}"), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), 0);
    assert_int_equal(det_workers_order(lab.workers, "lab/h", DET_WORKER_ORDER_DISABLE, NULL), 0);
    /* It is for the worker, not for its spec. */
    assert_int_equal(put(&lab, NULL, "h", "node", "{host: two}"), 0);
    for (int i = 0; i < 2; i++) {
        again(&lab);
        lab_apply(&lab, "children: [" NODE("a") "]");
        lab_run(&lab, 4 * DET_SECOND);
        lab_assert_state(&lab, "lab/a", "down");
        lab_assert_state(&lab, "lab/h", "down");
        assert_true(lab_status(&lab, "lab/a").is_disabled && lab_status(&lab, "lab/h").is_disabled);
        assert_false(lab_status(&lab, "lab/a").is_dynamic);
    }
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_ENABLE, NULL), 0);
    assert_int_equal(det_workers_order(lab.workers, "lab/h", DET_WORKER_ORDER_ENABLE, NULL), 0);
    again(&lab);
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/h", "well");
    assert_string_equal(node_of("lab/h")->host, "two");
    forest_end(&lab);
}

SENTENCE(impossible_count_of_startups_in_the_store_is_reported)
{
    static const char text[] =
        "{\"name\":\"a\",\"kind\":\"node\",\"startups\":18446744073709551615}";
    const struct det_document_save save = { .kind = "node",
                                            .id = "lab/a",
                                            .role = DET_DOCUMENT_IDENTITY,
                                            .text = text,
                                            .size = sizeof text - 1 };
    struct det_document_saved saved;
    struct det_error error = { 0 };
    struct lab lab;

    begin(&lab, seed, "memory:");
    det_workers_close(lab.workers);
    assert_int_equal(det_store_documents_save(lab.store, &save, 1, &saved, NULL), 0);
    assert_int_equal(lab_open_workers(&lab, &error), DET_ERR_CORRUPT);
    assert_non_null(strstr(error.text, "lab/a"));
    assert_int_equal(
        det_store_documents_save(
            lab.store,
            &(struct det_document_save){
                .kind = "node", .id = "lab/a", .role = DET_DOCUMENT_IDENTITY, .is_drop = true },
            1, &saved, NULL),
        0);
    assert_int_equal(lab_open_workers(&lab, NULL), 0);
    forest_end(&lab);
}

SENTENCE(disable_order_is_removed_with_the_worker)
{
    struct lab lab;

    begin(&lab, seed, "memory:");
    assert_int_equal(put(&lab, NULL, "h", "node", NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), 0);
    assert_int_equal(det_workers_order(lab.workers, "lab/h", DET_WORKER_ORDER_DISABLE, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_apply(&lab, "children: []");
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    assert_false(lab_has(&lab, "lab/h"));
    assert_int_equal(put(&lab, NULL, "h", "node", NULL), 0);
    again(&lab);
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/h", "well");
    forest_end(&lab);
}

SENTENCE(the_root_may_be_restarted_and_disabled_by_an_order)
{
    struct lab lab;

    begin(&lab, seed, NULL);
    assert_int_equal(det_workers_order(lab.workers, "lab", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 8 * DET_SECOND);
    lab_assert_state(&lab, "lab", "running");
    lab_assert_state(&lab, "lab/a", "well");
    assert_int_equal(node_of("lab/a")->opened, 2);
    assert_int_equal(det_workers_order(lab.workers, "lab", DET_WORKER_ORDER_DISABLE, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab", "stopped");
    assert_int_equal(det_workers_order(lab.workers, "lab", DET_WORKER_ORDER_ENABLE, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab", "running");
    lab_assert_state(&lab, "lab/a", "well");
    assert_true(det_workers_delete(lab.workers, "lab", NULL) < 0);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    forest_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manual_worker_is_created_changed_and_deleted),
        cmocka_unit_test(invalid_manual_worker_is_refused_with_a_reason),
        cmocka_unit_test(refused_change_keeps_the_manual_worker),
        cmocka_unit_test(manual_workers_are_restored_from_the_store),
        cmocka_unit_test(run_in_states_are_recorded_by_name),
        cmocka_unit_test(unknown_run_in_state_is_reported_and_may_stop_the_child),
        cmocka_unit_test(deleted_worker_takes_its_manual_children),
        cmocka_unit_test(
            another_kind_by_hand_is_another_worker_also_after_the_store_is_opened_again),
        cmocka_unit_test(worker_upserted_while_stopping_restarts),
        cmocka_unit_test(name_taken_over_by_the_spec_belongs_to_it),
        cmocka_unit_test(name_dropped_by_the_spec_is_manual_again),
        cmocka_unit_test(manual_children_return_with_their_parent),
        cmocka_unit_test(freshness_is_reported_by_class),
        cmocka_unit_test(disabled_worker_exists_and_stays_stopped),
        cmocka_unit_test(orders_disable_enable_and_restart),
        cmocka_unit_test(disable_order_survives_a_reopen_until_revoked),
        cmocka_unit_test(impossible_count_of_startups_in_the_store_is_reported),
        cmocka_unit_test(disable_order_is_removed_with_the_worker),
        cmocka_unit_test(the_root_may_be_restarted_and_disabled_by_an_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
