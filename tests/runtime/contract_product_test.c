/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_product_test.c - what effects produce, and whom they send to. */
#include "runtime/contract_test.h"

static int produce(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)lab;
    *ret = strcmp(call->effect, "job") == 0 ? probe_worked((struct load){ .amount = 41 })
                                            : probe_foreign();
    return DET_EFFECT_PRODUCED;
}

static int produce_late(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    lab_nap(lab, DET_SECOND);
    return produce(lab, call, ret);
}

static void a_product_is_sent_to_the_instance_with_its_cause(void **unused)
{
    struct lab *lab = lab_open();
    const struct lab_note *last;
    struct lab_picture *picture;

    (void)unused;
    lab->job = produce;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_settle(lab);
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    last = &lab->notes[lab->note_count - 1];
    assert_int_equal(last->note.event, PROBE_WORKED);
    assert_int_equal(last->event.worked.amount, 41);
    assert_string_equal(last->cause + 17, "probe/a/2/0");
    assert_false(last->note.is_timeout);
    picture = lab_picture(lab, "a");
    assert_non_null(strstr(picture->text, "/probe/a/2/0]"));
    free(picture);
    assert_int_equal(lab_counts(lab).effects_done, 1);
    assert_int_equal(lab_data(lab, "a").count, 2);
    lab_close(lab);
}

static void a_product_that_the_state_does_not_take_is_reported(void **unused)
{
    struct lab *lab = lab_open();
    const struct lab_incident *reported = &lab->incidents[0];

    (void)unused;
    lab->job = produce;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_leave());
    lab_advance(lab, DET_HOUR);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    assert_int_equal(lab->incident_count, 1);
    assert_int_equal(reported->incident.kind, DET_INCIDENT_PRODUCT_REJECTED);
    assert_int_equal(reported->incident.code, DET_ERR_UNHANDLED);
    assert_string_equal(reported->instance, "a");
    assert_string_equal(reported->name, "job");
    assert_string_equal(reported->key + 17, "probe/a/2/0");
    assert_int_equal(lab_counts(lab).products_rejected, 1);
    assert_int_equal(lab_get(lab, "a").effects_pending, 0);
    assert_int_equal(lab->call_count, 1);
    lab_close(lab);
}

static void a_product_for_a_stopped_instance_is_reported(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab->job = produce;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_crash());
    lab_advance(lab, DET_HOUR);
    assert_int_equal(lab->call_count, 1);
    assert_int_equal(lab_incidents(lab, DET_INCIDENT_PRODUCT_REJECTED), 1);
    assert_int_equal(lab->incidents[0].incident.code, DET_ERR_STOPPED);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    assert_int_equal(lab_get(lab, "a").effects_pending, 0);
    lab_close(lab);
}

static void a_product_counts_in_a_later_visit_unless_configured_otherwise(void **unused)
{
    (void)unused;
    for (int is_strict = 0; is_strict < 2; is_strict++) {
        struct det_runtime_options options = { .effects.same_visit_only = is_strict };
        struct lab *lab = lab_open_with(1, NULL, &options);

        lab->job = produce_late;
        lab_busy(lab, "a");
        lab_send(lab, "a", lab_work(1));
        lab_send(lab, "a", probe_again());
        lab_advance(lab, 2 * DET_SECOND);
        assert_int_equal(lab_get(lab, "a").sequence, is_strict ? 3 : 4);
        assert_int_equal(lab_incidents(lab, DET_INCIDENT_PRODUCT_REJECTED), is_strict);
        if (is_strict)
            assert_int_equal(lab->incidents[0].incident.code, DET_ERR_CONFLICT);
        assert_int_equal(lab_counts(lab).products_rejected, is_strict);
        lab_close(lab);
    }
}

static void product_is_accepted_after_a_stay_in_the_same_visit(void **unused)
{
    struct det_runtime_options options = { .effects.same_visit_only = true };
    struct lab *lab = lab_open_with(1, NULL, &options);

    (void)unused;
    lab->job = produce_late;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_send(lab, "a", probe_touch());
    lab_advance(lab, 2 * DET_SECOND);
    assert_int_equal(lab_get(lab, "a").sequence, 4);
    assert_int_equal(lab->incident_count, 0);
    lab_close(lab);
}

/* The visit that asked for it is the one that its transition began. */
static void an_effect_of_a_goto_belongs_to_the_visit_it_began(void **unused)
{
    struct det_runtime_options options = { .effects.same_visit_only = true };
    struct lab *lab = lab_open_with(1, NULL, &options);

    (void)unused;
    lab->job = produce;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_leave());
    lab_settle(lab);
    assert_int_equal(lab->incident_count, 1);
    assert_int_equal(lab->incidents[0].incident.code, DET_ERR_UNHANDLED);
    lab_close(lab);
}

static int produce_undeclared(
    struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    struct probe_event *event = lab->context;

    (void)call;
    *ret = *event;
    return DET_EFFECT_PRODUCED;
}

