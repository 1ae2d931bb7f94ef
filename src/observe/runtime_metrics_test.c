/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime_metrics_test.c - metrics of a runtime and of tasks: with machines that are known, and
 * with those that are not. */
#include "runtime/runtime_test.h"

#include "observe/metrics_test.h"
#include "observe/runtime_metrics.h"

struct scene {
    struct fixture *f;
    struct det_metrics *metrics;
    struct det_monitor *monitor;
};

static void receive_note(void *observer, const struct det_note *note)
{
    det_monitor_note(observer, note);
}

static void receive_incident(void *observer, const struct det_incident *incident)
{
    det_monitor_incident(observer, incident);
}

static void receive_commit(void *observer, const struct det_commit_figures *figures)
{
    det_monitor_commit(observer, figures);
}

static void receive_attempt(void *observer, const struct det_attempt_figures *figures)
{
    det_monitor_attempt(observer, figures);
}

static void receive_timeout(void *observer, const struct det_machine *machine, det_time late)
{
    det_monitor_timeout(observer, machine, late);
}

static void receive_unhandled(
    void *observer, const struct det_machine *machine, unsigned state, unsigned event)
{
    det_monitor_unhandled(observer, machine, state, event);
}

static const struct det_meter meter = { .commit = receive_commit,
                                        .attempt = receive_attempt,
                                        .timeout = receive_timeout,
                                        .unhandled = receive_unhandled };

static void open_scene(struct scene *scene)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    scene->f = f;
    scene->metrics = metrics_of(&(struct det_metrics_options){ .world = det_sim_world(f->sim) });
    assert_int_equal(
        det_monitor_open(scene->metrics, det_sim_world(f->sim), NULL, &scene->monitor), 0);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(
        det_runtime_open(
            f->store,
            &(struct det_runtime_options){ .world = det_sim_world(f->sim),
                                           .user = &f->control,
                                           .observer = scene->monitor,
                                           .observe = receive_note,
                                           .incident = receive_incident,
                                           .meter = &meter },
            &f->runtime, &f->error),
        0);
}

static void close_scene(struct scene *scene)
{
    struct fixture *f = scene->f;

    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_monitor_close(scene->monitor);
    det_metrics_close(scene->metrics);
    fixture_close(f);
}

/* An order that is paid at the second attempt, one that waits too long, one that is stopped. */
static void live(struct fixture *f)
{
    f->control.effect_failures = 1;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", SHIP), DET_ERR_UNHANDLED);
    advance(f, DET_SECOND);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(start(f, "o-2"), 0);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(get(f, "o-2").state, CANCELLED);
    assert_int_equal(start(f, "o-3"), 0);
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-3", "x", NULL, NULL, NULL), 0);
}

#define STEP(state, event, outcome, count)                                          \
    "detent_transitions_total{machine=\"order\",state=\"" state "\",event=\"" event \
    "\",outcome=\"" outcome "\"} " count

static void assert_lived(struct det_metrics *metrics)
{
    assert_metric(metrics, STEP("PENDING", "start", "goto", "3"));
    assert_metric(metrics, STEP("PENDING", "PAY", "goto", "1"));
    assert_metric(metrics, STEP("CHARGING", "CHARGED", "goto", "1"));
    assert_metric(metrics, STEP("PENDING", "EXPIRE", "goto", "1"));
    assert_metric(metrics, STEP("PENDING", "stop", "stop", "1"));
    assert_metric(
        metrics, "detent_events_unhandled_total{machine=\"order\",state=\"PENDING\","
                 "event=\"SHIP\"} 1");
    /* One second, half an hour, nothing. */
    assert_metric(
        metrics, "detent_state_duration_seconds_sum{machine=\"order\",state=\"PENDING\"} 1801");
    assert_metric(
        metrics, "detent_state_duration_seconds_count{machine=\"order\",state=\"PENDING\"} 3");
    assert_metric(
        metrics, "detent_effect_attempts_total{machine=\"order\",effect=\"charge_card\","
                 "result=\"failed\"} 1");
    assert_metric(
        metrics, "detent_effect_attempts_total{machine=\"order\",effect=\"charge_card\","
                 "result=\"produced\"} 1");
    assert_metric(
        metrics, "detent_effect_duration_seconds_count{machine=\"order\","
                 "effect=\"charge_card\"} 2");
    assert_metric(metrics, "detent_timer_lateness_seconds_count{machine=\"order\"} 1");
    assert_metric(metrics, "detent_incidents_total{machine=\"order\",kind=\"effect_failed\"} 1");
}

