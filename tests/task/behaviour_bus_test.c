/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_bus_test.c - those who watch: nobody loses an event without being told, and nobody who
 * is slow or fails is noticed by the others. */
#include "task/behaviour_test.h"

#define WATCHED_MAX 4096

/* A subscriber: what it saw, and how it misbehaves. */
struct watcher {
    struct lab *lab;
    struct det_subscription *subscription;
    det_time nap;        /* of each call */
    unsigned fails;      /* so many calls answer an error */
    bool fails_at_notes; /* also at diagnostics */
    struct {
        uint64_t sequence, count;
        enum det_task_event_kind kind;
        bool is_lag;
    } seen[WATCHED_MAX];
    size_t count;
    unsigned closes;
};

static bool is_diagnostic(enum det_task_event_kind kind)
{
    return kind == DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED ||
           kind == DET_TASK_EVENT_SUBSCRIBER_FAILED || kind == DET_TASK_EVENT_RUNTIME_FAILURE;
}

static int watch(void *user, const struct det_task_event *event)
{
    struct watcher *watcher = user;

    if (watcher->count < WATCHED_MAX) {
        watcher->seen[watcher->count].sequence = event->sequence;
        watcher->seen[watcher->count].count = event->count;
        watcher->seen[watcher->count].kind = event->kind;
        watcher->seen[watcher->count].is_lag = strstr(event->reason, "lagged") != NULL;
        watcher->count++;
    }
    if (watcher->nap > 0 && det_world_sleep(watcher->lab->world, watcher->nap) < 0)
        return DET_ERR_NO_MEMORY;
    if (watcher->fails > 0 && (watcher->fails_at_notes || !is_diagnostic(event->kind))) {
        watcher->fails--;
        return DET_ERR_IO;
    }
    return 0;
}

static void watch_closed(void *user)
{
    struct watcher *watcher = user;

    watcher->closes++;
}

static struct watcher *watcher_open(
    struct lab *lab, const char *name, enum det_delivery delivery, uint32_t capacity)
{
    struct watcher *watcher = calloc(1, sizeof *watcher);
    struct det_subscriber subscriber = { .name = name,
                                         .capacity = capacity,
                                         .delivery = delivery,
                                         .on_event = watch,
                                         .on_close = watch_closed };

    assert_non_null(watcher);
    watcher->lab = lab;
    subscriber.user = watcher;
    assert_int_equal(
        det_bus_subscribe(det_tasks_bus(lab->tasks), &subscriber, &watcher->subscription, NULL), 0);
    return watcher;
}

/* `count` tasks, one after the other, each of which is six events at least. */
static void make_events(struct lab *lab, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct script script = { .acts = "o", .kind = LAB_STEP };

        assert_int_equal(
            lab_run(lab, &script, "some", &lab_once).outcome, DET_TASK_OUTCOME_COMPLETED);
    }
    lab_settle(lab);
}

static void a_slow_reader_gets_the_count_of_lost_events_and_continues(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .bus_capacity = 4 });
    struct det_bus *bus = det_tasks_bus(lab->tasks);
    struct det_task_event event;
    uint64_t cursor = 0, lost = 0, read = 0, gone = 0, before = 0, skipped;

    (void)unused;
    assert_int_equal(det_bus_newest(bus), 0);
    assert_int_equal(det_bus_read(bus, &cursor, &event, &lost), 0);
    make_events(lab, 1);
    /* A cursor of 0 begins at the oldest one that is left: what came before it is no loss. */
    assert_int_equal(det_bus_read(bus, &cursor, &event, &lost), 1);
    assert_int_equal(lost, 0);
    before = skipped = event.sequence;
    make_events(lab, 3);
    while (det_bus_read(bus, &cursor, &event, &lost) == 1) {
        assert_int_equal(event.sequence, before + lost + 1);
        assert_int_equal(cursor, event.sequence);
        before = event.sequence;
        gone += lost;
        read++;
    }
    assert_int_equal(read, 4);
    assert_true(gone > 0);
    assert_int_equal(skipped + read + gone, det_bus_newest(bus));
    assert_int_equal(lab->event_count, det_bus_newest(bus));
    make_events(lab, 1);
    assert_int_equal(det_bus_read(bus, &cursor, &event, &lost), 1);
    assert_true(event.sequence > before);
    lab_close(lab);
}

