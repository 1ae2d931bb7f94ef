/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* meter_test.c - the reports to a meter: commits, attempts, lateness, unhandled events; and the
 * time in a state. */
#include "runtime/faulty_test.h"

/* The last report of each kind, and the number of reports. */
struct figures {
    unsigned notes, commits, attempts, timeouts, unhandled;
    struct det_note note;
    det_time since[JUNK + 1]; /* of the last note of an event */
    struct det_commit_figures commit;
    struct det_attempt_figures attempt;
    char key[64], instance[64];
    det_time late;
    unsigned state, event;
    bool wants_trace;
};

static void receive_note(void *observer, const struct det_note *note)
{
    struct figures *figures = observer;

    figures->notes++;
    figures->note = *note;
    if (note->event <= JUNK)
        figures->since[note->event] = note->since;
}

static void receive_commit(void *observer, const struct det_commit_figures *commit)
{
    struct figures *figures = observer;

    figures->commits++;
    figures->commit = *commit;
}

static void receive_attempt(void *observer, const struct det_attempt_figures *attempt)
{
    struct figures *figures = observer;

    figures->attempts++;
    figures->attempt = *attempt;
    snprintf(figures->key, sizeof figures->key, "%s", attempt->key);
    snprintf(figures->instance, sizeof figures->instance, "%s", attempt->instance);
}

static void receive_timeout(void *observer, const struct det_machine *machine, det_time late)
{
    struct figures *figures = observer;

    assert_string_equal(machine->name, "order");
    figures->timeouts++;
    figures->late = late;
}

static void receive_unhandled(
    void *observer, const struct det_machine *machine, unsigned state, unsigned event)
{
    struct figures *figures = observer;

    assert_string_equal(machine->name, "order");
    figures->unhandled++;
    figures->state = state;
    figures->event = event;
}

static const struct det_meter all = { .commit = receive_commit,
                                      .attempt = receive_attempt,
                                      .timeout = receive_timeout,
                                      .unhandled = receive_unhandled };
static const struct det_meter none;

static void reopen(struct fixture *f, const struct det_meter *meter, struct figures *figures)
{
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(
        det_runtime_open(
            f->store,
            &(struct det_runtime_options){ .world = det_sim_world(f->sim),
                                           .user = &f->control,
                                           .observer = figures,
                                           .observe = figures ? receive_note : NULL,
                                           .meter = meter },
            &f->runtime, &f->error),
        0);
}

/* On a store that blocks, and on one that does not. */
static void in_both(void (*test)(struct fixture *f, struct faulty *faulty, struct figures *figures))
{
    for (int is_quick = 0; is_quick < 2; is_quick++) {
        struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
        struct figures figures = { 0 };
        struct faulty faulty;

        faulty_wrap(&faulty, f, is_quick);
        reopen(f, &all, &figures);
        test(f, &faulty, &figures);
        fixture_close(f);
    }
}

static det_time wall(struct fixture *f)
{
    return det_world_now(det_sim_world(f->sim), DET_CLOCK_WALL);
}

static void last(struct fixture *f, struct faulty *faulty, struct figures *figures)
{
    det_time began = wall(f), paid;

    (void)faulty;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(figures->note.since, 0);
    advance(f, DET_MINUTE);
    assert_int_equal(send_kind(f, "o-1", PING), 0); /* it stays */
    assert_int_equal(figures->since[PING], began);
    advance(f, DET_MINUTE);
    paid = wall(f);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(figures->since[PAY], began);
    advance(f, DET_MINUTE);
    assert_int_equal(figures->since[CHARGED], paid);
    /* From the store, too. */
    reopen(f, &all, figures);
    advance(f, DET_MINUTE);
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-1", "x", NULL, NULL, NULL), 0);
    assert_int_equal(figures->note.outcome, DET_OUTCOME_STOP);
    assert_int_equal(figures->note.since, paid);
}

static void meter_reports_how_long_the_state_lasted(void **unused)
{
    (void)unused;
    in_both(last);
}

