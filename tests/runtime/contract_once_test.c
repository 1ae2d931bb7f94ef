/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_once_test.c - event ids, the conditions `expected` and `visit`, and batches. */
#include "runtime/contract_test.h"

static int send_as(
    struct lab *lab, const char *instance, struct probe_event event, const char *id,
    struct det_sent *ret)
{
    struct det_send_options options = { .event_id = id };

    return probe_send_with(lab->runtime, instance, event, &options, ret, NULL);
}

static void assert_same_answer(const struct det_sent *first, const struct det_sent *again)
{
    assert_int_equal(again->outcome, first->outcome);
    assert_int_equal(again->state, first->state);
    assert_int_equal(again->sequence, first->sequence);
    assert_int_equal(again->visit, first->visit);
    assert_false(first->is_duplicate);
    assert_true(again->is_duplicate);
}

static void an_id_sent_again_gives_the_first_answer_and_changes_nothing(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent first, again;
    struct lab_picture *before;

    (void)unused;
    lab_start(lab, "a");
    assert_int_equal(send_as(lab, "a", lab_go(), "go-1", &first), 0);
    lab_send(lab, "a", probe_touch());
    lab_send(lab, "a", probe_back());
    before = lab_picture(lab, "a");
    lab->log[0] = '\0';
    assert_int_equal(send_as(lab, "a", lab_go(), "go-1", &again), 0);
    assert_same_answer(&first, &again);
    assert_int_equal(again.state, PROBE_BUSY);
    assert_string_equal(lab->log, "");
    assert_int_equal(lab_counts(lab).duplicates, 1);
    lab_assert_unchanged(lab, "a", before);
    lab_close(lab);
}

static void an_id_is_known_to_the_next_runtime_on_the_store(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent first, again;

    (void)unused;
    lab_start(lab, "a");
    assert_int_equal(send_as(lab, "a", lab_go(), "go-1", &first), 0);
    lab_reopen(lab);
    assert_int_equal(send_as(lab, "a", lab_go(), "go-1", &again), 0);
    assert_same_answer(&first, &again);
    lab_reopen(lab);
    lab_send(lab, "a", probe_back());
    assert_int_equal(send_as(lab, "a", lab_go(), "go-1", &again), 0);
    assert_same_answer(&first, &again);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    lab_close(lab);
}

/* The first use is named; and nothing has happened. */
static void assert_used(struct lab *lab, struct probe_event event, const char *use)
{
    struct det_error error = { 0 };
    struct det_send_options options = { .event_id = "go-1" };
    uint64_t before = lab_get(lab, "a").sequence;

    assert_int_equal(
        probe_send_with(lab->runtime, "a", event, &options, NULL, &error), DET_ERR_CONFLICT);
    assert_true(error.is_id_used);
    assert_non_null(strstr(error.text, "the event id go-1 was used for another request: "));
    assert_non_null(strstr(error.text, use));
    assert_int_equal(lab_get(lab, "a").sequence, before);
}

static void an_id_with_another_request_is_a_conflict_that_names_the_first_use(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_event other = lab_go();
    struct det_send_options options = { .event_id = "go-1" };
    struct det_sent first;
    struct probe_data data = { .amount = 3 };

    (void)unused;
    lab_start(lab, "a");
    assert_int_equal(send_as(lab, "a", lab_go(), "go-1", &first), 0);
    other.go.amount++;
    for (int i = 0; i < 2; i++) {
        assert_used(lab, probe_touch(), "go, event 1");
        assert_used(lab, other, "go, event 1");
        assert_int_equal(
            det_runtime_cancel(lab->runtime, &probe_machine, "a", "no", &options, NULL, NULL),
            DET_ERR_CONFLICT);
        assert_int_equal(
            probe_instance_start_with(lab->runtime, "a", data, &options, NULL, NULL),
            DET_ERR_CONFLICT);
        lab_reopen(lab);
    }
    /* A start too. */
    assert_int_equal(probe_instance_start_with(lab->runtime, "b", data, &options, NULL, NULL), 0);
    assert_int_equal(probe_instance_start_with(lab->runtime, "b", data, &options, NULL, NULL), 0);
    data.amount++;
    assert_int_equal(
        probe_instance_start_with(lab->runtime, "b", data, &options, NULL, NULL), DET_ERR_CONFLICT);
    assert_int_equal(
        probe_send_with(lab->runtime, "b", probe_touch(), &options, NULL, NULL), DET_ERR_CONFLICT);
    lab_close(lab);
}

