/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* open_test.c - options, observers and readers of a runtime. */
#include "runtime/runtime_test.h"

static void keeps(struct fixture *f)
{
    struct det_instance instance;
    struct order_data data;

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(det_runtime_get(f->runtime, f->order, "o-1", &instance, &data, NULL), 0);
    assert_int_equal(data.cents, 1999);
    assert_string_equal(data.card, "4242");
    settle(f);
    assert_int_equal(f->control.data.cents, 1999);
    assert_int_equal(f->control.event.as.pay.cents, 1999);
}

static void data_is_computed_from_the_event_and_seen_by_the_effect(void **state)
{
    (void)state;
    in_fixture(keeps);
}

static int stop_at_two(void *context, const struct det_event_record *row)
{
    (void)context;
    return row->sequence == 2 ? 42 : 0;
}

static void walks(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    for (int i = 0; i < 70; i++)
        assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(events_after(f, "o-1", 0)->count, 64);
    assert_int_equal(events_after(f, "o-1", 0)->rows[0].sequence, 7);
    assert_int_equal(events_after(f, "o-1", 68)->count, 2);
    assert_int_equal(events_after(f, "o-1", 70)->count, 0);
    assert_int_equal(get(f, "o-1").history_count, 16);
    assert_int_equal(get(f, "o-1").transition_count, 70);
    assert_int_equal(start(f, "o-2"), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_kind(f, "o-2", PING), 0);
    assert_int_equal(
        det_runtime_events(f->runtime, f->order, "o-2", 0, stop_at_two, NULL, NULL), 42);
    assert_int_equal(
        det_runtime_events(f->runtime, f->order, "none", 0, stop_at_two, NULL, NULL),
        DET_ERR_NOT_FOUND);
}

static void events_are_walked_oldest_first_and_the_walk_can_be_ended(void **state)
{
    (void)state;
    in_fixture(walks);
}

static int count_instances(void *context, const struct det_listed_instance *row)
{
    ((unsigned *)context)[row->state]++;
    return 0;
}

static void lists(struct fixture *f)
{
    unsigned all[5] = { 0 }, some[5] = { 0 };

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(start(f, "o-3"), 0);
    assert_int_equal(send_kind(f, "o-3", CANCEL), 0);
    assert_int_equal(
        det_runtime_instances(f->runtime, f->order, -1, count_instances, all, NULL), 0);
    assert_int_equal(all[PENDING], 2);
    assert_int_equal(all[CANCELLED], 1);
    assert_int_equal(
        det_runtime_instances(f->runtime, f->order, CANCELLED, count_instances, some, NULL), 0);
    assert_int_equal(some[PENDING], 0);
    assert_int_equal(some[CANCELLED], 1);
}

static void instances_are_listed_by_state(void **state)
{
    (void)state;
    in_fixture(lists);
}

static void observed(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .observe = order_observe });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(f->control.notes, 1);
    assert_int_equal(f->control.note.event, UINT16_MAX);
    assert_int_equal(f->control.note.outcome, DET_OUTCOME_GOTO);
    assert_int_equal(f->control.note.visit, 1);
    assert_null(f->control.note.event_value);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(f->control.notes, 2);
    assert_int_equal(f->control.note.sequence, 1);
    assert_ptr_equal(f->control.note.machine, f->order);
    assert_string_equal(f->control.note.instance, "o-1");
    assert_int_equal(send_kind(f, "o-1", SHIP), DET_ERR_UNHANDLED);
    assert_int_equal(f->control.notes, 2);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(f->control.notes, 4);
    assert_key(f->control.cause, "order/o-1/2/0");
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-1", "x", NULL, NULL, NULL), 0);
    assert_int_equal(f->control.note.event, UINT16_MAX);
    assert_int_equal(f->control.note.outcome, DET_OUTCOME_STOP);
    fixture_close(f);
}

static void observer_is_called_for_every_commit_only(void **state)
{
    observed(state);
}

struct inner {
    struct fixture *f;
    int to_self, to_other, self_get;
    struct det_sent sent;
};

static void send_inside(void *context)
{
    struct inner *inner = context;
    struct order_event ping = { .kind = PING };
    struct det_instance instance;

    inner->to_self = det_runtime_send(
        inner->f->runtime, inner->f->order, "o-1", &ping, NULL, &inner->sent, NULL);
    inner->to_other = det_runtime_send(
        inner->f->runtime, inner->f->order, "o-2", &ping, NULL, &inner->sent, NULL);
    inner->self_get =
        det_runtime_get(inner->f->runtime, inner->f->order, "o-1", &instance, NULL, NULL);
}