/* Several events in one commit: each has its own. */
static void last_in_batch(struct fixture *f, struct faulty *faulty, struct figures *figures)
{
    struct order_event pay = { .kind = PAY, .as.pay = { .cents = 1, .card = "4242" } };
    struct order_event cancel = { .kind = CANCEL };
    const void *events[] = { &pay, &cancel };

    (void)faulty;
    assert_int_equal(start(f, "o-1"), 0);
    advance(f, DET_MINUTE);
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", events, 2, NULL, &f->sent, NULL), 0);
    assert_int_equal(figures->note.event, CANCEL);
    assert_int_equal(figures->note.since, wall(f));
    assert_int_equal(figures->commit.events, 2);
    assert_int_equal(figures->commit.commits, 1);
}

static void in_one_commit_each_event_has_its_own_state(void **unused)
{
    (void)unused;
    in_both(last_in_batch);
}

static void commit(struct fixture *f, struct faulty *faulty, struct figures *figures)
{
    faulty->commit_takes = 3 * DET_SECOND;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(figures->commits, 1);
    assert_int_equal(figures->commit.commits, 1);
    assert_int_equal(figures->commit.events, 1);
    assert_int_equal(figures->commit.took, 3 * DET_SECOND);
    assert_int_equal(figures->commit.result, 0);
    assert_int_equal(figures->note.commit_took, 3 * DET_SECOND);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_NO_SPACE, 0);
    assert_int_equal(send_kind(f, "o-1", TOUCH), DET_ERR_NO_SPACE);
    assert_int_equal(figures->commits, 2);
    assert_int_equal(figures->commit.result, DET_ERR_NO_SPACE);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_NO_SPACE, 0);
    faulty->is_of_call = true;
    assert_int_equal(send_kind(f, "o-1", TOUCH), DET_ERR_NO_SPACE);
    assert_int_equal(figures->commit.result, DET_ERR_NO_SPACE);
    assert_int_equal(figures->notes, 1);
}

static void a_commit_is_reported_with_its_time_and_its_error(void **unused)
{
    (void)unused;
    in_both(commit);
}

static void timers_sharing_a_commit_are_metered_as_one(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct figures figures = { 0 };
    struct faulty faulty;

    (void)unused;
    faulty_wrap(&faulty, f, false);
    reopen(f, &all, &figures);
    faulty.commit_takes = DET_SECOND;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    det_sim_jump_wall(f->sim, 31 * DET_MINUTE);
    advance(f, DET_MINUTE);
    assert_int_equal(figures.timeouts, 2);
    assert_int_equal(figures.commits, 3);
    assert_int_equal(figures.commit.commits, 2);
    assert_int_equal(figures.commit.events, 2);
    assert_int_equal(figures.note.commit_took, DET_SECOND);
    fixture_close(f);
}

static void be_late(struct fixture *f, struct faulty *faulty, struct figures *figures)
{
    (void)faulty;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    advance(f, 30 * DET_MINUTE + 7 * DET_SECOND);
    reopen(f, &all, figures);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    settle(f);
    assert_int_equal(figures->timeouts, 2);
    assert_int_equal(figures->late, 7 * DET_SECOND);
    assert_int_equal(start(f, "o-3"), 0);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(figures->timeouts, 3);
    assert_int_equal(figures->late, 0);
}

static void a_timer_reports_its_lateness(void **unused)
{
    (void)unused;
    in_both(be_late);
}

static void wait_a_second(void *context)
{
    wait_in(context, DET_SECOND);
}

static void attempt(struct fixture *f, struct faulty *faulty, struct figures *figures)
{
    det_time paid = wall(f);

    (void)faulty;
    f->control.in_effect = wait_a_second;
    f->control.context = det_sim_world(f->sim);
    f->control.effect_failures = 1;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, DET_SECOND);
    assert_int_equal(figures->attempts, 1);
    assert_true(figures->attempt.result < 0);
    assert_int_equal(figures->attempt.attempt, 1);
    assert_int_equal(figures->attempt.began, paid);
    assert_int_equal(figures->attempt.took, DET_SECOND);
    assert_key(figures->key, "order/o-1/1/0");
    assert_string_equal(figures->instance, "o-1");
    assert_string_equal(figures->attempt.name, "charge_card");
    advance(f, DET_MINUTE);
    assert_int_equal(figures->attempts, 2);
    assert_int_equal(figures->attempt.attempt, 2);
    assert_int_equal(figures->attempt.result, DET_EFFECT_PRODUCED);
}