static void a_product_that_was_not_declared_is_reported_and_never_committed(void **unused)
{
    struct probe_event events[] = {
        probe_foreign(), probe_touch(), probe_back(), { .kind = (enum probe_event_kind)4711 }
    };

    (void)unused;
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        struct lab *lab = lab_open();

        lab->job = produce_undeclared;
        lab->context = &events[i];
        lab_busy(lab, "a");
        lab_send(lab, "a", lab_work(1));
        lab_advance(lab, 25 * DET_SECOND);
        assert_int_equal(lab_get(lab, "a").sequence, 2);
        assert_true(lab->incident_count > 0);
        assert_int_equal(lab_get(lab, "a").effects_pending, 0);
        lab_close(lab);
    }
}

static void a_product_with_an_invalid_payload_is_reported_and_never_committed(void **unused)
{
    struct probe_event event = probe_worked((struct load){ .amount = 1 });
    struct lab *lab = lab_open();

    (void)unused;
    memset(event.worked.note, 'x', sizeof event.worked.note);
    lab->job = produce_undeclared;
    lab->context = &event;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, 25 * DET_SECOND);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    assert_true(lab->incident_count > 0);
    assert_string_equal(
        lab->incidents[0].text,
        "the event that job of probe a produced is rejected: load.note: the text has no final NUL");
    lab_close(lab);
}

static int answer_nonsense(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)lab;
    (void)call;
    *ret = probe_worked((struct load){ .amount = 1 });
    return DET_EFFECT_POSTPONED + 1;
}

static void invalid_effect_result_is_a_failed_attempt(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab->job = answer_nonsense;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_settle(lab);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    assert_int_equal(lab->incident_count, 1);
    assert_int_equal(lab->incidents[0].incident.kind, DET_INCIDENT_EFFECT_FAILED);
    assert_true(lab->incidents[0].incident.code < 0);
    lab_close(lab);
}

static int send_elsewhere(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    int *results = lab->context;

    (void)ret;
    if (strcmp(call->move.instance, "a") == 0) {
        results[0] = probe_send(lab->runtime, "b", lab_go(), NULL);
        results[1] = probe_send(lab->runtime, "a", probe_touch(), NULL);
        results[2] =
            probe_instance_start(lab->runtime, "c", (struct probe_data){ .amount = 3 }, NULL);
    }
    return DET_EFFECT_DONE;
}

static void an_effect_may_send_to_its_own_and_to_other_instances(void **unused)
{
    struct lab *lab = lab_open();
    int results[3] = { -1, -1, -1 };

    (void)unused;
    lab->job = send_elsewhere;
    lab->context = results;
    lab_start(lab, "b");
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_settle(lab);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(results[i], 0);
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    assert_int_equal(lab_get(lab, "b").state, PROBE_BUSY);
    assert_int_equal(lab_data(lab, "c").amount, 3);
    lab_close(lab);
}

static void both_effects_of_a_transition_may_produce(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab->job = produce;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_pair());
    lab_settle(lab);
    assert_int_equal(lab->note_count, 5);
    for (size_t i = 3; i < 5; i++)
        assert_string_equal(
            lab->notes[i].cause + 17,
            lab->notes[i].note.event == PROBE_WORKED ? "probe/a/2/0" : "probe/a/2/1");
    assert_int_not_equal(lab->notes[3].note.event, lab->notes[4].note.event);
    lab_close(lab);
}

/* The crash between the product's commit and the end of the effect is the case that a restart
 * brings closest to: whatever it finds, one product per key. */
static void a_product_is_committed_once_over_restarts(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct lab *lab = lab_open_with(seed, NULL, NULL);

        lab->job = produce;
        lab_busy(lab, "a");
        lab_send(lab, "a", lab_work(1));
        for (unsigned i = 0; i < 3; i++)
            lab_reopen(lab);
        lab_advance(lab, DET_SECOND);
        assert_int_equal(lab_get(lab, "a").sequence, 3);
        assert_int_equal(lab_get(lab, "a").effects_pending, 0);
        assert_true(lab->call_count >= 1);
        lab_close(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_is_sent_to_the_instance_with_its_cause),
        cmocka_unit_test(a_product_that_the_state_does_not_take_is_reported),
        cmocka_unit_test(a_product_for_a_stopped_instance_is_reported),
        cmocka_unit_test(a_product_counts_in_a_later_visit_unless_configured_otherwise),
        cmocka_unit_test(product_is_accepted_after_a_stay_in_the_same_visit),
        cmocka_unit_test(an_effect_of_a_goto_belongs_to_the_visit_it_began),
        cmocka_unit_test(a_product_that_was_not_declared_is_reported_and_never_committed),
        cmocka_unit_test(a_product_with_an_invalid_payload_is_reported_and_never_committed),
        cmocka_unit_test(invalid_effect_result_is_a_failed_attempt),
        cmocka_unit_test(an_effect_may_send_to_its_own_and_to_other_instances),
        cmocka_unit_test(both_effects_of_a_transition_may_produce),
        cmocka_unit_test(a_product_is_committed_once_over_restarts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