static void capacities_are_checked_and_the_default_holds_a_thousand_events(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct det_subscriber subscriber = { .on_event = watch,
                                         .capacity = DET_SUBSCRIBER_CAPACITY_MAX + 1 };
    struct watcher *quiet;
    uint64_t before;

    (void)unused;
    assert_true(det_bus_subscribe(det_tasks_bus(lab->tasks), &subscriber, NULL, NULL) < 0);
    quiet = watcher_open(lab, NULL, DET_DELIVER_THREAD, 0);
    quiet->nap = 0;
    before = det_bus_newest(det_tasks_bus(lab->tasks));
    make_events(lab, 100);
    assert_int_equal(det_subscription_stop(quiet->subscription, DET_NEVER), 0);
    assert_int_equal(quiet->count, det_bus_newest(det_tasks_bus(lab->tasks)) - before);
    free(quiet);
    lab_close(lab);
}

static void every_subscriber_gets_every_event_in_order(void **unused)
{
    static const enum det_delivery kinds[] = { DET_DELIVER_THREAD, DET_DELIVER_LOOP,
                                               DET_DELIVER_LOSSLESS };
    struct lab *lab = lab_open(NULL);
    struct watcher *watchers[3];

    (void)unused;
    for (size_t i = 0; i < 3; i++)
        watchers[i] = watcher_open(lab, "w", kinds[i], 0);
    make_events(lab, 50);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(det_subscription_stop(watchers[i]->subscription, DET_NEVER), 0);
        assert_int_equal(watchers[i]->count, lab->event_count);
        for (size_t n = 0; n < watchers[i]->count; n++)
            assert_int_equal(watchers[i]->seen[n].sequence, lab->events[n].sequence);
        assert_int_equal(watchers[i]->closes, 1);
        free(watchers[i]);
    }
    lab_close(lab);
}

/* The sequence is of each bus, from 1 and without gaps; times are whole nanoseconds. */
static void sequences_have_no_gaps_and_times_do_not_saturate(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "fo" };
    struct det_policy policy = {
        .backoff = { .first = 100 * DET_DAY, .max = 200 * DET_DAY, .jitter = DET_JITTER_NONE },
    };

    (void)unused;
    assert_int_equal(lab_run(lab, &script, "one", &policy).outcome, DET_TASK_OUTCOME_COMPLETED);
    lab_settle(lab);
    for (size_t i = 0; i < lab->event_count; i++) {
        assert_int_equal(lab->events[i].sequence, i + 1);
        assert_true(i == 0 || lab->events[i].at >= lab->events[i - 1].at);
    }
    assert_int_equal(
        lab_event(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one", 0).delay, 100 * DET_DAY);
    assert_int_equal(script.begun[1] - script.begun[0], 100 * DET_DAY);
    lab_close(lab);
}

static void labels_are_stable(void **unused)
{
    static const char *const labels[] = {
#define DET_TASK_EVENT(name, label, about) label,
#include <detent/task_events.def>
    };

    (void)unused;
    for (unsigned i = 0; i < DET_TASK_EVENT_COUNT; i++)
        assert_string_equal(det_task_event_label((enum det_task_event_kind)i), labels[i]);
    assert_string_equal(
        det_task_event_label(DET_TASK_EVENT_ATTEMPT_TIMED_OUT), "attempt_timed_out");
    for (unsigned i = 0; i < DET_TASK_OUTCOME_COUNT; i++)
        for (unsigned n = 0; n < i; n++)
            assert_string_not_equal(
                det_task_outcome_label((enum det_task_outcome)i),
                det_task_outcome_label((enum det_task_outcome)n));
    for (unsigned i = 0; i < DET_REJECTION_COUNT; i++)
        for (unsigned n = 0; n < i; n++)
            assert_string_not_equal(
                det_rejection_label((enum det_rejection)i),
                det_rejection_label((enum det_rejection)n));
}

/* Instead of one event for each loss there is one for each time there is room again. */
static void a_burst_overflows_only_the_queue_of_one_subscriber(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct watcher *slow = watcher_open(lab, "slow", DET_DELIVER_THREAD, 1);
    struct watcher *other = watcher_open(lab, "other", DET_DELIVER_THREAD, 0);
    struct det_subscription_counts counts;
    uint64_t reported = 0;
    size_t notes;

    (void)unused;
    slow->nap = DET_SECOND;
    make_events(lab, 10);
    lab_advance(lab, DET_MINUTE);
    counts = det_subscription_counts(slow->subscription);
    assert_true(counts.dropped > 0);
    notes = lab_count(lab, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED, "slow");
    assert_in_range(notes, 1, counts.dropped);
    for (size_t i = 0; i < notes; i++)
        reported += lab_event(lab, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED, "slow", i).count;
    assert_in_range(reported, 1, counts.dropped);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED, NULL), notes);
    assert_int_equal(det_subscription_counts(other->subscription).dropped, 0);
    /* Diagnostics that get lost cause no further ones: it has come to rest. */
    lab_advance(lab, DET_HOUR);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED, NULL), notes);
    assert_int_equal(det_subscription_stop(slow->subscription, DET_NEVER), 0);
    assert_int_equal(det_subscription_stop(other->subscription, DET_NEVER), 0);
    assert_int_equal(other->count, lab->event_count);
    free(slow);
    free(other);
    lab_close(lab);
}

