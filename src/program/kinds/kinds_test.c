/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* kinds_test.c - the kinds of the list: each is valid, and each state decides as it must. */
#include "kinds/kinds_test.h"

#include <string.h>

#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/exampleparent.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "kinds/examplechild.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "kinds/examplefailing.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "kinds/examplepanic.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "kinds/exampleslow.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "kinds/helloworld.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "kinds/persistence.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "kinds/noop.worker"
#include <detent/worker/declare.h>

static void every_listed_kind_is_valid_and_has_a_summary(void **state)
{
    const struct det_worker_kind *const *all = det_kinds_all();
    const struct det_kind_entry *list = det_kinds_list();

    (void)state;
    for (; list->kind; list++, all++) {
        struct det_error error = { 0 };

        assert_int_equal(det_worker_kind_check(list->kind, &error), 0);
        assert_true(strlen(list->summary) > 0);
        assert_ptr_equal(*all, list->kind);
        for (const struct det_kind_entry *other = list + 1; other->kind; other++)
            assert_string_not_equal(other->kind->name, list->kind->name);
    }
    assert_null(*all);
}

/* derive() */

static char refused[200];
static int refuse(struct det_derive *derive, const char *format, ...) DET_PRINTF(2, 3);
static int refuse(struct det_derive *derive, const char *format, ...)
{
    va_list arguments;

    (void)derive;
    va_start(arguments, format);
    (void)vsnprintf(refused, sizeof refused, format, arguments);
    va_end(arguments);
    return DET_ERR_INVALID;
}

static int derive(const struct det_worker_kind *kind, const void *config, void *desired)
{
    struct det_worker_identity identity = { "root/it", "it", kind->name, "root/it" };
    struct det_derive derive = { .identity = &identity, .config = "", .refuse = refuse };

    return kind->derive(&derive, config, desired);
}

static void a_parent_has_defaults_and_refuses_too_many_children(void **state)
{
    static struct exampleparent_desired config, desired;

    (void)state;
    assert_int_equal(derive(&exampleparent_kind, &config, &desired), 0);
    assert_string_equal(desired.child_kind, "examplechild");
    assert_non_null(strstr(desired.child_config, "{{ .DEVICE_ID }}"));
    assert_int_equal(desired.rest_seconds, 5);
    assert_int_equal(desired.run_seconds, 10);

    memcpy(config.child_kind, "noop", sizeof "noop");
    config.rest_seconds = 1;
    assert_int_equal(derive(&exampleparent_kind, &config, &desired), 0);
    assert_string_equal(desired.child_config, "");
    assert_int_equal(desired.rest_seconds, 1);

    config.children_count = 100001;
    assert_int_equal(derive(&exampleparent_kind, &config, &desired), DET_ERR_INVALID);
    assert_string_equal(refused, "children_count is 100001; at most 100000 are possible");
}

static void should_fail_false_overrides_the_other_fields(void **state)
{
    struct examplefailing_config config = { .has_max_failures = true, .max_failures = 7 };
    struct examplefailing_desired desired = { 0 };

    (void)state;
    assert_int_equal(derive(&examplefailing_kind, &config, &desired), 0);
    assert_int_equal(desired.max_failures, 0);
    config.should_fail = true;
    assert_int_equal(derive(&examplefailing_kind, &config, &desired), 0);
    assert_int_equal(desired.max_failures, 7);
    assert_int_equal(desired.failure_cycles, 1);
    config = (struct examplefailing_config){ .should_fail = true };
    assert_int_equal(derive(&examplefailing_kind, &config, &desired), 0);
    assert_int_equal(desired.max_failures, 3);
}

static void persistence_without_limits_keeps_one_day(void **state)
{
    struct persistence_desired config = { 0 }, desired = { 0 };

    (void)state;
    assert_int_equal(derive(&persistence_kind, &config, &desired), 0);
    assert_int_equal(desired.keep_seconds, 86400);
    assert_int_equal(desired.interval_seconds, 300);
    config.keep_deltas = 5;
    assert_int_equal(derive(&persistence_kind, &config, &desired), 0);
    assert_int_equal(desired.keep_seconds, 0);
}

/* next() */

