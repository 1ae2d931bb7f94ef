/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_read_test.c - what can be asked, what the observer is told, and serving definitions. */
#include "runtime/contract_test.h"

static void the_history_is_most_recent_first_and_bounded(void **unused)
{
    struct lab *lab = lab_open_with(1, NULL, &(struct det_runtime_options){ .history_kept = 3 });
    struct det_instance at;

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_rest());
    at = lab_get(lab, "a");
    assert_int_equal(at.history_count, 2);
    assert_int_equal(at.history[0], PROBE_BUSY);
    assert_int_equal(at.history[1], PROBE_IDLE);
    lab_send(lab, "a", probe_back());
    assert_int_equal(lab_get(lab, "a").history_count, 3);
    lab_send(lab, "a", lab_go());
    at = lab_get(lab, "a");
    assert_int_equal(at.history_count, 3);
    assert_int_equal(at.history[0], PROBE_IDLE);
    assert_int_equal(at.history[1], PROBE_RESTING);
    assert_int_equal(at.history[2], PROBE_BUSY);
    assert_int_equal(at.previous, PROBE_IDLE);
    assert_int_equal(at.transition_count, 4);
    lab_close(lab);
}

static void the_history_has_16_states_by_default_and_64_at_most(void **unused)
{
    static const struct {
        uint32_t kept;
        size_t expected;
    } cases[] = { { 0, 16 }, { 1, 1 }, { DET_HISTORY_MAX - 1, 63 }, { DET_HISTORY_MAX, 64 } };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct det_runtime_options options = { .history_kept = cases[i].kept };
        struct lab *lab = lab_open_with(1, NULL, &options);

        lab_busy(lab, "a");
        for (size_t n = 1; n < cases[i].expected; n++)
            lab_send(lab, "a", probe_again());
        assert_int_equal(lab_get(lab, "a").history_count, cases[i].expected);
        lab_send(lab, "a", probe_again());
        assert_int_equal(lab_get(lab, "a").history_count, cases[i].expected);
        assert_int_equal(lab_get(lab, "a").transition_count, cases[i].expected + 1);
        lab_close(lab);
    }
}

static void an_instance_reads_the_same_after_a_restart(void **unused)
{
    struct lab *lab = lab_open();
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    lab_advance(lab, DET_SECOND);
    lab_send(lab, "a", probe_again());
    lab_send(lab, "a", probe_arm_both());
    lab_send(lab, "a", lab_work(4));
    lab_send(lab, "a", probe_rest());
    lab_send(lab, "a", lab_later(3));
    lab_settle(lab);
    before = lab_picture(lab, "a");
    for (unsigned i = 0; i < 3; i++) {
        lab_reopen(lab);
        lab_advance(lab, DET_SECOND);
    }
    lab_assert_unchanged(lab, "a", before);
    lab_close(lab);
}

static void times_are_those_of_the_start_and_of_the_last_goto(void **unused)
{
    struct lab *lab = lab_open();
    det_time started_at, moved_at;
    struct det_instance at;

    (void)unused;
    started_at = lab_wall(lab);
    lab_start(lab, "a");
    lab_advance(lab, 7);
    moved_at = lab_wall(lab);
    lab_send(lab, "a", lab_go());
    lab_advance(lab, 7);
    lab_send(lab, "a", probe_touch());
    at = lab_get(lab, "a");
    assert_int_equal(at.started_at, started_at);
    assert_int_equal(at.last_transition_at, moved_at);
    lab_close(lab);
}

struct walk {
    uint64_t sequences[200];
    struct probe_event last;
    char id[DET_ID_MAX + 1];
    size_t count;
    size_t stop_at;
};

static int walk_event(void *context, const struct det_event_record *row)
{
    struct walk *walk = context;

    walk->sequences[walk->count++] = row->sequence;
    if (row->event_value != NULL)
        walk->last = *(const struct probe_event *)row->event_value;
    snprintf(walk->id, sizeof walk->id, "%s", row->event_id ? row->event_id : "");
    return walk->count == walk->stop_at ? 4711 : 0;
}