static void a_life_of_orders_is_reported(void **state)
{
    (void)state;
    for (int is_known = 0; is_known < 2; is_known++) {
        struct scene scene;

        open_scene(&scene);
        if (is_known)
            det_monitor_add_machine(scene.monitor, scene.f->order);
        live(scene.f);
        assert_lived(scene.metrics);
        close_scene(&scene);
    }
}

static void forgetting_a_machine_loses_nothing(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene);
    det_monitor_add_machine(scene.monitor, scene.f->order);
    det_monitor_add_machine(scene.monitor, scene.f->order);
    assert_int_equal(start(scene.f, "o-1"), 0);
    det_monitor_forget(scene.monitor);
    assert_int_equal(start(scene.f, "o-2"), 0);
    det_monitor_add_machine(scene.monitor, scene.f->order);
    assert_int_equal(start(scene.f, "o-3"), 0);
    assert_metric(scene.metrics, STEP("PENDING", "start", "goto", "3"));
    close_scene(&scene);
}

static void commits_are_reported_with_their_errors(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_monitor *monitor;

    (void)state;
    assert_int_equal(det_monitor_open(metrics, NULL, NULL, &monitor), 0);
    det_monitor_commit(
        monitor,
        &(struct det_commit_figures){ .commits = 2, .events = 3, .took = DET_MILLISECOND });
    det_monitor_commit(
        monitor, &(struct det_commit_figures){ .commits = 1, .result = DET_ERR_NO_SPACE });
    assert_metric(metrics, "detent_journal_commit_duration_seconds_sum 0.001");
    assert_metric(metrics, "detent_journal_batch_events_sum 3");
    assert_metric(metrics, "detent_journal_batch_events_count 2");
    assert_metric(metrics, "detent_journal_commits_failed_total{error=\"NO_SPACE\"} 1");
    assert_metric(metrics, "detent_build_info{version=\"" DET_VERSION_TEXT "\"} 1");
    det_monitor_close(monitor);
    det_metrics_close(metrics);
}

static void report_task(
    struct det_monitor *monitor, enum det_task_event_kind kind, struct det_task_event event)
{
    event.kind = kind;
    snprintf(event.name, sizeof event.name, "beat");
    det_monitor_task(monitor, &event, true);
}

/* A task that is not in the file: "sleep-7" in the slot "batch". */
static void report_passing(
    struct det_monitor *monitor, enum det_task_event_kind kind, uint64_t id, bool is_lasting)
{
    struct det_task_event event = {
        .kind = kind, .id = id, .attempt = 2, .is_restart = true, .delay = DET_SECOND
    };
    bool is_slot = kind == DET_TASK_EVENT_SLOT_SUBMITTED || kind == DET_TASK_EVENT_SLOT_REJECTED;

    if (is_slot)
        snprintf(event.name, sizeof event.name, "batch");
    else
        snprintf(event.name, sizeof event.name, "sleep-%d", (int)id);
    det_monitor_task(monitor, &event, is_lasting);
}

static void submit_and_retry(struct det_monitor *monitor, uint64_t id)
{
    report_passing(monitor, DET_TASK_EVENT_SLOT_SUBMITTED, id, true);
    report_passing(monitor, DET_TASK_EVENT_ATTEMPT_STARTING, id, false);
    report_passing(monitor, DET_TASK_EVENT_BACKOFF_SCHEDULED, id, false);
}

