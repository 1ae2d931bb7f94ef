/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_derive_test.c - from the config to the desired state: derived once, recorded before it
 * counts, kept when the next one is wrong; and the flags beside it that no derive takes away. */
#include <detent/tool/workers.h>

#include "worker/behaviour_test.h"

#include "worker/faulty_test.h"

static int copy_document(void *context, const struct det_document *document)
{
    det_buffer_append(context, document->text, document->size);
    return 0;
}

/* Whether the document of the worker, of this role, has the text in it. */
static bool is_recorded(
    struct lab *lab, const char *id, enum det_document_role role, const char *text)
{
    struct det_document_query query = { .id = id, .has_role = true, .role = role };
    struct det_buffer copy;
    bool is;

    det_buffer_init(&copy, NULL);
    assert_int_equal(det_store_documents_list(lab->store, &query, copy_document, &copy, NULL), 0);
    is = strstr(det_buffer_text(&copy), text) != NULL;
    det_buffer_deinit(&copy);
    return is;
}

static const char *link_with_port(unsigned port)
{
    static char yaml[100];

    snprintf(
        yaml, sizeof yaml, "children: [{name: a, kind: link, config: {host: h, port: %u}}]", port);
    return yaml;
}

SENTENCE(a_config_is_derived_once_and_again_only_when_it_changes)
{
    struct lab lab;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 30 * DET_SECOND);
    assert_int_equal(lab.plant.derives, 1);
    lab_apply(&lab, LAB_LINK);
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(lab.plant.derives, 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_DERIVED, "lab/a"), 1);
    lab_apply(&lab, link_with_port(2));
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(lab.plant.derives, 2);
    assert_int_equal(reported_times(DET_WORKER_EVENT_DERIVED, "lab/a"), 2);
    assert_int_equal(lab.plant.port, 2);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab.plant.opened, 1);
    lab_close(&lab);
}

#define WITH_PORT(value)                        \
    "variables: {PORT: " #value ", OTHER: 1}\n" \
    "children: [{name: a, kind: link, config: {host: h, port: \"{{ .PORT }}\"}}]"

SENTENCE(changed_variable_or_global_derives_again)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.globals = "{name: x}";
    behaviour_begin(&lab, options, WITH_PORT(1), 5 * DET_SECOND);
    assert_int_equal(lab.plant.derives, 1);
    lab_apply(&lab, WITH_PORT(2));
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(lab.plant.derives, 2);
    assert_int_equal(lab.plant.port, 2);
    lab_apply(
        &lab, "children: [{name: a, kind: link, config: {host: \"{{ .global.name }}\", port: 2}}]");
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(lab.plant.derives, 3);
    assert_int_equal(det_workers_set_globals(lab.workers, "{name: y}", NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(lab.plant.derives, 4);
    assert_int_equal(reported_times(DET_WORKER_EVENT_DERIVED, "lab/a"), 4);
    assert_int_equal(det_workers_set_globals(lab.workers, "{name: y}", NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(lab.plant.derives, 4);
    lab_close(&lab);
}

static struct lab *watched;
static bool was_early;
static void watch_recorded(const struct det_worker_event *event)
{
    char text[32];

    watch_reported(event);
    if (event->kind != DET_WORKER_EVENT_DERIVED || strcmp(event->identity->id, "lab/a") != 0)
        return;
    snprintf(text, sizeof text, "\"port\":%u", watched->plant.derives);
    if (!is_recorded(watched, "lab/a", DET_DOCUMENT_DESIRED, text))
        was_early = true;
}

SENTENCE(desired_state_is_recorded_before_it_is_used)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.store = "memory:";
    options.watch = watch_recorded;
    watched = &lab;
    was_early = false;
    behaviour_begin(&lab, options, LAB_LINK, 3 * DET_SECOND);
    for (unsigned port = 2; port < 5; port++) {
        lab_apply(&lab, link_with_port(port));
        lab_run(&lab, 3 * DET_SECOND);
        assert_int_equal(lab.plant.port, port);
    }
    assert_int_equal(reported_times(DET_WORKER_EVENT_DERIVED, "lab/a"), 4);
    assert_false(was_early);
    lab_close(&lab);
}

SENTENCE(refused_config_keeps_the_last_good_one_and_degrades)
{
    struct lab lab;
    struct det_worker_status status;
    struct det_workers_summary summary;
    uint32_t derives;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab_apply(&lab, link_with_port(666));
    lab_run(&lab, DET_SECOND);
    derives = lab.plant.derives;
    lab_run(&lab, 30 * DET_SECOND);
    assert_int_equal(lab.plant.derives, derives);
    assert_int_equal(reported_times(DET_WORKER_EVENT_DERIVE_FAILED, "lab/a"), 1);
    status = lab_status(&lab, "lab/a");
    assert_non_null(strstr(status.degraded_by, "port 666 is not for us"));
    assert_string_equal(status.state, "up");
    assert_int_equal(lab.plant.port, 1);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.degraded, 1);
    /* It goes on with what it had. */
    lab.plant.is_up = false;
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_log(&lab, "up lost");
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab.plant.port, 1);
    lab_apply(&lab, link_with_port(3));
    lab_run(&lab, 3 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/a").degraded_by, "");
    assert_int_equal(lab.plant.port, 3);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.degraded, 0);
    lab_close(&lab);
}