static void an_id_belongs_to_its_instance(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent sent;

    (void)unused;
    lab_start(lab, "a");
    lab_start(lab, "b");
    assert_int_equal(send_as(lab, "a", lab_go(), "go-1", &sent), 0);
    assert_int_equal(send_as(lab, "b", lab_go(), "go-1", &sent), 0);
    assert_false(sent.is_duplicate);
    assert_int_equal(lab_get(lab, "b").state, PROBE_BUSY);
    lab_close(lab);
}

static void a_given_id_makes_a_start_idempotent(void **unused)
{
    struct lab *lab = lab_open();
    struct det_send_options options = { .event_id = "born" };
    struct det_sent first, again;
    int r;

    (void)unused;
    r = det_runtime_start(lab->runtime, &probe_machine, "a", NULL, &options, &first, NULL);
    assert_int_equal(r, 0);
    lab_send(lab, "a", lab_go());
    r = det_runtime_start(lab->runtime, &probe_machine, "a", NULL, &options, &again, NULL);
    assert_int_equal(r, 0);
    assert_same_answer(&first, &again);
    lab_reopen(lab);
    r = det_runtime_start(lab->runtime, &probe_machine, "a", NULL, &options, &again, NULL);
    assert_int_equal(r, 0);
    assert_same_answer(&first, &again);
    options.event_id = "another";
    r = det_runtime_start(lab->runtime, &probe_machine, "a", NULL, &options, &again, NULL);
    assert_int_equal(r, DET_ERR_EXISTS);
    lab_close(lab);
}

static void a_stop_sent_again_gives_the_first_answer(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent first, again;

    (void)unused;
    lab_busy(lab, "a");
    assert_int_equal(send_as(lab, "a", probe_quit(), "end", &first), 0);
    assert_int_equal(send_as(lab, "a", probe_quit(), "end", &again), 0);
    assert_same_answer(&first, &again);
    assert_int_equal(send_as(lab, "a", probe_quit(), "end-2", &again), DET_ERR_STOPPED);
    lab_close(lab);
}

static void a_repeated_manual_stop_gives_the_first_answer(void **unused)
{
    struct lab *lab = lab_open();
    struct det_send_options options = { .event_id = "end" };
    struct det_sent first, again;
    int r;

    (void)unused;
    lab_busy(lab, "a");
    r = det_runtime_cancel(lab->runtime, &probe_machine, "a", "first", &options, &first, NULL);
    assert_int_equal(r, 0);
    lab_reopen(lab);
    r = det_runtime_cancel(lab->runtime, &probe_machine, "a", "second", &options, &again, NULL);
    assert_int_equal(r, DET_ERR_CONFLICT);
    r = det_runtime_cancel(lab->runtime, &probe_machine, "a", "first", &options, &again, NULL);
    assert_int_equal(r, 0);
    assert_same_answer(&first, &again);
    assert_string_equal(lab_get(lab, "a").reason, "first");
    lab_close(lab);
}

static void a_retry_with_its_old_conditions_gives_the_first_answer(void **unused)
{
    struct lab *lab = lab_open();
    struct det_send_options options = { .event_id = "go-1", .expected = 2, .visit = 2 };
    struct det_sent first, again;

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_touch());
    assert_int_equal(probe_send_with(lab->runtime, "a", probe_back(), &options, &first, NULL), 0);
    assert_int_equal(probe_send_with(lab->runtime, "a", probe_back(), &options, &again, NULL), 0);
    assert_same_answer(&first, &again);
    lab_close(lab);
}