static void submissions_are_counted_under_their_slot(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_monitor *monitor;
    char *text;

    (void)state;
    assert_int_equal(det_monitor_open(metrics, NULL, NULL, &monitor), 0);
    for (uint64_t id = 1; id <= 5000; id++) {
        submit_and_retry(monitor, id);
        if (id % 2)
            report_passing(monitor, DET_TASK_EVENT_TASK_FINISHED, id, false);
        else
            report_passing(monitor, DET_TASK_EVENT_SLOT_REJECTED, id, true);
        report_passing(monitor, DET_TASK_EVENT_TASK_REMOVED, id, false);
    }
    assert_metric(metrics, "detent_restarts_total{task=\"slot:batch\"} 5000");
    /* Without a slot, or with an unknown one, it counts as other. */
    report_passing(monitor, DET_TASK_EVENT_ATTEMPT_STARTING, 1, false);
    assert_metric(metrics, "detent_restarts_total{task=\"other\"} 1");
    report_passing(monitor, DET_TASK_EVENT_SLOT_REJECTED, 0, false);
    assert_metric(metrics, "detent_slot_rejected_total{slot=\"other\",reason=\"none\"} 1");
    text = scrape_as(metrics, DET_METRICS_TEXT);
    assert_null(strstr(text, "sleep-"));
    assert_null(strstr(text, "detent_backoff_seconds{"));
    free(text);
    /* More than are kept in mind. */
    for (uint64_t id = 1; id <= 4097; id++)
        submit_and_retry(monitor, id);
    assert_metric(metrics, "detent_restarts_total{task=\"slot:batch\"} 9096");
    assert_metric(metrics, "detent_restarts_total{task=\"other\"} 2");
    det_monitor_close(monitor);
    det_metrics_close(metrics);
}

static void a_task_that_is_removed_has_no_series(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_monitor *monitor;
    char *text;

    (void)state;
    assert_int_equal(det_monitor_open(metrics, NULL, NULL, &monitor), 0);
    report_task(
        monitor, DET_TASK_EVENT_ATTEMPT_STARTING,
        (struct det_task_event){ .attempt = 2, .is_restart = true });
    /* One that is still in the file may come back. */
    report_task(monitor, DET_TASK_EVENT_TASK_REMOVED, (struct det_task_event){ 0 });
    assert_metric(metrics, "detent_restarts_total{task=\"beat\"} 1");
    det_monitor_task(
        monitor, &(struct det_task_event){ .kind = DET_TASK_EVENT_TASK_REMOVED, .name = "beat" },
        false);
    text = scrape_as(metrics, DET_METRICS_TEXT);
    assert_null(strstr(text, "beat"));
    free(text);
    report_task(
        monitor, DET_TASK_EVENT_ATTEMPT_STARTING,
        (struct det_task_event){ .attempt = 2, .is_restart = true });
    assert_metric(metrics, "detent_restarts_total{task=\"beat\"} 1");
    det_monitor_close(monitor);
    det_metrics_close(metrics);
}