SENTENCE(return_to_the_last_good_config_ends_the_degradation)
{
    struct lab lab;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    lab_apply(&lab, link_with_port(666));
    lab_run(&lab, 2 * DET_SECOND);
    lab_apply(&lab, LAB_LINK);
    lab_run(&lab, 2 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/a").degraded_by, "");
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab.plant.connects, 1);
    lab_close(&lab);
}

SENTENCE(wrong_config_blocks_neither_stop_nor_siblings)
{
    struct lab lab;
    det_time began;

    behaviour_begin(
        &lab, behaviour_options(seed),
        "children: [{name: a, kind: link, config: {host: h, port: 1}}, {name: p, kind: puppet}, "
        "{name: bad, kind: link, config: {host: h, port: 666}}, "
        "{name: worse, kind: link, config: {what: 1}}, "
        "{name: worst, kind: link, config: \"{{ .NOTHING }}\"}]",
        3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    lab_assert_state(&lab, "lab/p", "working");
    lab_assert_state(&lab, "lab/bad", "stopped");
    assert_non_null(strstr(lab_status(&lab, "lab/bad").degraded_by, "666"));
    assert_non_null(strstr(lab_status(&lab, "lab/worse").degraded_by, "what"));
    assert_non_null(strstr(lab_status(&lab, "lab/worst").degraded_by, "NOTHING"));
    lab_apply(&lab, link_with_port(666));
    lab_run(&lab, 2 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/bad"));
    assert_false(lab_has(&lab, "lab/worse"));
    lab_assert_state(&lab, "lab/a", "up");
    began = lab_now(&lab);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    assert_true(lab_now(&lab) - began < 2 * DET_SECOND);
    lab_assert_log(&lab, "state_transition lab/a closing stopped");
    lab_close(&lab);
}

SENTENCE(a_request_to_stop_survives_a_new_desired_state)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.store = "memory:";
    options.limits.stop_grace = 60 * DET_SECOND;
    options.globals = "{name: x}";
    behaviour_begin(
        &lab, options,
        "children: [{name: a, kind: link, config: {host: \"{{ .global.name }}\", port: 2}}]",
        3 * DET_SECOND);
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_DESIRED, "\"shutdown_requested\":false"));
    lab.plant.is_stuck = true;
    lab_apply(&lab, "children: []");
    lab_run(&lab, DET_SECOND);
    lab_assert_state(&lab, "lab/a", "closing");
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_DESIRED, "\"shutdown_requested\":true"));
    assert_int_equal(det_workers_set_globals(lab.workers, "{name: y}", NULL), 0);
    lab_run(&lab, 2 * DET_SECOND);
    assert_true(lab_status(&lab, "lab/a").shutdown_wanted);
    lab_assert_state(&lab, "lab/a", "closing");
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_DESIRED, "\"shutdown_requested\":true"));
    lab.plant.is_stuck = false;
    lab_run(&lab, 3 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    lab_close(&lab);
}

SENTENCE(a_request_to_stop_counts_though_it_cannot_be_recorded_and_is_recorded_at_last)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.store = "memory:";
    options.limits.stop_grace = 60 * DET_SECOND;
    behaviour_begin(&lab, options, LAB_LINK, 3 * DET_SECOND);
    make_faulty(&lab);
    fault = DET_ERR_IO;
    lab.plant.is_stuck = true;
    lab_apply(&lab, "children: []");
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "closing");
    lab_assert_log(&lab, "store_failed lab/a");
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_DESIRED, "\"shutdown_requested\":false"));
    fault = 0;
    lab_run(&lab, 50 * DET_SECOND);
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_DESIRED, "\"shutdown_requested\":true"));
    lab_close(&lab);
}