static void failing_subscriber_continues_and_affects_no_other(void **unused)
{
    static const enum det_delivery kinds[] = { DET_DELIVER_THREAD, DET_DELIVER_LOOP,
                                               DET_DELIVER_LOSSLESS };

    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        struct lab *lab = lab_open(NULL);
        struct watcher *bad = watcher_open(lab, "bad", kinds[i], 0);
        struct watcher *good = watcher_open(lab, "good", DET_DELIVER_THREAD, 0);

        bad->fails = 3;
        make_events(lab, 5);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_SUBSCRIBER_FAILED, "bad"), 3);
        assert_int_equal(det_subscription_counts(bad->subscription).failed, 3);
        assert_int_equal(det_subscription_stop(bad->subscription, DET_NEVER), 0);
        assert_int_equal(det_subscription_stop(good->subscription, DET_NEVER), 0);
        assert_int_equal(good->count, lab->event_count);
        assert_int_equal(bad->count, lab->event_count);
        for (size_t n = 0; n < good->count; n++)
            assert_int_equal(good->seen[n].sequence, n + 1);
        free(bad);
        free(good);
        lab_close(lab);
    }
}

static void a_subscriber_does_not_get_its_own_failures_without_end(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct watcher *bad = watcher_open(lab, "bad", DET_DELIVER_THREAD, 0);
    size_t plain = 0;

    (void)unused;
    bad->fails = UINT32_MAX;
    bad->fails_at_notes = true;
    make_events(lab, 3);
    for (size_t i = 0; i < lab->event_count; i++)
        plain += !is_diagnostic(lab->events[i].kind);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SUBSCRIBER_FAILED, "bad"), plain);
    assert_int_equal(det_subscription_stop(bad->subscription, DET_NEVER), 0);
    free(bad);
    lab_close(lab);
}

static void a_shutdown_delivers_queued_events_or_drops_them_at_the_deadline(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct watcher *patient = watcher_open(lab, "patient", DET_DELIVER_THREAD, 0);
    struct watcher *hasty = watcher_open(lab, "hasty", DET_DELIVER_THREAD, 0);
    det_time began;
    int r;

    (void)unused;
    patient->nap = hasty->nap = DET_SECOND;
    make_events(lab, 2);
    began = lab_now(lab);
    r = det_subscription_stop(hasty->subscription, began + 3 * DET_SECOND);
    assert_true(r == 0 || r == DET_ERR_TIMEOUT);
    assert_true(lab_now(lab) - began <= 4 * DET_SECOND);
    assert_true(hasty->count < lab->event_count);
    if (r == DET_ERR_TIMEOUT) {
        lab_advance(lab, DET_MINUTE);
        assert_true(hasty->count < lab->event_count);
        assert_int_equal(det_subscription_stop(hasty->subscription, DET_NEVER), 0);
    }
    assert_int_equal(hasty->closes, 1);
    assert_int_equal(det_subscription_stop(patient->subscription, DET_NEVER), 0);
    assert_int_equal(patient->count, lab->event_count);
    assert_int_equal(patient->closes, 1);
    free(hasty);
    free(patient);
    lab_close(lab);
}

