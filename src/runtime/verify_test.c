/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* verify_test.c - an instance equals the replay of its events; a store that returns other events is
 * reported. */
#include <detent/driver/store.h>

#include "runtime/runtime_test.h"

/* Changes that the store makes to its answers. */
static struct {
    const struct det_store_ops *ops; /* the true ones */
    uint64_t sequence;               /* of the event that it changes; 0: none */
    uint16_t to;
    int snapshot_error, start_error;
    bool is_snapshot_moved, is_start_moved;
    int (*visit)(void *context, const struct det_store_event *row);
    void *context;
} lie;

static int visit_lie(void *context, const struct det_store_event *row)
{
    struct det_store_event changed = *row;

    (void)context;
    if (row->sequence == lie.sequence)
        changed.to = lie.to;
    return lie.visit(lie.context, &changed);
}

static int lying_events(
    struct det_store *store, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    lie.visit = visit;
    lie.context = context;
    return lie.ops->events(store, instance, after, visit_lie, NULL);
}

static int lying_snapshot(
    struct det_store *store, struct det_store_instance *instance, struct det_store_snapshot *ret)
{
    int r = lie.ops->snapshot(store, instance, ret);

    if (r == 0 && lie.is_snapshot_moved)
        ret->loaded.head.state = CANCELLED;
    return lie.snapshot_error < 0 ? lie.snapshot_error : r;
}

static int lying_start(
    struct det_store *store, struct det_store_instance *instance, struct det_store_start *ret)
{
    int r = lie.ops->start(store, instance, ret);

    if (r == 0 && lie.is_start_moved)
        ret->state = CANCELLED;
    return lie.start_error < 0 ? lie.start_error : r;
}

/* The drifts of an instance. */
struct drifts {
    size_t count;
    struct {
        uint64_t sequence;
        char text[200], recorded[20], derived[20];
    } rows[8];
    int answer; /* of the visitor */
};

static int add_drift(void *context, const struct det_drift *drift)
{
    struct drifts *all = context;
    size_t i = all->count++;

    assert_true(i < sizeof all->rows / sizeof *all->rows);
    all->rows[i].sequence = drift->sequence;
    (void)snprintf(all->rows[i].text, sizeof all->rows[i].text, "%s", drift->text);
    (void)snprintf(
        all->rows[i].recorded, sizeof all->rows[i].recorded, "%s",
        drift->recorded ? drift->recorded : "");
    (void)snprintf(
        all->rows[i].derived, sizeof all->rows[i].derived, "%s",
        drift->derived ? drift->derived : "");
    return all->answer;
}

static struct fixture *open_lying(struct det_runtime_options options)
{
    static struct det_store_ops ops;
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    memset(&lie, 0, sizeof lie);
    lie.ops = f->store->ops;
    ops = *f->store->ops;
    ops.events = lying_events;
    ops.snapshot = lying_snapshot;
    ops.start = lying_start;
    f->store->ops = &ops;
    fixture_reopen(f, options);
    return f;
}

static struct drifts verify(struct fixture *f, const char *id, uint64_t steps)
{
    struct drifts all = { 0 };
    uint64_t found = 99;

    assert_int_equal(
        det_runtime_verify(f->runtime, f->order, id, add_drift, &all, &found, NULL), 0);
    assert_int_equal(found, steps);
    return all;
}

static void start_and_move(struct fixture *f, const char *id)
{
    assert_int_equal(start(f, id), 0);
    assert_int_equal(send_kind(f, id, TOUCH), 0);
    assert_int_equal(send_kind(f, id, PING), 0);
    assert_int_equal(send_kind(f, id, TOUCH), 0);
}

static void verify_accepts_recorded_events(void **state)
{
    struct fixture *f = open_lying((struct det_runtime_options){ 0 });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(verify(f, "o-1", 0).count, 0);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_true(get(f, "o-1").sequence >= 4);
    assert_int_equal(verify(f, "o-1", get(f, "o-1").sequence).count, 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "o-2", "enough", NULL, NULL, NULL), 0);
    assert_int_equal(verify(f, "o-2", 1).count, 0);
    fixture_close(f);
}

static void verify_of_a_pruned_instance_starts_at_the_snapshot(void **state)
{
    struct fixture *f = open_lying((struct det_runtime_options){ 0 });

    (void)state;
    start_and_move(f, "o-1");
    assert_int_equal(det_runtime_snapshot(f->runtime, f->order, "o-1", NULL), 0);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(verify(f, "o-1", 4).count, 0);
    assert_int_equal(det_runtime_prune(f->runtime, f->order, "o-1", 3, NULL, NULL), 0);
    assert_int_equal(verify(f, "o-1", 1).count, 0);
    lie.is_snapshot_moved = true;
    assert_int_equal(verify(f, "o-1", 1).count, 1);
    assert_int_equal(det_runtime_snapshot(f->runtime, f->order, "o-1", NULL), 0);
    assert_int_equal(det_runtime_prune(f->runtime, f->order, "o-1", 4, NULL, NULL), 0);
    assert_int_equal(verify(f, "o-1", 0).count, 1);
    lie.is_snapshot_moved = false;
    assert_int_equal(verify(f, "o-1", 0).count, 0);
    fixture_close(f);
}