static void a_deferred_id_sent_again_is_not_deferred_again(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent sent;

    (void)unused;
    lab_start(lab, "a");
    assert_int_equal(send_as(lab, "a", lab_later(0), "later-1", &sent), 0);
    assert_int_equal(sent.outcome, DET_OUTCOME_DEFERRED);
    assert_int_equal(send_as(lab, "a", lab_later(0), "later-1", &sent), 0);
    assert_int_equal(lab_get(lab, "a").deferred_count, 1);
    lab_send(lab, "a", lab_go());
    lab_settle(lab);
    assert_int_equal(send_as(lab, "a", lab_later(0), "later-1", &sent), 0);
    assert_string_equal(lab_data(lab, "a").trail, "a");
    lab_close(lab);
}

static void the_store_remembers_the_configured_number_of_ids(void **unused)
{
    struct lab *lab = lab_open_with(1, &(struct det_store_options){ .event_ids_kept = 4 }, NULL);
    static const char *const ids[] = { "i0", "i1", "i2", "i3", "i4" };
    struct det_sent sent;

    (void)unused;
    lab_start(lab, "a");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(send_as(lab, "a", probe_touch(), ids[i], NULL), 0);
    assert_int_equal(send_as(lab, "a", probe_touch(), "i0", &sent), 0);
    assert_true(sent.is_duplicate);
    assert_int_equal(send_as(lab, "a", probe_touch(), "i4", NULL), 0);
    for (size_t i = 1; i < 5; i++) {
        assert_int_equal(send_as(lab, "a", probe_touch(), ids[i], &sent), 0);
        assert_true(sent.is_duplicate);
    }
    assert_int_equal(send_as(lab, "a", probe_touch(), "i0", &sent), 0);
    assert_false(sent.is_duplicate);
    lab_close(lab);
}

static void a_commit_happens_only_at_the_expected_sequence(void **unused)
{
    struct lab *lab = lab_open();
    struct det_error error = { 0 };
    struct det_send_options options = { .expected = 3 };
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_touch());
    before = lab_picture(lab, "a");
    for (options.expected = 1; options.expected <= 3; options.expected += 2) {
        assert_int_equal(
            probe_send_with(lab->runtime, "a", probe_touch(), &options, NULL, &error),
            DET_ERR_CONFLICT);
        assert_int_equal(error.code, DET_ERR_CONFLICT);
        assert_int_equal(error.expected, options.expected);
        assert_int_equal(error.actual, 2);
    }
    assert_int_equal(
        det_runtime_cancel(lab->runtime, &probe_machine, "a", "no", &options, NULL, &error),
        DET_ERR_CONFLICT);
    lab_assert_unchanged(lab, "a", before);
    options.expected = 2;
    assert_int_equal(probe_send_with(lab->runtime, "a", probe_touch(), &options, NULL, &error), 0);
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    lab_close(lab);
}

static void a_send_commits_only_in_the_expected_visit(void **unused)
{
    struct lab *lab = lab_open();
    struct det_send_options options = { .visit = 2 };
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    assert_int_equal(probe_send_with(lab->runtime, "a", probe_touch(), &options, NULL, NULL), 0);
    assert_int_equal(probe_send_with(lab->runtime, "a", probe_again(), &options, NULL, NULL), 0);
    before = lab_picture(lab, "a");
    assert_int_equal(
        probe_send_with(lab->runtime, "a", probe_touch(), &options, NULL, NULL), DET_ERR_CONFLICT);
    lab_assert_unchanged(lab, "a", before);
    options.visit = lab_get(lab, "a").visit;
    assert_int_equal(probe_send_with(lab->runtime, "a", probe_touch(), &options, NULL, NULL), 0);
    lab_close(lab);
}