static const struct det_trace_context fired = { .trace_id = "trace of a timer",
                                                .span_id = "the one",
                                                .flags = DET_TRACE_SAMPLED };

static bool give_trace(void *observer, struct det_trace_context *ret)
{
    struct figures *figures = observer;

    *ret = fired;
    return figures->wants_trace;
}

static void receive_trace(void *observer, const struct det_note *note)
{
    struct figures *figures = observer;

    if (!note->is_timeout)
        return;
    figures->notes++;
    assert_int_equal(note->trace != NULL, figures->wants_trace);
    if (note->trace)
        assert_memory_equal(note->trace, &fired, sizeof fired);
    /* A store in memory keeps none of those of events. */
    assert_null(note->armed_by);
}

static void a_timer_may_begin_a_trace(void **unused)
{
    static const struct det_meter meter = { .fire = give_trace };
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct figures figures = { 0 };

    (void)unused;
    det_runtime_close(f->runtime);
    assert_int_equal(
        det_runtime_open(
            f->store,
            &(struct det_runtime_options){ .world = det_sim_world(f->sim),
                                           .user = &f->control,
                                           .observer = &figures,
                                           .observe = receive_trace,
                                           .meter = &meter },
            &f->runtime, &f->error),
        0);
    for (int i = 0; i < 2; i++) {
        figures.wants_trace = i == 1;
        assert_int_equal(start(f, i ? "o-2" : "o-1"), 0);
        advance(f, DET_HOUR);
        assert_int_equal(figures.notes, i + 1);
    }
    fixture_close(f);
}

static void an_attempt_of_an_effect_is_reported_when_it_has_ended(void **unused)
{
    (void)unused;
    in_both(attempt);
}

static void be_unhandled(struct fixture *f, struct faulty *faulty, struct figures *figures)
{
    (void)faulty;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", SHIP), DET_ERR_UNHANDLED);
    assert_int_equal(figures->unhandled, 1);
    assert_int_equal(figures->state, PENDING);
    assert_int_equal(figures->event, SHIP);
    /* Also if no caller gets an error. */
    assert_int_equal(send_kind(f, "o-1", NOISE), 0);
    assert_int_equal(figures->unhandled, 2);
    assert_int_equal(figures->event, NOISE);
}

static void unhandled_events_are_reported(void **unused)
{
    (void)unused;
    in_both(be_unhandled);
}

/* A meter without callbacks, and no meter. */
static void what_is_not_wanted_is_not_reported(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct figures figures = { 0 };

    (void)unused;
    for (int i = 0; i < 2; i++) {
        const char *id = i ? "o-2" : "o-1";

        reopen(f, i ? NULL : &none, i ? NULL : &figures);
        assert_int_equal(start(f, id), 0);
        assert_int_equal(send_kind(f, id, SHIP), DET_ERR_UNHANDLED);
        assert_int_equal(send_kind(f, id, PAY), 0);
        settle(f);
        assert_int_equal(get(f, id).state, PAID);
    }
    assert_int_equal(figures.commits + figures.attempts + figures.timeouts + figures.unhandled, 0);
    assert_true(figures.notes > 0);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meter_reports_how_long_the_state_lasted),
        cmocka_unit_test(in_one_commit_each_event_has_its_own_state),
        cmocka_unit_test(a_commit_is_reported_with_its_time_and_its_error),
        cmocka_unit_test(timers_sharing_a_commit_are_metered_as_one),
        cmocka_unit_test(a_timer_reports_its_lateness),
        cmocka_unit_test(a_timer_may_begin_a_trace),
        cmocka_unit_test(an_attempt_of_an_effect_is_reported_when_it_has_ended),
        cmocka_unit_test(unhandled_events_are_reported),
        cmocka_unit_test(what_is_not_wanted_is_not_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
