/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builtin_real_test.c - the built-in kinds under a supervisor with its own threads, over real
 * processes, a real broker and a real disk. */
/* test: threads */
#include <signal.h>

#include <detent/workers.h>

#include "kinds/broker_test.h"
#include "kinds/kinds.h"
#include "lib/test.h"
#include "os/os.h"

#define WORKER_SPEC "kinds/process.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "kinds/mqtt_link.worker"
#include <detent/worker/declare.h>

/* The published log, for threads that wait for a line. */
static struct {
    struct det_mutex *mutex;
    struct det_condition *changed;
    char log[262144]; /* "id from to\n" of each change of state */
    size_t size;
} reported;

static void on_event(void *user, const struct det_worker_event *event)
{
    struct det_world *world = det_world_real();

    (void)user;
    if (event->kind != DET_WORKER_EVENT_TRANSITION)
        return;
    det_mutex_lock(world, reported.mutex);
    if (reported.size < sizeof reported.log - 1024)
        reported.size += (size_t)snprintf(
            reported.log + reported.size, 1024, "%s %s %s\n", event->identity->id, event->from,
            event->to);
    det_condition_broadcast(world, reported.changed);
    det_mutex_unlock(world, reported.mutex);
}

/* Waits for a line, from a position in the log; returns the position after it. */
static size_t await(size_t from, const char *text)
{
    struct det_world *world = det_world_real();
    det_time end = det_world_now(world, DET_CLOCK_MONOTONIC) + 10 * DET_MINUTE;
    const char *found;

    det_mutex_lock(world, reported.mutex);
    while (!(found = strstr(reported.log + from, text)))
        if (det_condition_wait(world, reported.changed, reported.mutex, end) == DET_ERR_TIMEOUT)
            fail_msg("not told: %s\n%s", text, reported.log + from);
    det_mutex_unlock(world, reported.mutex);
    return (size_t)(found - reported.log) + strlen(text);
}

static struct det_workers *workers;

static int start(void **state)
{
    struct det_world *world = det_world_real();
    struct det_backoff backoff = { .first = 20 * DET_MILLISECOND, .max = 100 * DET_MILLISECOND };
    struct det_workers_options options = {
        .name = "real",
        .kinds = det_kinds_all(),
        .limits = { .tick = 10 * DET_MILLISECOND,
                    .observe_every = 20 * DET_MILLISECOND,
                    .action_backoff = backoff },
        .on_event = on_event,
    };
    struct det_error error = { 0 };

    (void)state;
    memset(&reported, 0, sizeof reported);
    assert_int_equal(det_mutex_open(world, &reported.mutex), 0);
    assert_int_equal(det_condition_open(world, &reported.changed), 0);
    if (det_workers_open(&options, &workers, &error) < 0)
        fail_msg("%s", error.text);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    det_workers_close(workers);
    det_condition_close(det_world_real(), reported.changed);
    det_mutex_close(det_world_real(), reported.mutex);
    return 0;
}

static void apply(const char *yaml)
{
    struct det_error error = { 0 };

    if (det_workers_apply(workers, yaml, &error) < 0)
        fail_msg("%s", error.text);
}

static void a_process_that_was_killed_runs_again(void **state)
{
    struct process_observed before, after;
    struct det_worker_status status;
    size_t at;

    (void)state;
    apply("children: [{name: sleep, kind: process, config: {argv: [sleep, '600'], delay_ms: 1, "
          "steady_ms: 1}}]");
    at = await(0, "real/sleep starting running\n");
    assert_int_equal(process_get(workers, "real/sleep", &status, &before), 0);
    assert_int_equal(kill((pid_t)before.pid, SIGKILL), 0);
    (void)await(at, "starting running\n");
    do
        assert_int_equal(process_get(workers, "real/sleep", &status, &after), 0);
    while (after.pid == before.pid || !after.is_running);
    assert_string_equal(after.exit_signal, "KILL");
    assert_int_equal(after.starts, 2);
    assert_int_equal(det_workers_stop(workers, NULL), 0);
    assert_int_equal(kill((pid_t)after.pid, 0), -1);
}

static void a_broker_that_was_killed_is_found_again(void **state)
{
    struct mqtt_link_observed seen;
    struct det_worker_status status;
    struct broker broker;
    char yaml[512];
    size_t at;

    (void)state;
    broker_open(&broker, false, false);
    (void)snprintf(
        yaml, sizeof yaml,
        "children: [{name: link, kind: mqtt_link, config: {host: 127.0.0.1, port: %u, subscribe: "
        "['plant/#'], status_topic: plant/status}}]",
        broker.port);
    apply(yaml);
    at = await(0, "real/link connecting connected\n");
    broker_assert_retained(&broker, "plant/status", "online");
    broker_kill(&broker);
    at = await(at, "real/link connected lost\n");
    /* Until it has been tried in vain. */
    do
        assert_int_equal(mqtt_link_get(workers, "real/link", &status, &seen), 0);
    while (status.counts.actions_failed < 2);
    assert_non_null(strstr(seen.last_error, "Connection refused"));
    broker_start(&broker);
    (void)await(at, "real/link lost connected\n");
    assert_int_equal(mqtt_link_get(workers, "real/link", &status, &seen), 0);
    assert_int_equal(seen.connects, 2);
    assert_true(seen.is_subscribed);
    assert_int_equal(det_workers_stop(workers, NULL), 0);
    broker_assert_retained(&broker, "plant/status", "offline");
    broker_close(&broker);
}

/* Each is made or refused as the others are. */
static void all_built_in_kinds_run_together(void **state)
{
    char *folder = det_test_folder(), yaml[1024];
    uint16_t port = broker_free_port();
    size_t at = 0;

    (void)state;
    (void)snprintf(
        yaml, sizeof yaml,
        "children:\n"
        "- {name: motd, kind: file, config: {path: %s/motd, content: hello, mode: '0600'}}\n"
        "- {name: sleep, kind: process, config: {argv: [sleep, '600']}}\n"
        "- {name: url, kind: http_check, config: {url: 'http://127.0.0.1:%u/'}}\n"
        "- {name: link, kind: mqtt_link, config: {host: 127.0.0.1, port: %u}}\n",
        folder, port, port);
    apply(yaml);
    (void)await(at, "real/motd writing in_place\n");
    (void)await(at, "real/sleep starting running\n");
    (void)await(at, "real/url stopped degraded\n");
    (void)await(at, "real/link connecting lost\n");
    assert_int_equal(det_workers_stop(workers, NULL), 0);
    det_test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_process_that_was_killed_runs_again, start, stop),
        cmocka_unit_test_setup_teardown(a_broker_that_was_killed_is_found_again, start, stop),
        cmocka_unit_test_setup_teardown(all_built_in_kinds_run_together, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