static void busy(struct fixture *f)
{
    struct inner inner = { .f = f };

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    f->control.effect_result = DET_EFFECT_DONE;
    f->control.in_guard = send_inside;
    f->control.context = &inner;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(inner.to_self, DET_ERR_BUSY);
    assert_int_equal(inner.to_other, 0);
    assert_int_equal(inner.self_get, 0);
    f->control.in_guard = NULL;
}

static void user_code_cannot_send_to_its_own_instance_but_may_read_it(void **state)
{
    (void)state;
    in_fixture(busy);
}

static void options(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(f->sim);
    struct det_runtime *second;
    struct det_runtime_options bad[] = {
        { .world = NULL },
        { .world = world, .shards = 3 },
        { .world = world, .shards = 2048 },
        { .world = world, .history_kept = DET_HISTORY_MAX + 1 },
        { .world = world, .pool_threads = 100000 },
        { .world = world, .hook_deadline = -1 },
        { .world = world, .effects.backoff_max = -1 },
        { .world = world, .effects.jitter_percent = 5000 },
    };

    (void)state;
    assert_int_equal(
        det_runtime_open(
            f->store, &(struct det_runtime_options){ .world = world }, &second, &f->error),
        DET_ERR_BUSY);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        f->error.code = 0;
        assert_int_equal(det_runtime_open(f->store, &bad[i], &second, &f->error), DET_ERR_INVALID);
        assert_int_equal(f->error.code, DET_ERR_INVALID);
    }
    fixture_close(f);
}

static void wrong_options_and_a_second_runtime_are_refused(void **state)
{
    options(state);
}

static void a_runtime_needs_no_options(void **state)
{
    struct det_machine *order = order_machine(true);
    struct det_runtime *runtime;
    struct det_store *store;
    struct order_event touch = { .kind = JUNK };

    (void)state;
    assert_int_equal(det_store_open("memory:", &store, NULL), 0);
    assert_int_equal(det_runtime_open(store, NULL, &runtime, NULL), 0);
    assert_int_equal(
        det_runtime_send(runtime, order, "o", &touch, NULL, NULL, NULL), DET_ERR_NOT_FOUND);
    det_runtime_close(runtime);
    det_store_close(store);
    det_machine_close(order);
}

static void a_short_deadline_of_hooks_is_kept_too(void **state)
{
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .hook_deadline = 10 * DET_MILLISECOND });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    f->control.hook_takes = 10 * DET_MILLISECOND + 1;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_TIMEOUT);
    f->control.hook_takes = 10 * DET_MILLISECOND;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    fixture_close(f);
}

static void same_name(struct fixture *f)
{
    struct det_machine *other = order_machine(true);

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(det_runtime_serve(f->runtime, other, &f->error), DET_ERR_INVALID);
    assert_int_equal(f->error.code, DET_ERR_INVALID);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    det_machine_close(other);
}

static void a_runtime_serves_one_definition_of_a_name(void **state)
{
    (void)state;
    in_fixture(same_name);
}

static void other_shape(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_machine *other;
    struct det_machine_builder *b;

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(det_machine_builder_open("order", NULL, &b), 0);
    order_names(b, true);
    order_rows(b);
    det_machine_builder_data(b, &order_data_record);
    det_machine_builder_version(b, 2);
    other = built(b);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(f->runtime, other, &f->error), DET_ERR_VERSION);
    assert_int_equal(f->error.code, DET_ERR_VERSION);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(other);
    fixture_close(f);
}

static void stored_instances_of_another_version_are_refused(void **state)
{
    other_shape(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_is_computed_from_the_event_and_seen_by_the_effect),
        cmocka_unit_test(events_are_walked_oldest_first_and_the_walk_can_be_ended),
        cmocka_unit_test(instances_are_listed_by_state),
        cmocka_unit_test(observer_is_called_for_every_commit_only),
        cmocka_unit_test(user_code_cannot_send_to_its_own_instance_but_may_read_it),
        cmocka_unit_test(wrong_options_and_a_second_runtime_are_refused),
        cmocka_unit_test(a_runtime_needs_no_options),
        cmocka_unit_test(a_short_deadline_of_hooks_is_kept_too),
        cmocka_unit_test(a_runtime_serves_one_definition_of_a_name),
        cmocka_unit_test(stored_instances_of_another_version_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