static void a_shutdown_has_one_deadline_for_all_subscribers(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .subscriber_grace = 3 * DET_SECOND });
    struct watcher *watchers[4];
    det_time began;

    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        watchers[i] = watcher_open(lab, "slow", DET_DELIVER_THREAD, 0);
        watchers[i]->nap = DET_SECOND;
    }
    make_events(lab, 3);
    began = lab_now(lab);
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_true(lab_now(lab) - began <= 4 * DET_SECOND);
    /* What still ran was left behind, and ends by itself. */
    lab_advance(lab, DET_MINUTE);
    lab_close(lab);
    for (size_t i = 0; i < 4; i++)
        free(watchers[i]);
}

static void a_negative_grace_drops_queued_events(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .subscriber_grace = -1 });
    struct watcher *slow = watcher_open(lab, "slow", DET_DELIVER_THREAD, 0);
    det_time began;

    (void)unused;
    slow->nap = DET_SECOND;
    make_events(lab, 3);
    began = lab_now(lab);
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_true(lab_now(lab) - began <= DET_SECOND);
    lab_advance(lab, DET_MINUTE);
    assert_true(slow->count < 5);
    lab_close(lab);
    free(slow);
}

static void a_blocked_callback_delays_neither_shutdown_nor_run(void **unused)
{
    (void)unused;
    for (unsigned natural = 0; natural < 2; natural++) {
        struct lab *lab = lab_open(&(struct det_tasks_options){ .subscriber_grace = DET_SECOND });
        struct watcher *stuck = watcher_open(lab, "stuck", DET_DELIVER_THREAD, 0);
        det_time began = lab_now(lab);

        stuck->nap = DET_HOUR;
        make_events(lab, 1);
        assert_int_equal(
            natural ? det_tasks_run(lab->tasks, NULL) : det_tasks_shutdown(lab->tasks, NULL), 0);
        assert_in_range(lab_now(lab) - began, 0, 2 * DET_SECOND);
        assert_int_equal(stuck->count, 1);
        lab_advance(lab, 2 * DET_HOUR);
        lab_close(lab);
        free(stuck);
    }
}

/* The verdict is told, the subscribers drain, and only now the function that was stuck comes back:
 * the loop publishes while somebody else ends the bus. */
static void a_stuck_function_may_end_while_subscribers_drain(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct lab *lab = lab_open_seed(
            seed, &(struct det_tasks_options){ .grace = DET_SECOND, .subscriber_grace = DET_HOUR });
        struct watcher *slow = watcher_open(lab, "slow", DET_DELIVER_THREAD, 0);
        struct script stuck = { .acts = "r", .span = (det_time)(seed % 20) * DET_SECOND };

        slow->nap = DET_SECOND;
        slow->fails = 1000;
        det_waiter_close(lab_add(lab, &stuck, "stuck", &lab_once));
        lab_settle(lab);
        (void)det_tasks_shutdown(lab->tasks, NULL);
        assert_int_equal(
            lab_count(lab, DET_TASK_EVENT_ALL_STOPPED, NULL) +
                lab_count(lab, DET_TASK_EVENT_GRACE_EXCEEDED, NULL),
            1);
        lab_advance(lab, DET_MINUTE);
        for (size_t i = 0; i < lab->event_count; i++)
            assert_int_equal(lab->events[i].sequence, i + 1);
        assert_int_equal(slow->closes, 1);
        assert_int_equal(lab_end_of(lab, stuck.id).attempts, 1);
        lab_close(lab);
        free(slow);
    }
}