static void another_state_is_reported_with_its_sequence(void **state)
{
    struct fixture *f = open_lying((struct det_runtime_options){ 0 });
    struct drifts found;

    (void)state;
    start_and_move(f, "o-1");
    lie.sequence = 1;
    lie.to = CANCELLED;
    found = verify(f, "o-1", 3);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.rows[0].sequence, 1);
    assert_string_equal(found.rows[0].recorded, f->order->states[CANCELLED].name);
    assert_string_equal(found.rows[0].derived, f->order->states[PENDING].name);
    assert_int_equal(found.rows[1].sequence, 2);
    assert_non_null(strstr(found.rows[1].text, "the one before it led to"));
    lie.sequence = 3;
    found = verify(f, "o-1", 3);
    assert_int_equal(found.count, 2);
    assert_non_null(strstr(found.rows[1].text, "but its last event led to"));
    fixture_close(f);
}

static void a_snapshot_that_differs_from_its_events_is_reported(void **state)
{
    struct fixture *f = open_lying((struct det_runtime_options){ 0 });
    struct drifts found;

    (void)state;
    start_and_move(f, "o-1");
    assert_int_equal(det_runtime_snapshot(f->runtime, f->order, "o-1", NULL), 0);
    lie.is_snapshot_moved = true;
    found = verify(f, "o-1", 3);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.rows[0].sequence, 3);
    assert_non_null(strstr(found.rows[0].text, "snapshot"));
    lie.is_snapshot_moved = false;
    lie.snapshot_error = DET_ERR_CORRUPT;
    found = verify(f, "o-1", 3);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.rows[0].text, "the snapshot is damaged");
    fixture_close(f);
}

static void different_start_state_is_reported(void **state)
{
    struct fixture *f = open_lying((struct det_runtime_options){ 0 });
    struct drifts found;

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    lie.is_start_moved = true;
    found = verify(f, "o-1", 0);
    assert_int_equal(found.count, 1);
    assert_non_null(strstr(found.rows[0].text, "but it began in"));
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    found = verify(f, "o-1", 1);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.rows[0].sequence, 1);
    lie.is_start_moved = false;
    lie.start_error = DET_ERR_CORRUPT;
    found = verify(f, "o-1", 1);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.rows[0].text, "the start is damaged");
    /* Not kept is not wrong. */
    lie.start_error = DET_ERR_NOT_FOUND;
    assert_int_equal(verify(f, "o-1", 1).count, 0);
    lie.start_error = DET_ERR_IO;
    assert_int_equal(
        det_runtime_verify(f->runtime, f->order, "o-1", add_drift, &found, NULL, NULL), DET_ERR_IO);
    fixture_close(f);
}

static void errors_and_the_visitor_end_the_verification(void **state)
{
    struct fixture *f = open_lying((struct det_runtime_options){ 0 });
    struct drifts all = { .answer = 7 };

    (void)state;
    assert_int_equal(
        det_runtime_verify(f->runtime, f->order, "none", add_drift, &all, NULL, NULL),
        DET_ERR_NOT_FOUND);
    start_and_move(f, "o-1");
    lie.snapshot_error = DET_ERR_IO;
    assert_int_equal(
        det_runtime_verify(f->runtime, f->order, "o-1", add_drift, &all, NULL, NULL), DET_ERR_IO);
    lie.snapshot_error = 0;
    lie.sequence = 2;
    lie.to = CANCELLED;
    assert_int_equal(
        det_runtime_verify(f->runtime, f->order, "o-1", add_drift, &all, NULL, NULL), 7);
    assert_int_equal(all.count, 1);
    /* The claim is gone. */
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    fixture_close(f);
}

static int verify_poorly(struct det_test_memory *memory, void *argument)
{
    struct order_control control = { 0 };
    struct drifts all = { 0 };
    struct poor poor;
    int r;

    r = poor_open(&poor, memory, &control);
    if (r == 0)
        r = det_runtime_start(poor.runtime, argument, "o-1", NULL, NULL, NULL, NULL);
    if (r == 0)
        r = det_runtime_verify(poor.runtime, argument, "o-1", add_drift, &all, NULL, NULL);
    assert_int_equal(all.count, 0);
    poor_close(&poor);
    return r;
}

static void without_memory_nothing_is_reported(void **state)
{
    struct det_machine *machine = order_machine(true);

    (void)state;
    det_test_each_failure(verify_poorly, machine);
    det_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_accepts_recorded_events),
        cmocka_unit_test(verify_of_a_pruned_instance_starts_at_the_snapshot),
        cmocka_unit_test(another_state_is_reported_with_its_sequence),
        cmocka_unit_test(a_snapshot_that_differs_from_its_events_is_reported),
        cmocka_unit_test(different_start_state_is_reported),
        cmocka_unit_test(errors_and_the_visitor_end_the_verification),
        cmocka_unit_test(without_memory_nothing_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
