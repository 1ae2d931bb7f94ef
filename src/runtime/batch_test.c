/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* batch_test.c - turns that share a call of a store that blocks: timers that are due together,
 * effects that end together, and what becomes of them when one, or the call, fails. */
#include "runtime/faulty_test.h"

#define MANY 300

static const char *name_of(unsigned i)
{
    static char name[16];

    snprintf(name, sizeof name, "o-%u", i);
    return name;
}

static void start_many(struct fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(start(f, name_of(i)), 0);
}

/* Every one fired once: its one event is the timeout. */
static void assert_all_expired(struct fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct det_instance at = get(f, name_of(i));

        assert_int_equal(at.state, CANCELLED);
        assert_int_equal(at.sequence, 1);
    }
    assert_int_equal(counts(f).timeouts_fired, count);
}

static void in_slow_store(void (*test)(struct fixture *f, struct faulty *faulty))
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    faulty_wrap(&faulty, f, false);
    test(f, &faulty);
    fixture_close(f);
}

static void fire_together(struct fixture *f, struct faulty *faulty)
{
    start_many(f, MANY);
    faulty->calls = 0;
    advance(f, 30 * DET_MINUTE);
    assert_all_expired(f, MANY);
    assert_int_equal(faulty->most, 256);
    assert_int_equal(faulty->calls, 2);
}

static void timers_that_are_due_together_share_commits(void **unused)
{
    (void)unused;
    in_slow_store(fire_together);
}

static void fire_with_faults(struct fixture *f, struct faulty *faulty)
{
    static const struct {
        enum fault fault;
        int code;
        unsigned incidents;
    } cases[] = {
        { FAULT_BEFORE, DET_ERR_NO_SPACE, 1 }, { FAULT_BEFORE, DET_ERR_IO, 1 },
        { FAULT_AFTER, DET_ERR_IO, 0 },        { FAULT_BEFORE, DET_ERR_EARLY, 0 },
        { FAULT_BEFORE, DET_ERR_CONFLICT, 0 },
    };

    for (unsigned i = 0; i < 5; i++) {
        unsigned before = f->control.incidents;

        for (unsigned n = 0; n < 10; n++)
            assert_int_equal(start(f, name_of(10 * i + n)), 0);
        faulty_set(faulty, cases[i].fault, cases[i].code, 4);
        faulty->most = 0;
        advance(f, 30 * DET_MINUTE);
        assert_int_equal(faulty->most, 10);
        advance(f, DET_SECOND);
        assert_all_expired(f, 10 * (i + 1));
        assert_int_equal(faulty->times, 0);
        assert_int_equal(f->control.incidents - before, cases[i].incidents);
    }
    assert_int_equal(counts(f).conflicts, 1);
}

static void each_turn_of_a_batch_has_its_own_result(void **unused)
{
    (void)unused;
    in_slow_store(fire_with_faults);
}

static void fail_the_call(struct fixture *f, struct faulty *faulty, enum fault fault)
{
    start_many(f, 10);
    faulty_set(faulty, fault, DET_ERR_IO, 4);
    faulty->is_of_call = true;
    faulty->most = 0;
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(faulty->most, 10);
    advance(f, DET_MINUTE);
    assert_all_expired(f, 10);
    /* The sends from the fault on were not committed, and were reported so. */
    assert_int_equal(
        f->control.incident_counts[DET_INCIDENT_TIMEOUT_REJECTED], fault == FAULT_AFTER ? 5 : 6);
}

static void fail_before(struct fixture *f, struct faulty *faulty)
{
    fail_the_call(f, faulty, FAULT_BEFORE);
}

static void fail_after(struct fixture *f, struct faulty *faulty)
{
    fail_the_call(f, faulty, FAULT_AFTER);
}

static void failed_batch_is_resolved_for_each_of_its_turns(void **unused)
{
    (void)unused;
    in_slow_store(fail_before);
    in_slow_store(fail_after);
}

/* The effects wait for each other, so that they end at the same time. */
static void in_step(void *context)
{
    wait_in(det_sim_world(((struct fixture *)context)->sim), DET_SECOND);
}