static void events_come_oldest_first_after_the_given_one(void **unused)
{
    struct lab *lab = lab_open();
    struct walk all = { 0 }, tail = { 0 }, none = { 0 };
    struct det_send_options options = { .event_id = "mine" };
    int r;

    (void)unused;
    lab_busy(lab, "a");
    for (unsigned i = 0; i < 3; i++)
        lab_send(lab, "a", probe_touch());
    assert_int_equal(probe_send_with(lab->runtime, "a", lab_work(77), &options, NULL, NULL), 0);
    r = det_runtime_events(lab->runtime, &probe_machine, "a", 0, walk_event, &all, NULL);
    assert_int_equal(r, 0);
    assert_int_equal(all.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(all.sequences[i], i + 1);
    assert_int_equal(all.last.kind, PROBE_WORK);
    assert_int_equal(all.last.work.amount, 77);
    assert_string_equal(all.id, "mine");
    r = det_runtime_events(lab->runtime, &probe_machine, "a", 3, walk_event, &tail, NULL);
    assert_int_equal(r, 0);
    assert_int_equal(tail.count, 2);
    assert_int_equal(tail.sequences[0], 4);
    r = det_runtime_events(lab->runtime, &probe_machine, "a", 5, walk_event, &none, NULL);
    assert_int_equal(r, 0);
    assert_int_equal(none.count, 0);
    lab_close(lab);
}

static void a_non_zero_answer_ends_a_walk_and_is_returned(void **unused)
{
    struct lab *lab = lab_open();
    struct walk walk = { .stop_at = 2 };

    (void)unused;
    lab_busy(lab, "a");
    for (unsigned i = 0; i < 3; i++)
        lab_send(lab, "a", probe_touch());
    assert_int_equal(
        det_runtime_events(lab->runtime, &probe_machine, "a", 0, walk_event, &walk, NULL), 4711);
    assert_int_equal(walk.count, 2);
    lab_close(lab);
}

static void the_memory_store_keeps_the_configured_number_of_events(void **unused)
{
    static const uint32_t kept[] = { 0, 1, 10 };

    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        struct lab *lab =
            lab_open_with(1, &(struct det_store_options){ .events_kept = kept[i] }, NULL);
        size_t expected = kept[i] ? kept[i] : 64;
        struct walk walk = { 0 };

        lab_start(lab, "a");
        for (size_t n = 0; n < expected + 3; n++)
            lab_send(lab, "a", probe_touch());
        assert_int_equal(
            det_runtime_events(lab->runtime, &probe_machine, "a", 0, walk_event, &walk, NULL), 0);
        assert_int_equal(walk.count, expected);
        assert_int_equal(walk.sequences[0], 4);
        assert_int_equal(walk.sequences[expected - 1], expected + 3);
        lab_reopen(lab);
        assert_int_equal(lab_get(lab, "a").sequence, expected + 3);
        assert_int_equal(lab_send(lab, "a", probe_touch()).sequence, expected + 4);
        lab_close(lab);
    }
}

struct roll {
    size_t count, stop_at;
    char names[256];
};

static int call_name(void *context, const struct det_listed_instance *row)
{
    struct roll *roll = context;
    size_t used = strlen(roll->names);

    snprintf(
        roll->names + used, sizeof roll->names - used, "<%s=%u%s>", row->instance, row->state,
        row->is_stopped ? " stopped" : "");
    return ++roll->count == roll->stop_at ? -4711 : 0;
}

static void instances_are_listed_in_any_or_in_one_state(void **unused)
{
    struct lab *lab = lab_open();
    struct roll all = { 0 }, busy = { 0 }, done = { 0 }, some = { .stop_at = 1 };

    (void)unused;
    lab_busy(lab, "a");
    lab_start(lab, "b");
    lab_busy(lab, "c");
    lab_start(lab, "d");
    assert_int_equal(probe_instance_cancel(lab->runtime, "d", "enough", NULL), 0);
    lab_reopen(lab);
    assert_int_equal(
        det_runtime_instances(lab->runtime, &probe_machine, -1, call_name, &all, NULL), 0);
    assert_int_equal(all.count, 4);
    assert_non_null(strstr(all.names, "<d=0 stopped>"));
    assert_non_null(strstr(all.names, "<a=1>"));
    assert_non_null(strstr(all.names, "<b=0>"));
    assert_non_null(strstr(all.names, "<c=1>"));
    assert_int_equal(
        det_runtime_instances(lab->runtime, &probe_machine, PROBE_BUSY, call_name, &busy, NULL), 0);
    assert_int_equal(busy.count, 2);
    assert_null(strstr(busy.names, "<b"));
    assert_int_equal(
        det_runtime_instances(lab->runtime, &probe_machine, PROBE_DONE, call_name, &done, NULL), 0);
    assert_int_equal(done.count, 0);
    assert_int_equal(
        det_runtime_instances(lab->runtime, &probe_machine, -1, call_name, &some, NULL), -4711);
    assert_int_equal(some.count, 1);
    lab_close(lab);
}

/* The failure has the given sentence, and the next one must write its own. */
static void assert_reported(struct det_error *error, int r, const char *text)
{
    assert_int_equal(r, error->code);
    assert_string_equal(error->text, text);
    *error = (struct det_error){ 0 };
}