static void example_parent_follows_its_schedule(void **state)
{
    static struct exampleparent_desired desired = { .rest_seconds = 5,
                                                    .run_seconds = 10,
                                                    .start_seconds = 30 };
    struct exampleparent_observed observed = { 0 };
    struct view view;

    (void)state;
    view_init(&view, &exampleparent_kind, &desired, &observed);
    assert_hold(&view, EXAMPLEPARENT_STOPPED);
    view.all.since = 95 * DET_SECOND;
    assert_goto(&view, EXAMPLEPARENT_STOPPED, EXAMPLEPARENT_TRYING_TO_START);
    assert_do(&view, EXAMPLEPARENT_TRYING_TO_START, EXAMPLEPARENT_START);
    observed.is_started = true;
    assert_goto(&view, EXAMPLEPARENT_TRYING_TO_START, EXAMPLEPARENT_RUNNING);
    assert_hold(&view, EXAMPLEPARENT_RUNNING);
    view.all.since = 90 * DET_SECOND;
    assert_goto(&view, EXAMPLEPARENT_RUNNING, EXAMPLEPARENT_TRYING_TO_STOP);
    assert_do(&view, EXAMPLEPARENT_TRYING_TO_STOP, EXAMPLEPARENT_STOP);
    observed.is_started = false;
    assert_goto(&view, EXAMPLEPARENT_TRYING_TO_STOP, EXAMPLEPARENT_STOPPED);
}

static void parent_health_follows_its_children(void **state)
{
    static struct exampleparent_desired desired = { .run_seconds = 10, .start_seconds = 30 };
    struct exampleparent_observed observed = { .is_started = true };
    struct view view;

    (void)state;
    view_init(&view, &exampleparent_kind, &desired, &observed);
    view.children = (struct det_children_view){ .count = 2, .healthy = 1, .unhealthy = 1 };
    assert_hold(&view, EXAMPLEPARENT_TRYING_TO_START);
    assert_goto(&view, EXAMPLEPARENT_RUNNING, EXAMPLEPARENT_DEGRADED);
    assert_string_equal(view.scratch.text, "1 of 2 children are not healthy");
    assert_hold(&view, EXAMPLEPARENT_DEGRADED);
    assert_hold(&view, EXAMPLEPARENT_TRYING_TO_STOP);
    assert_string_equal(view.scratch.text, "2 of 2 children are still running");
    view.all.since = 70 * DET_SECOND;
    assert_goto(&view, EXAMPLEPARENT_TRYING_TO_START, EXAMPLEPARENT_DEGRADED);
    view.children = (struct det_children_view){ .count = 2, .healthy = 2 };
    assert_goto(&view, EXAMPLEPARENT_DEGRADED, EXAMPLEPARENT_RUNNING);
}

struct wanted {
    struct det_children children;
    unsigned count, fail_at;
    char last[200];
    uint64_t run_in;
};
static int add(struct det_children *children, const struct det_child_spec *spec)
{
    struct wanted *wanted = (struct wanted *)children;

    if (++wanted->count == wanted->fail_at)
        return DET_ERR_NO_MEMORY;
    (void)snprintf(
        wanted->last, sizeof wanted->last, "%s %s %s %s", spec->name, spec->kind, spec->config,
        spec->variables);
    wanted->run_in = spec->run_in;
    return 0;
}

static void a_parent_wants_its_children_while_it_runs(void **state)
{
    static struct exampleparent_desired desired = { .children_count = 3,
                                                    .child_kind = "noop",
                                                    .child_config = "value: x" };
    struct exampleparent_observed observed = { 0 };
    struct wanted wanted = { .children = { add } };
    struct view view;

    (void)state;
    view_init(&view, &exampleparent_kind, &desired, &observed);
    assert_int_equal(exampleparent_kind.children(&view.all, &wanted.children), 0);
    assert_int_equal(wanted.count, 3);
    assert_string_equal(wanted.last, "child-2 noop value: x DEVICE_ID: device-2\n");
    assert_true(
        wanted.run_in == (DET_IN(EXAMPLEPARENT_TRYING_TO_START) | DET_IN(EXAMPLEPARENT_RUNNING) |
                          DET_IN(EXAMPLEPARENT_DEGRADED)));
    wanted = (struct wanted){ .children = { add }, .fail_at = 2 };
    assert_int_equal(exampleparent_kind.children(&view.all, &wanted.children), DET_ERR_NO_MEMORY);
}