static void end_together(struct fixture *f, struct faulty *faulty)
{
    fixture_reopen(f, (struct det_runtime_options){ .pool_threads = 8 });
    f->control.in_effect = in_step;
    f->control.context = f;
    start_many(f, 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(send_kind(f, name_of(i), PAY), 0);
    faulty->most = 0;
    advance(f, 2 * DET_SECOND);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(get(f, name_of(i)).state, PAID);
    assert_true(faulty->most >= 4);
    assert_int_equal(counts(f).effects_done, 8);
}

static void effects_that_end_together_share_commits(void **unused)
{
    (void)unused;
    in_slow_store(end_together);
}

static void fire_named(struct fixture *f, struct faulty *faulty)
{
    (void)faulty;
    assert_int_equal(start(f, "a"), 0);
    assert_int_equal(send_kind(f, "a", PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, "a", SHIP), 0);
    advance(f, DET_HOUR);
    assert_int_equal(get(f, "a").sequence, 4);
    assert_int_equal(counts(f).timeouts_fired, 1);
}

static void a_named_timer_fires_in_a_batch_with_its_payload(void **unused)
{
    (void)unused;
    in_slow_store(fire_named);
}

struct walk {
    struct fixture *f;
    char trace[200];
};

/* A reported commit is already visible. */
static void observe_and_walk(void *user, const struct det_note *note)
{
    struct walk *walk = user;
    struct det_instance at;

    if (!note->is_timeout)
        return;
    assert_int_equal(
        det_runtime_get(walk->f->runtime, walk->f->order, note->instance, &at, NULL, NULL), 0);
    assert_int_equal(at.state, CANCELLED);
    snprintf(
        walk->trace + strlen(walk->trace), sizeof walk->trace - strlen(walk->trace), "%s ",
        note->instance);
}

static void observer_is_called_for_each_turn_of_a_batch(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct walk walk = { .f = f };
    struct faulty faulty;

    (void)unused;
    faulty_wrap(&faulty, f, false);
    det_runtime_close(f->runtime);
    assert_int_equal(
        det_runtime_open(
            f->store,
            &(struct det_runtime_options){ .world = det_sim_world(f->sim),
                                           .user = &f->control,
                                           .observer = &walk,
                                           .observe = observe_and_walk },
            &f->runtime, &f->error),
        0);
    start_many(f, 3);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(strlen(walk.trace), 12);
    assert_all_expired(f, 3);
    fixture_close(f);
}

/* The first one to expire is in the batch already when the next one's hook sends to it. */
static char first_expired[16];

static int send_to_first(const struct det_move *move, const void *data, const void *event)
{
    struct order_control *control = move->user;

    (void)data;
    assert_non_null(event);
    if (!first_expired[0])
        snprintf(first_expired, sizeof first_expired, "%s", move->instance);
    else if (++control->hooks == 1)
        assert_int_equal(send_kind(control->context, first_expired, JUNK), 0);
    return 0;
}

static void send_within(struct fixture *f, struct faulty *faulty)
{
    (void)faulty;
    first_expired[0] = 0;
    assert_int_equal(det_machine_bind_hook(f->order, "leave", send_to_first), 0);
    f->control.context = f;
    start_many(f, 20);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(f->control.hooks, 19);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_TIMEOUT_REJECTED], 0);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_DEAD], 1);
    for (unsigned i = 0; i < 20; i++) {
        struct det_instance at = get(f, name_of(i));

        assert_int_equal(at.state, CANCELLED);
        assert_int_equal(at.sequence, strcmp(name_of(i), first_expired) == 0 ? 2 : 1);
    }
    assert_int_equal(counts(f).timeouts_fired, 20);
}

static void a_hook_in_a_batch_may_send_to_another_one_of_it(void **unused)
{
    (void)unused;
    in_slow_store(send_within);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_that_are_due_together_share_commits),
        cmocka_unit_test(each_turn_of_a_batch_has_its_own_result),
        cmocka_unit_test(failed_batch_is_resolved_for_each_of_its_turns),
        cmocka_unit_test(effects_that_end_together_share_commits),
        cmocka_unit_test(a_named_timer_fires_in_a_batch_with_its_payload),
        cmocka_unit_test(observer_is_called_for_each_turn_of_a_batch),
        cmocka_unit_test(a_hook_in_a_batch_may_send_to_another_one_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