static void tasks_and_slots_are_reported(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_monitor *monitor;
    char *text;

    (void)state;
    assert_int_equal(det_monitor_open(metrics, NULL, NULL, &monitor), 0);
    report_task(monitor, DET_TASK_EVENT_ATTEMPT_STARTING, (struct det_task_event){ .attempt = 1 });
    text = scrape_as(metrics, DET_METRICS_TEXT);
    assert_null(strstr(text, "detent_restarts_total"));
    free(text);
    report_task(
        monitor, DET_TASK_EVENT_BACKOFF_SCHEDULED,
        (struct det_task_event){ .delay = 2 * DET_SECOND });
    assert_metric(metrics, "detent_backoff_seconds{task=\"beat\"} 2");
    report_task(
        monitor, DET_TASK_EVENT_ATTEMPT_STARTING,
        (struct det_task_event){ .attempt = 2, .is_restart = true });
    assert_metric(metrics, "detent_backoff_seconds{task=\"beat\"} 0");
    assert_metric(metrics, "detent_restarts_total{task=\"beat\"} 1");
    report_task(
        monitor, DET_TASK_EVENT_BACKOFF_SCHEDULED, (struct det_task_event){ .delay = DET_SECOND });
    report_task(monitor, DET_TASK_EVENT_TASK_FINISHED, (struct det_task_event){ 0 });
    assert_metric(metrics, "detent_backoff_seconds{task=\"beat\"} 0");
    report_task(monitor, DET_TASK_EVENT_SLOT_SUBMITTED, (struct det_task_event){ .count = 3 });
    assert_metric(metrics, "detent_slot_queue_depth{slot=\"beat\"} 3");
    report_task(
        monitor, DET_TASK_EVENT_SLOT_REJECTED,
        (struct det_task_event){ .count = 4, .rejection = DET_REJECTION_QUEUE_FULL });
    assert_metric(metrics, "detent_slot_queue_depth{slot=\"beat\"} 4");
    assert_metric(metrics, "detent_slot_rejected_total{slot=\"beat\",reason=\"queue_full\"} 1");
    report_task(monitor, DET_TASK_EVENT_GROUP_FAILED, (struct det_task_event){ .count = 9 });
    assert_metric(metrics, "detent_slot_queue_depth{slot=\"beat\"} 4");
    det_monitor_close(monitor);
    det_metrics_close(metrics);
}

/* One whose places would be too many: its steps are looked up, all else is cached. */
static void a_machine_of_many_states_is_reported_as_well(void **state)
{
    static struct det_state_def states[200];
    static struct det_event_def events[100];
    struct det_machine machine = {
        .name = "large", .states = states, .state_count = 200, .events = events, .event_count = 100
    };
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_monitor *monitor;

    (void)state;
    states[199].name = "last";
    events[99].name = "end";
    assert_int_equal(det_monitor_open(metrics, NULL, NULL, &monitor), 0);
    det_monitor_add_machine(monitor, &machine);
    for (int i = 0; i < 2; i++)
        det_monitor_note(
            monitor, &(struct det_note){ .machine = &machine,
                                         .from = 199,
                                         .to = 199,
                                         .event = 99,
                                         .outcome = DET_OUTCOME_GOTO,
                                         .since = 1,
                                         .at = 1 + DET_SECOND });
    assert_metric(
        metrics, "detent_transitions_total{machine=\"large\",state=\"last\",event=\"end\","
                 "outcome=\"goto\"} 2");
    assert_metric(metrics, "detent_state_duration_seconds_sum{machine=\"large\",state=\"last\"} 2");
    det_monitor_close(monitor);
    det_metrics_close(metrics);
}

static int know_with_failures(struct det_test_memory *memory, void *argument)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_monitor *monitor = NULL;
    int r = det_monitor_open(metrics, NULL, &memory->allocator, &monitor);

    if (r == 0) {
        det_monitor_add_machine(monitor, argument);
        det_monitor_timeout(monitor, argument, 1);
        assert_metric(metrics, "detent_timer_lateness_seconds_count{machine=\"order\"} 1");
    }
    det_monitor_close(monitor);
    det_metrics_close(metrics);
    return r;
}

static void allocation_failures_lose_no_counts(void **state)
{
    struct det_machine *order = order_machine(true);

    (void)state;
    det_test_each_failure(know_with_failures, order);
    det_machine_close(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_of_orders_is_reported),
        cmocka_unit_test(forgetting_a_machine_loses_nothing),
        cmocka_unit_test(commits_are_reported_with_their_errors),
        cmocka_unit_test(tasks_and_slots_are_reported),
        cmocka_unit_test(submissions_are_counted_under_their_slot),
        cmocka_unit_test(a_task_that_is_removed_has_no_series),
        cmocka_unit_test(a_machine_of_many_states_is_reported_as_well),
        cmocka_unit_test(allocation_failures_lose_no_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