static int send_all(
    struct lab *lab, const struct probe_event *events, size_t count,
    const struct det_send_options *options, struct det_sent *ret)
{
    const void *pointers[DET_BATCH_MAX + 1];

    for (size_t i = 0; i < count; i++)
        pointers[i] = &events[i];
    return det_runtime_send_all(
        lab->runtime, &probe_machine, "a", pointers, count, options, ret, NULL);
}

static void a_batch_is_one_commit_with_the_answer_of_the_last(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_event events[] = { lab_go(), probe_touch(), lab_work(9), probe_back() };
    struct det_sent sent;
    struct det_instance at;

    (void)unused;
    lab_start(lab, "a");
    lab->log[0] = '\0';
    assert_int_equal(send_all(lab, events, 4, NULL, &sent), 0);
    assert_int_equal(sent.outcome, DET_OUTCOME_GOTO);
    assert_int_equal(sent.state, PROBE_IDLE);
    assert_int_equal(sent.sequence, 4);
    assert_int_equal(sent.visit, 5);
    assert_ptr_equal(
        strstr(
            lab->log, "may_go exit_idle check_go enter_busy check_touch exit_busy enter_idle "
                      "note:1 note:2 note:3 note:4"),
        lab->log);
    at = lab_get(lab, "a");
    assert_int_equal(at.history_count, 2);
    assert_int_equal(at.transition_count, 2);
    assert_int_equal(lab_data(lab, "a").count, 2);
    assert_int_equal(lab_data(lab, "a").amount, 9);
    lab_settle(lab);
    assert_string_equal(lab->calls[0].key + 17, "probe/a/3/0");
    lab_advance(lab, DET_MINUTE);
    assert_int_equal(lab_get(lab, "a").sequence, 4);
    lab_close(lab);
}

static void a_batch_whose_second_event_is_refused_leaves_no_first(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_event events[] = { lab_go(), probe_touch(), lab_work(1) };
    struct det_send_options options = { .event_id = "batch" };
    struct lab_picture *before;

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", probe_arm());
    before = lab_picture(lab, "a");
    lab->note_count = 0;
    lab->deny = "check_touch";
    assert_int_equal(send_all(lab, events, 3, &options, NULL), DET_ERR_ACTION_FAILED);
    events[1] = lab_go();
    assert_int_equal(send_all(lab, events, 3, &options, NULL), DET_ERR_UNHANDLED);
    events[1] = probe_expire();
    assert_int_equal(send_all(lab, events, 3, &options, NULL), DET_ERR_INVALID);
    events[1] = probe_crash();
    assert_int_equal(send_all(lab, events, 3, &options, NULL), DET_ERR_STOPPED);
    lab_settle(lab);
    assert_int_equal(lab->note_count, 0);
    assert_int_equal(lab->call_count, 0);
    lab_assert_unchanged(lab, "a", before);
    lab_close(lab);
}

static void a_batch_may_hold_events_that_the_state_does_not_take(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_event events[] = { probe_shrug(), lab_later(1), probe_letter(), lab_go(),
                                    probe_touch() };
    struct det_sent sent;

    (void)unused;
    lab_start(lab, "a");
    assert_int_equal(send_all(lab, events, 5, NULL, &sent), 0);
    assert_int_equal(sent.outcome, DET_OUTCOME_STAY);
    assert_int_equal(sent.sequence, 4);
    lab_settle(lab);
    assert_string_equal(lab_data(lab, "a").trail, "b");
    assert_int_equal(lab_get(lab, "a").sequence, 5);
    assert_int_equal(lab_counts(lab).unhandled, 3);
    assert_int_equal(lab_incidents(lab, DET_INCIDENT_EVENT_DEAD), 1);
    lab_close(lab);
}

static void batch_answer_is_that_of_its_last_event(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_event events[] = { probe_touch(), probe_shrug() };
    struct det_sent sent;

    (void)unused;
    lab_start(lab, "a");
    assert_int_equal(send_all(lab, events, 2, NULL, &sent), 0);
    assert_int_equal(sent.sequence, 1);
    assert_int_equal(sent.outcome, DET_OUTCOME_IGNORED);
    lab_close(lab);
}