SENTENCE(a_collector_that_is_unresponsive_is_given_up_though_nothing_can_be_recorded)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.store = "memory:";
    behaviour_begin(&lab, options, LAB_LINK, 3 * DET_SECOND);
    make_faulty(&lab);
    fault = DET_ERR_IO;
    lab.plant.collect_error = DET_ERR_IO;
    lab_run(&lab, 50 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_COLLECTOR_GIVEN_UP, "lab/a"), 1);
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    fault = 0;
    lab_run(&lab, 5 * DET_SECOND);
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_OBSERVED, "unresponsive"));
    lab_close(&lab);
}

SENTENCE(disable_order_survives_a_new_desired_state)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.store = "memory:";
    behaviour_begin(&lab, options, LAB_LINK, 3 * DET_SECOND);
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "stopped");
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_DESIRED, "\"disabled\":true"));
    lab_apply(&lab, link_with_port(5));
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "stopped");
    assert_true(lab_status(&lab, "lab/a").is_disabled);
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_DESIRED, "\"disabled\":true"));
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_DESIRED, "\"port\":5"));
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_ENABLE, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab.plant.port, 5);
    lab_close(&lab);
}

SENTENCE(recorded_documents_match_the_worker)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.store = "memory:";
    behaviour_begin(&lab, options, LAB_LINK, 5 * DET_SECOND);
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_OBSERVED, "\"state\":\"up\""));
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_OBSERVED, "\"is_up\":true"));
    lab.plant.is_up = false;
    lab.plant.connect_error = DET_ERR_IO;
    lab_run(&lab, 3 * DET_SECOND);
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_OBSERVED, "\"state\":\"lost\""));
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_OBSERVED, "\"is_up\":false"));
    lab_apply(&lab, link_with_port(666));
    lab_run(&lab, 2 * DET_SECOND);
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_OBSERVED, "666"));
    assert_true(is_recorded(&lab, "lab/a", DET_DOCUMENT_DESIRED, "\"port\":1"));
    lab_close(&lab);
}

static char *show(struct lab *lab, const char *id, size_t *ret_size)
{
    char *text;

    assert_int_equal(det_workers_show(lab->workers, id, &text, ret_size), 0);
    return text;
}

SENTENCE(metrics_of_actions_are_shown_and_counters_grow_over_restarts)
{
    struct lab lab;
    char *text;
    size_t size;

    behaviour_begin(&lab, behaviour_options(seed), LAB_LINK, 3 * DET_SECOND);
    text = show(&lab, "lab/a", &size);
    assert_non_null(strstr(text, "\"connects\":1"));
    det_free(NULL, text, size + 1);
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 8 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    text = show(&lab, "lab/a", &size);
    assert_non_null(strstr(text, "\"connects\":2"));
    det_free(NULL, text, size + 1);
    lab_close(&lab);
}

SENTENCE(the_history_has_ends_of_actions_and_changes_of_state_newest_first)
{
    struct lab lab;
    char *text, *up, *refused;
    size_t size;

    lab_open(&lab, behaviour_options(seed));
    lab.plant.connect_fails = 1;
    lab_apply(&lab, LAB_LINK);
    lab_run(&lab, 6 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(det_workers_history(lab.workers, "lab/a", &text, &size), 0);
    assert_int_equal(strlen(text), size);
    up = strstr(text, "link is up");
    refused = strstr(text, "refused by h");
    assert_non_null(up);
    assert_non_null(refused);
    assert_true(up < refused);
    assert_true(refused < strstr(text, "is to run"));
    det_free(NULL, text, size + 1);
    assert_int_equal(det_workers_history(lab.workers, "lab/none", &text, &size), DET_ERR_NOT_FOUND);
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_is_derived_once_and_again_only_when_it_changes),
        cmocka_unit_test(changed_variable_or_global_derives_again),
        cmocka_unit_test(desired_state_is_recorded_before_it_is_used),
        cmocka_unit_test(refused_config_keeps_the_last_good_one_and_degrades),
        cmocka_unit_test(return_to_the_last_good_config_ends_the_degradation),
        cmocka_unit_test(wrong_config_blocks_neither_stop_nor_siblings),
        cmocka_unit_test(a_request_to_stop_survives_a_new_desired_state),
        cmocka_unit_test(
            a_request_to_stop_counts_though_it_cannot_be_recorded_and_is_recorded_at_last),
        cmocka_unit_test(
            a_collector_that_is_unresponsive_is_given_up_though_nothing_can_be_recorded),
        cmocka_unit_test(disable_order_survives_a_new_desired_state),
        cmocka_unit_test(recorded_documents_match_the_worker),
        cmocka_unit_test(metrics_of_actions_are_shown_and_counters_grow_over_restarts),
        cmocka_unit_test(the_history_has_ends_of_actions_and_changes_of_state_newest_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