static void a_child_connects_and_disconnects(void **state)
{
    struct examplechild_desired desired = { .address = "10.0.0.1:502" };
    struct examplechild_observed observed = { 0 };
    struct view view;

    (void)state;
    view_init(&view, &examplechild_kind, &desired, &observed);
    assert_goto(&view, EXAMPLECHILD_STOPPED, EXAMPLECHILD_TRYING_TO_CONNECT);
    assert_do(&view, EXAMPLECHILD_TRYING_TO_CONNECT, EXAMPLECHILD_CONNECT);
    assert_string_equal(view.scratch.text, "not connected to 10.0.0.1:502");
    assert_goto(&view, EXAMPLECHILD_CONNECTED, EXAMPLECHILD_DISCONNECTED);
    assert_goto(&view, EXAMPLECHILD_DISCONNECTED, EXAMPLECHILD_TRYING_TO_CONNECT);
    assert_goto(&view, EXAMPLECHILD_TRYING_TO_STOP, EXAMPLECHILD_STOPPED);
    observed.is_connected = true;
    assert_goto(&view, EXAMPLECHILD_TRYING_TO_CONNECT, EXAMPLECHILD_CONNECTED);
    assert_hold(&view, EXAMPLECHILD_CONNECTED);
    assert_do(&view, EXAMPLECHILD_TRYING_TO_STOP, EXAMPLECHILD_DISCONNECT);
}

static void failing_worker_requests_a_restart_at_its_limit(void **state)
{
    struct examplefailing_desired desired = { .max_failures = 9, .failure_cycles = 2 };
    struct examplefailing_observed observed = { .failures = 5 };
    struct view view;

    (void)state;
    view_init(&view, &examplefailing_kind, &desired, &observed);
    assert_do(&view, EXAMPLEFAILING_TRYING_TO_CONNECT, EXAMPLEFAILING_CONNECT);
    desired.restart_after_failures = 5;
    assert_int_equal(view_ask(&view, EXAMPLEFAILING_TRYING_TO_CONNECT).kind, DET_NEXT_RESTART);
    observed = (struct examplefailing_observed){ .is_connected = true, .cycle = 1 };
    assert_goto(&view, EXAMPLEFAILING_TRYING_TO_CONNECT, EXAMPLEFAILING_CONNECTED);
    assert_hold(&view, EXAMPLEFAILING_CONNECTED);
    view.all.since = 98 * DET_SECOND;
    assert_do(&view, EXAMPLEFAILING_CONNECTED, EXAMPLEFAILING_DISCONNECT);
    observed.cycle = 2;
    assert_hold(&view, EXAMPLEFAILING_CONNECTED);
    assert_do(&view, EXAMPLEFAILING_TRYING_TO_STOP, EXAMPLEFAILING_DISCONNECT);
    observed.is_connected = false;
    assert_goto(&view, EXAMPLEFAILING_CONNECTED, EXAMPLEFAILING_DISCONNECTED);
    assert_goto(&view, EXAMPLEFAILING_TRYING_TO_STOP, EXAMPLEFAILING_STOPPED);
}

static void hello_is_printed_once_and_a_sad_mood_degrades(void **state)
{
    struct helloworld_desired desired = { 0 };
    struct helloworld_observed observed = { 0 };
    struct view view;

    (void)state;
    view_init(&view, &helloworld_kind, &desired, &observed);
    assert_goto(&view, HELLOWORLD_STOPPED, HELLOWORLD_TRYING_TO_START);
    assert_do(&view, HELLOWORLD_TRYING_TO_START, HELLOWORLD_SAY_HELLO);
    observed.hello_said = true;
    assert_goto(&view, HELLOWORLD_TRYING_TO_START, HELLOWORLD_RUNNING);
    assert_hold(&view, HELLOWORLD_RUNNING);
    assert_goto(&view, HELLOWORLD_DEGRADED, HELLOWORLD_RUNNING);
    memcpy(observed.mood, "sad", sizeof "sad");
    assert_goto(&view, HELLOWORLD_RUNNING, HELLOWORLD_DEGRADED);
    assert_hold(&view, HELLOWORLD_DEGRADED);
}