static void reads_that_fail_say_why(void **unused)
{
    static const char nobody[] = "probe x does not exist; start it first";
    const struct det_instance_query no_state = { .has_state = true, .state = 99 };
    const struct det_instance_query both = { .only_running = true, .only_stopped = true };
    struct lab *lab = lab_open();
    struct lab_picture picture = { .size = 0 };
    struct det_runtime *runtime = lab->runtime;
    const struct det_machine *machine = &probe_machine;
    struct det_glance glance;
    struct det_instance at;
    struct det_error error = { 0 };

    (void)unused;
    assert_reported(&error, det_runtime_get(runtime, machine, "x", &at, NULL, &error), nobody);
    assert_reported(
        &error, det_runtime_get(runtime, machine, "a b", &at, NULL, &error),
        "an id must have 1 to 128 characters of A-Z a-z 0-9 . _ : -");
    assert_reported(
        &error, det_runtime_glance(runtime, machine, "x", &glance, NULL, &error),
        "probe x is not in memory as it is now; get it on a thread that may wait");
    assert_reported(
        &error, det_runtime_events(runtime, machine, "x", 0, lab_draw_event, &picture, &error),
        nobody);
    assert_reported(
        &error, det_runtime_timers(runtime, machine, "x", lab_draw_timer, &picture, &error),
        nobody);
    assert_reported(
        &error, det_runtime_effects(runtime, machine, "x", lab_draw_effect, &picture, &error),
        nobody);
    assert_reported(
        &error, det_runtime_verify(runtime, machine, "x", NULL, NULL, NULL, &error), nobody);
    assert_reported(
        &error, det_runtime_query(runtime, machine, &no_state, NULL, NULL, &error),
        "probe has no state 99; it has 4 states");
    assert_reported(
        &error, det_runtime_query(runtime, machine, &both, NULL, NULL, &error),
        "only_running and only_stopped exclude each other");
    lab_close(lab);
}

static void walks_over_an_unknown_instance_are_not_found(void **unused)
{
    struct lab *lab = lab_open();
    struct lab_picture picture = { .size = 0 };
    struct det_runtime *runtime = lab->runtime;

    (void)unused;
    assert_int_equal(
        det_runtime_events(runtime, &probe_machine, "x", 0, lab_draw_event, &picture, NULL),
        DET_ERR_NOT_FOUND);
    assert_int_equal(
        det_runtime_timers(runtime, &probe_machine, "x", lab_draw_timer, &picture, NULL),
        DET_ERR_NOT_FOUND);
    assert_int_equal(
        det_runtime_effects(runtime, &probe_machine, "x", lab_draw_effect, &picture, NULL),
        DET_ERR_NOT_FOUND);
    assert_int_equal(picture.size, 0);
    lab_close(lab);
}

static void the_observer_sees_every_commit_once_and_in_order(void **unused)
{
    static const struct {
        uint16_t event, from, to, outcome;
    } expected[] = {
        { UINT16_MAX, PROBE_IDLE, PROBE_IDLE, DET_OUTCOME_GOTO },
        { PROBE_GO, PROBE_IDLE, PROBE_BUSY, DET_OUTCOME_GOTO },
        { PROBE_TOUCH, PROBE_BUSY, PROBE_BUSY, DET_OUTCOME_STAY },
        { PROBE_AGAIN, PROBE_BUSY, PROBE_BUSY, DET_OUTCOME_GOTO },
        { PROBE_EXPIRE, PROBE_BUSY, PROBE_IDLE, DET_OUTCOME_GOTO },
        { UINT16_MAX, PROBE_IDLE, PROBE_IDLE, DET_OUTCOME_STOP },
    };
    static const uint64_t visits[] = { 1, 2, 2, 4, 5, 5 };
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    assert_true(probe_send(lab->runtime, "a", lab_go(), NULL) < 0);
    lab_send(lab, "a", probe_touch());
    lab_send(lab, "a", probe_again());
    lab_advance(lab, 30 * DET_SECOND);
    assert_int_equal(probe_instance_cancel(lab->runtime, "a", "over", NULL), 0);
    assert_int_equal(lab->note_count, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct det_note *note = &lab->notes[i].note;

        assert_ptr_equal(note->machine, &probe_machine);
        assert_string_equal(lab->notes[i].instance, "a");
        assert_int_equal(note->sequence, i);
        assert_int_equal(note->visit, visits[i]);
        assert_int_equal(note->event, expected[i].event);
        assert_int_equal(note->from, expected[i].from);
        assert_int_equal(note->to, expected[i].to);
        assert_int_equal(note->outcome, expected[i].outcome);
        assert_int_equal(note->is_timeout, i == 4);
        assert_null(note->cause);
        assert_int_equal(note->event_value == NULL, note->event == UINT16_MAX);
    }
    assert_int_equal(lab->notes[0].data.count, 0);
    assert_int_equal(lab->notes[1].data.count, 1);
    assert_int_equal(lab->notes[1].event.go.amount, 7);
    assert_int_equal(lab->notes[2].data.count, 2);
    assert_int_equal(lab->notes[1].note.at, lab->notes[0].note.at);
    assert_int_equal(lab->notes[4].note.at, lab->notes[3].note.at + 30 * DET_SECOND);
    lab_close(lab);
}