static void a_lagging_subscriber_gets_the_gap_and_the_events_after_it(void **unused)
{
    struct lab *lab =
        lab_open(&(struct det_tasks_options){ .bus_capacity = 4, .subscriber_grace = DET_DAY });
    struct watcher *slow = watcher_open(lab, "slow", DET_DELIVER_THREAD, 1024);
    uint64_t newest, lost = 0, delivered = 0;

    (void)unused;
    slow->nap = DET_SECOND;
    make_events(lab, 5);
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    newest = lab->events[lab->event_count - 1].sequence;
    for (size_t i = 0; i < slow->count; i++) {
        if (slow->seen[i].kind == DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED && slow->seen[i].is_lag)
            lost += slow->seen[i].count;
        else
            delivered++;
        assert_true(i == 0 || slow->seen[i].sequence > slow->seen[i - 1].sequence);
    }
    assert_true(lost > 0);
    assert_int_equal(lost + delivered, newest);
    assert_int_equal(slow->seen[slow->count - 1].sequence, newest);
    lab_close(lab);
    free(slow);
}

/* There is no second view of who is alive that could be stale: the registry is asked. */
static void the_status_view_is_empty_after_many_short_tasks(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .bus_capacity = 1 });
    struct script *scripts = calloc(300, sizeof *scripts);
    struct det_tasks_counts counts;
    char name[16];

    (void)unused;
    assert_non_null(scripts);
    for (unsigned i = 0; i < 300; i++) {
        scripts[i] = (struct script){ .acts = "o", .kind = i % 2 ? LAB_STEP : LAB_FUNCTION };
        snprintf(name, sizeof name, "n%u", i);
        det_waiter_close(lab_add(lab, &scripts[i], name, &lab_once));
    }
    lab_settle(lab);
    counts = det_tasks_counts(lab->tasks);
    assert_int_equal(counts.registered + counts.queued + counts.running + counts.waiting, 0);
    assert_int_equal(counts.added, 300);
    assert_int_equal(counts.finished, 300);
    free(scripts);
    lab_close(lab);
}

static void a_late_removal_of_an_old_id_does_not_affect_the_new_run(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script old = { .acts = "o" }, new = { .acts = "h" };
    struct det_waiter *waiter;

    (void)unused;
    (void)lab_run(lab, &old, "same", &lab_once);
    waiter = lab_add(lab, &new, "same", &lab_once);
    lab_settle(lab);
    assert_int_equal(det_tasks_remove(lab->tasks, old.id), 0);
    assert_int_equal(det_tasks_stop(lab->tasks, old.id, DET_NEVER), 0);
    lab_settle(lab);
    assert_int_equal(det_tasks_find(lab->tasks, "same"), new.id);
    assert_string_equal(lab_inspect(lab, new.id).state, "running");
    det_waiter_close(waiter);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_reader_gets_the_count_of_lost_events_and_continues),
        cmocka_unit_test(capacities_are_checked_and_the_default_holds_a_thousand_events),
        cmocka_unit_test(every_subscriber_gets_every_event_in_order),
        cmocka_unit_test(sequences_have_no_gaps_and_times_do_not_saturate),
        cmocka_unit_test(labels_are_stable),
        cmocka_unit_test(a_burst_overflows_only_the_queue_of_one_subscriber),
        cmocka_unit_test(failing_subscriber_continues_and_affects_no_other),
        cmocka_unit_test(a_subscriber_does_not_get_its_own_failures_without_end),
        cmocka_unit_test(a_shutdown_delivers_queued_events_or_drops_them_at_the_deadline),
        cmocka_unit_test(a_shutdown_has_one_deadline_for_all_subscribers),
        cmocka_unit_test(a_negative_grace_drops_queued_events),
        cmocka_unit_test(a_blocked_callback_delays_neither_shutdown_nor_run),
        cmocka_unit_test(a_stuck_function_may_end_while_subscribers_drain),
        cmocka_unit_test(a_lagging_subscriber_gets_the_gap_and_the_events_after_it),
        cmocka_unit_test(the_status_view_is_empty_after_many_short_tasks),
        cmocka_unit_test(a_late_removal_of_an_old_id_does_not_affect_the_new_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