static void persistence_compacts_at_start_interval_and_stop(void **state)
{
    struct persistence_desired desired = { .interval_seconds = 10 };
    struct persistence_observed observed = { 0 };
    struct view view;

    (void)state;
    view_init(&view, &persistence_kind, &desired, &observed);
    assert_do(&view, PERSISTENCE_TRYING_TO_START, PERSISTENCE_COMPACT);
    observed = (struct persistence_observed){ .runs = 1, .compacted_at = 995 * DET_SECOND };
    assert_goto(&view, PERSISTENCE_TRYING_TO_START, PERSISTENCE_RUNNING);
    assert_hold(&view, PERSISTENCE_RUNNING);
    observed.compacted_at = 990 * DET_SECOND;
    assert_do(&view, PERSISTENCE_RUNNING, PERSISTENCE_COMPACT);
    observed.compacted_at = 2000 * DET_SECOND;
    assert_do(&view, PERSISTENCE_RUNNING, PERSISTENCE_COMPACT);
    assert_goto(&view, PERSISTENCE_DEGRADED, PERSISTENCE_RUNNING);
    observed.failures = 2;
    assert_goto(&view, PERSISTENCE_RUNNING, PERSISTENCE_DEGRADED);
    assert_do(&view, PERSISTENCE_DEGRADED, PERSISTENCE_COMPACT);
    /* A process that ended before the request to stop does not count. */
    view.last_action = (struct det_action_end){ .action = "compact", .at = 98 * DET_SECOND };
    assert_do(&view, PERSISTENCE_STOPPING, PERSISTENCE_COMPACT);
    view.last_action.at = 99 * DET_SECOND;
    view.last_action.code = DET_ERR_IO;
    assert_goto(&view, PERSISTENCE_STOPPING, PERSISTENCE_STOPPED);
}

static void other_example_kinds_connect(void **state)
{
    struct examplepanic_desired panic = { 0 };
    struct examplepanic_observed panic_observed = { 0 };
    struct exampleslow_desired slow = { 2 };
    struct exampleslow_observed slow_observed = { 0 };
    struct noop_desired noop = { "" };
    struct noop_observed noop_observed = { "" };
    struct view view;

    (void)state;
    view_init(&view, &examplepanic_kind, &panic, &panic_observed);
    assert_do(&view, EXAMPLEPANIC_TRYING_TO_CONNECT, EXAMPLEPANIC_CONNECT);
    assert_goto(&view, EXAMPLEPANIC_CONNECTED, EXAMPLEPANIC_TRYING_TO_CONNECT);
    view_init(&view, &exampleslow_kind, &slow, &slow_observed);
    assert_do(&view, EXAMPLESLOW_TRYING_TO_CONNECT, EXAMPLESLOW_CONNECT);
    assert_string_equal(view.scratch.text, "not connected; connecting takes 2 s");
    assert_goto(&view, EXAMPLESLOW_CONNECTED, EXAMPLESLOW_TRYING_TO_CONNECT);
    assert_goto(&view, EXAMPLESLOW_TRYING_TO_STOP, EXAMPLESLOW_STOPPED);
    view_init(&view, &noop_kind, &noop, &noop_observed);
    assert_goto(&view, NOOP_STOPPED, NOOP_RUNNING);
    assert_hold(&view, NOOP_RUNNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_listed_kind_is_valid_and_has_a_summary),
        cmocka_unit_test(a_parent_has_defaults_and_refuses_too_many_children),
        cmocka_unit_test(should_fail_false_overrides_the_other_fields),
        cmocka_unit_test(persistence_without_limits_keeps_one_day),
        cmocka_unit_test(example_parent_follows_its_schedule),
        cmocka_unit_test(parent_health_follows_its_children),
        cmocka_unit_test(a_parent_wants_its_children_while_it_runs),
        cmocka_unit_test(a_child_connects_and_disconnects),
        cmocka_unit_test(failing_worker_requests_a_restart_at_its_limit),
        cmocka_unit_test(hello_is_printed_once_and_a_sad_mood_degrades),
        cmocka_unit_test(persistence_compacts_at_start_interval_and_stop),
        cmocka_unit_test(other_example_kinds_connect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