static void the_observer_gets_the_event_of_a_timer_or_a_deferral_as_it_was(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", lab_later(9));
    lab_send(lab, "a", probe_arm());
    lab_send(lab, "a", lab_go());
    lab_advance(lab, 10 * DET_SECOND);
    assert_int_equal(lab->note_count, 6);
    assert_int_equal(lab->notes[4].note.event, PROBE_LATER);
    assert_int_equal(lab->notes[4].event.kind, PROBE_LATER);
    assert_int_equal(lab->notes[4].event.later.amount, 9);
    assert_int_equal(lab->notes[5].note.event, PROBE_REMIND);
    assert_int_equal(lab->notes[5].event.kind, PROBE_REMIND);
    assert_int_equal(lab->notes[5].event.remind.armed_at, lab->notes[2].note.at);
    lab_close(lab);
}

static void runtime_counts_are_incremented(void **unused)
{
    struct lab *lab = lab_open();
    struct det_runtime_counts counts = lab_counts(lab);

    (void)unused;
    assert_int_equal(counts.instances, 0);
    assert_int_equal(counts.transitions, 0);
    lab_busy(lab, "a");
    lab_start(lab, "b");
    lab_send(lab, "b", lab_go());
    lab->deny = "may_go";
    lab_send(lab, "b", probe_back());
    assert_int_equal(probe_send(lab->runtime, "b", lab_go(), NULL), DET_ERR_REFUSED);
    counts = lab_counts(lab);
    assert_int_equal(counts.instances, 2);
    assert_int_equal(counts.transitions, 3);
    assert_int_equal(counts.refused, 1);
    assert_int_equal(counts.unhandled, 0);
    assert_int_equal(counts.duplicates, 0);
    lab_close(lab);
}

static int fail_twice(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)lab;
    (void)ret;
    return call->attempt < 3 ? DET_ERR_IO : DET_EFFECT_DONE;
}

static void settle_waits_for_effects_or_its_deadline(void **unused)
{
    struct det_runtime_options options = { .effects = { .backoff_first = 2 * DET_SECOND,
                                                        .jitter_percent = UINT32_MAX } };
    struct lab *lab = lab_open_with(1, NULL, &options);
    det_time begun;

    (void)unused;
    assert_int_equal(det_runtime_settle(lab->runtime, 0), 0);
    lab->job = fail_twice;
    lab_busy(lab, "a");
    assert_int_equal(det_runtime_settle(lab->runtime, DET_SECOND), 0);
    begun = lab_wall(lab);
    lab_send(lab, "a", lab_work(1));
    assert_int_equal(det_runtime_settle(lab->runtime, 3 * DET_SECOND), DET_ERR_TIMEOUT);
    assert_int_equal(lab_wall(lab) - begun, 3 * DET_SECOND);
    assert_int_equal(det_runtime_settle(lab->runtime, DET_MINUTE), 0);
    assert_int_equal(lab_wall(lab) - begun, 6 * DET_SECOND);
    assert_int_equal(lab->call_count, 3);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_history_is_most_recent_first_and_bounded),
        cmocka_unit_test(the_history_has_16_states_by_default_and_64_at_most),
        cmocka_unit_test(an_instance_reads_the_same_after_a_restart),
        cmocka_unit_test(times_are_those_of_the_start_and_of_the_last_goto),
        cmocka_unit_test(events_come_oldest_first_after_the_given_one),
        cmocka_unit_test(a_non_zero_answer_ends_a_walk_and_is_returned),
        cmocka_unit_test(the_memory_store_keeps_the_configured_number_of_events),
        cmocka_unit_test(instances_are_listed_in_any_or_in_one_state),
        cmocka_unit_test(reads_that_fail_say_why),
        cmocka_unit_test(walks_over_an_unknown_instance_are_not_found),
        cmocka_unit_test(the_observer_sees_every_commit_once_and_in_order),
        cmocka_unit_test(the_observer_gets_the_event_of_a_timer_or_a_deferral_as_it_was),
        cmocka_unit_test(runtime_counts_are_incremented),
        cmocka_unit_test(settle_waits_for_effects_or_its_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