static void a_batch_sent_again_gives_its_first_answer(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_event events[] = { lab_go(), probe_touch() };
    struct det_send_options options = { .event_id = "batch" };
    struct det_sent first, again;

    (void)unused;
    lab_start(lab, "a");
    assert_int_equal(send_all(lab, events, 2, &options, &first), 0);
    assert_int_equal(send_all(lab, events, 2, &options, &again), 0);
    assert_same_answer(&first, &again);
    lab_reopen(lab);
    assert_int_equal(send_all(lab, events, 2, &options, &again), 0);
    assert_same_answer(&first, &again);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    lab_close(lab);
}

static void a_batch_obeys_its_conditions_once(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_event events[] = { probe_touch(), probe_again(), probe_touch() };
    struct det_send_options options = { .expected = 1, .visit = 2 };
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    assert_int_equal(send_all(lab, events, 3, &options, NULL), 0);
    assert_int_equal(lab_get(lab, "a").sequence, 4);
    before = lab_picture(lab, "a");
    assert_int_equal(send_all(lab, events, 3, &options, NULL), DET_ERR_CONFLICT);
    lab_assert_unchanged(lab, "a", before);
    lab_close(lab);
}

static void a_batch_has_at_least_one_and_at_most_batch_max_events(void **unused)
{
    struct lab *lab = lab_open();
    static struct probe_event events[DET_BATCH_MAX + 1];
    int r;

    (void)unused;
    for (size_t i = 0; i <= DET_BATCH_MAX; i++)
        events[i] = probe_touch();
    lab_start(lab, "a");
    assert_int_equal(send_all(lab, events, DET_BATCH_MAX - 1, NULL, NULL), 0);
    assert_int_equal(send_all(lab, events, DET_BATCH_MAX, NULL, NULL), 0);
    r = send_all(lab, events, DET_BATCH_MAX + 1, NULL, NULL);
    assert_true(r == DET_ERR_LIMIT || r == DET_ERR_INVALID);
    assert_int_equal(send_all(lab, events, 0, NULL, NULL), DET_ERR_INVALID);
    assert_int_equal(lab_get(lab, "a").sequence, 2 * DET_BATCH_MAX - 1);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_sent_again_gives_the_first_answer_and_changes_nothing),
        cmocka_unit_test(an_id_is_known_to_the_next_runtime_on_the_store),
        cmocka_unit_test(an_id_with_another_request_is_a_conflict_that_names_the_first_use),
        cmocka_unit_test(an_id_belongs_to_its_instance),
        cmocka_unit_test(a_given_id_makes_a_start_idempotent),
        cmocka_unit_test(a_stop_sent_again_gives_the_first_answer),
        cmocka_unit_test(a_repeated_manual_stop_gives_the_first_answer),
        cmocka_unit_test(a_retry_with_its_old_conditions_gives_the_first_answer),
        cmocka_unit_test(a_deferred_id_sent_again_is_not_deferred_again),
        cmocka_unit_test(the_store_remembers_the_configured_number_of_ids),
        cmocka_unit_test(a_commit_happens_only_at_the_expected_sequence),
        cmocka_unit_test(a_send_commits_only_in_the_expected_visit),
        cmocka_unit_test(a_batch_is_one_commit_with_the_answer_of_the_last),
        cmocka_unit_test(a_batch_whose_second_event_is_refused_leaves_no_first),
        cmocka_unit_test(a_batch_may_hold_events_that_the_state_does_not_take),
        cmocka_unit_test(batch_answer_is_that_of_its_last_event),
        cmocka_unit_test(a_batch_sent_again_gives_its_first_answer),
        cmocka_unit_test(a_batch_obeys_its_conditions_once),
        cmocka_unit_test(a_batch_has_at_least_one_and_at_most_batch_max_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
