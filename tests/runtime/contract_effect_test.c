/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_effect_test.c - effects: keys, attempts, backoff in virtual time, deadline, dead
 * letters, what is left of them in the store. */
#include "runtime/contract_test.h"

static int fail_always(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)lab;
    (void)call;
    (void)ret;
    return DET_ERR_IO;
}

static int fail_twice(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)lab;
    if (call->attempt <= 2)
        return DET_ERR_IO;
    *ret = probe_worked((struct load){ .amount = call->attempt });
    return DET_EFFECT_PRODUCED;
}

static struct lab *open_without_jitter(struct det_effect_policy policy)
{
    policy.jitter_percent = UINT32_MAX;
    return lab_open_with(1, NULL, &(struct det_runtime_options){ .effects = policy });
}

static void a_key_is_machine_instance_sequence_and_index(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "order-42");
    lab_send(lab, "order-42", probe_touch());
    lab_send(lab, "order-42", probe_pair());
    lab_settle(lab);
    assert_int_equal(lab->call_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct lab_call *call = &lab->calls[i];
        bool is_job = strcmp(call->effect, "job") == 0;

        assert_string_equal(call->key + 17, is_job ? "probe/order-42/3/0" : "probe/order-42/3/1");
        assert_int_equal(call->attempt, 1);
        assert_int_equal(call->now, lab_wall(lab));
        assert_int_equal(call->move.sequence, 3);
        assert_int_equal(call->move.visit, 2);
        assert_int_equal(call->move.from, PROBE_BUSY);
        assert_int_equal(call->move.to, PROBE_BUSY);
    }
    assert_string_not_equal(lab->calls[0].key, lab->calls[1].key);
    assert_int_equal(lab_counts(lab).effects_done, 2);
    assert_int_equal(lab_get(lab, "order-42").effects_pending, 0);
    lab_close(lab);
}

static void an_effect_sees_the_event_that_asked_for_it(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(11));
    lab_send(lab, "a", lab_work(12));
    lab_settle(lab);
    assert_int_equal(lab->call_count, 2);
    assert_int_equal(lab->calls[0].amount + lab->calls[1].amount, 23);
    lab_close(lab);
}

static void backoff_begins_at_100_ms_and_doubles_for_eight_attempts(void **unused)
{
    struct lab *lab = open_without_jitter((struct det_effect_policy){ 0 });
    det_time begun, wait = 0;

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    begun = lab_wall(lab);
    lab_send(lab, "a", lab_work(1));
    lab_send(lab, "a", probe_rest());
    lab_advance(lab, 25 * DET_SECOND);
    assert_int_equal(lab->call_count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(lab->calls[i].attempt, i + 1);
        assert_string_equal(lab->calls[i].key + 17, "probe/a/2/0");
        assert_int_equal(lab->calls[i].now - begun, wait);
        wait += (100 * DET_MILLISECOND) << i;
    }
    lab_advance(lab, DET_DAY);
    assert_int_equal(lab->call_count, 8);
    lab_close(lab);
}

static void backoff_grows_to_its_maximum(void **unused)
{
    static const det_time waits[] = { 0, 3, 6, 10, 10, 10 };
    struct lab *lab = open_without_jitter((struct det_effect_policy){
        .attempts_max = 6, .backoff_first = 3 * DET_SECOND, .backoff_max = 10 * DET_SECOND });
    det_time at;

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    at = lab_wall(lab);
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, DET_HOUR);
    assert_int_equal(lab->call_count, 6);
    for (size_t i = 0; i < 6; i++) {
        at += waits[i] * DET_SECOND;
        assert_int_equal(lab->calls[i].now, at);
    }
    lab_close(lab);
}

/* The first attempt and the third for long, the second for less than the backoff. */
static int fail_with_a_wish(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)lab;
    (void)ret;
    call->retry_after = call->attempt % 2 ? call->attempt * DET_MINUTE : DET_MILLISECOND;
    return DET_ERR_IO;
}

static void attempt_can_set_the_delay_of_the_next(void **unused)
{
    static const det_time waits[] = { 0, 60, 3, 180 };
    struct lab *lab = open_without_jitter((struct det_effect_policy){
        .attempts_max = 4, .backoff_first = 3 * DET_SECOND, .backoff_max = 3 * DET_SECOND });
    det_time at;

    (void)unused;
    lab->job = fail_with_a_wish;
    lab_busy(lab, "a");
    at = lab_wall(lab);
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, DET_HOUR);
    assert_int_equal(lab->call_count, 4);
    for (size_t i = 0; i < 4; i++) {
        at += waits[i] * DET_SECOND;
        assert_int_equal(lab->calls[i].now, at);
    }
    lab_close(lab);
}

/* Only "job" has one of its own. */
static const struct det_effect_policy *policy_of(
    void *user, const struct det_machine *machine, unsigned effect)
{
    static const struct det_effect_policy own = { .attempts_max = 2,
                                                  .backoff_first = 7 * DET_SECOND,
                                                  .jitter_percent = UINT32_MAX };

    (void)user;
    return strcmp(machine->effects[effect].name, "job") == 0 ? &own : NULL;
}

/* The process has no descriptor for it, say, for some seconds. */
static int postpone(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    if (call->now < *(const det_time *)lab->context) {
        snprintf(call->reason, DET_REASON_MAX, "no descriptor");
        return DET_EFFECT_POSTPONED;
    }
    *ret = probe_worked((struct load){ .amount = call->attempt });
    return DET_EFFECT_PRODUCED;
}

static void postponed_attempt_is_not_counted_and_repeats_each_second(void **unused)
{
    struct lab *lab = open_without_jitter((struct det_effect_policy){ .attempts_max = 2 });
    det_time until;

    (void)unused;
    lab->job = postpone;
    lab->context = &until;
    lab_busy(lab, "a");
    until = lab_wall(lab) + 20 * DET_SECOND;
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, 19 * DET_SECOND);
    assert_in_range(lab->call_count, 15, 20);
    for (size_t i = 0; i < lab->call_count; i++)
        assert_int_equal(lab->calls[i].attempt, 1);
    assert_int_equal(lab_counts(lab).effects_failed, 0);
    assert_int_equal(lab_counts(lab).effects_dead, 0);
    assert_int_equal(lab_get(lab, "a").effects_pending, 1);
    lab_advance(lab, 2 * DET_SECOND);
    assert_int_equal(lab_counts(lab).effects_done, 1);
    assert_int_equal(lab_get(lab, "a").effects_pending, 0);
    lab_close(lab);
}

static void an_effect_may_have_a_policy_of_its_own(void **unused)
{
    struct lab *lab =
        lab_open_with(1, NULL, &(struct det_runtime_options){ .effect_policy = policy_of });
    det_time begun;

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    begun = lab_wall(lab);
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, DET_HOUR);
    assert_int_equal(lab->call_count, 2);
    assert_int_equal(lab->calls[1].now - begun, 7 * DET_SECOND);
    assert_int_equal(lab_counts(lab).effects_dead, 1);
    lab_close(lab);
}

static void the_default_maximum_of_backoff_is_30_seconds(void **unused)
{
    struct lab *lab = open_without_jitter(
        (struct det_effect_policy){ .attempts_max = 4, .backoff_first = 20 * DET_SECOND });

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, DET_HOUR);
    assert_int_equal(lab->call_count, 4);
    assert_int_equal(lab->calls[1].now - lab->calls[0].now, 20 * DET_SECOND);
    assert_int_equal(lab->calls[2].now - lab->calls[1].now, 30 * DET_SECOND);
    assert_int_equal(lab->calls[3].now - lab->calls[2].now, 30 * DET_SECOND);
    lab_close(lab);
}

static void jitter_is_added_on_top_of_backoff_up_to_its_percentage(void **unused)
{
    bool has_some = false;

    (void)unused;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct lab *lab = lab_open_with(seed, NULL, &(struct det_runtime_options){ 0 });

        lab->job = fail_always;
        lab_busy(lab, "a");
        lab_send(lab, "a", lab_work(1));
        lab_advance(lab, DET_HOUR);
        assert_int_equal(lab->call_count, 8);
        for (unsigned i = 1; i < 8; i++) {
            det_time base = (100 * DET_MILLISECOND) << (i - 1);
            det_time wait = lab->calls[i].now - lab->calls[i - 1].now;

            assert_true(wait >= base);
            assert_true(wait <= base + base / 5);
            has_some = has_some || wait > base + base / 10;
        }
        lab_close(lab);
    }
    assert_true(has_some);
}

static void jitter_is_added_to_a_requested_retry_delay(void **unused)
{
    const struct det_runtime_options twice = { .effects = { .attempts_max = 2 } };
    bool has_some = false;

    (void)unused;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct lab *lab = lab_open_with(seed, NULL, &twice);
        det_time wait;

        lab->job = fail_with_a_wish;
        lab_busy(lab, "a");
        lab_send(lab, "a", lab_work(1));
        lab_advance(lab, DET_HOUR);
        assert_int_equal(lab->call_count, 2);
        wait = lab->calls[1].now - lab->calls[0].now;
        assert_true(wait >= DET_MINUTE);
        assert_true(wait <= DET_MINUTE + DET_MINUTE / 5);
        has_some = has_some || wait > DET_MINUTE + DET_MINUTE / 10;
        lab_close(lab);
    }
    assert_true(has_some);
}

static void no_attempt_starts_past_the_effect_deadline(void **unused)
{
    struct lab *lab =
        open_without_jitter((struct det_effect_policy){ .deadline = 250 * DET_MILLISECOND });

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, DET_MINUTE);
    assert_int_equal(lab->call_count, 2);
    assert_int_equal(lab_incidents(lab, DET_INCIDENT_EFFECT_DEAD), 1);
    assert_int_equal(lab_counts(lab).effects_dead, 1);
    lab_close(lab);
}

static void each_failed_attempt_is_reported_and_the_last_is_a_dead_letter(void **unused)
{
    struct lab *lab = open_without_jitter((struct det_effect_policy){ .attempts_max = 3 });

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, DET_SECOND);
    assert_int_equal(lab->incident_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct lab_incident *reported = &lab->incidents[i];

        assert_int_equal(
            reported->incident.kind, i < 2 ? DET_INCIDENT_EFFECT_FAILED : DET_INCIDENT_EFFECT_DEAD);
        assert_string_equal(reported->instance, "a");
        assert_string_equal(reported->name, "job");
        assert_string_equal(reported->key + 17, "probe/a/2/0");
        assert_int_equal(reported->incident.attempt, i + 1);
        assert_int_equal(reported->incident.code, DET_ERR_IO);
        assert_ptr_equal(reported->incident.machine, &probe_machine);
    }
    assert_int_equal(lab_counts(lab).effects_dead, 1);
    assert_in_range(lab_counts(lab).effects_failed, 2, 3);
    assert_int_equal(lab_counts(lab).effects_done, 0);
    lab_close(lab);
}

struct seen_effect {
    struct det_pending_effect row;
    char key[160];
    size_t count;
};

static int see_effect(void *context, const struct det_pending_effect *row)
{
    struct seen_effect *seen = context;

    seen->row = *row;
    snprintf(seen->key, sizeof seen->key, "%s", row->key);
    seen->count++;
    return 0;
}

static struct seen_effect inspect(struct lab *lab, const char *instance)
{
    struct seen_effect seen = { 0 };

    assert_int_equal(
        det_runtime_effects(lab->runtime, &probe_machine, instance, see_effect, &seen, NULL), 0);
    return seen;
}

static void a_pending_effect_shows_its_state(void **unused)
{
    struct lab *lab = open_without_jitter((struct det_effect_policy){ .attempts_max = 3 });
    struct seen_effect seen;

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, 150 * DET_MILLISECOND);
    seen = inspect(lab, "a");
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.key + 17, "probe/a/2/0");
    assert_int_equal(seen.row.state, DET_EFFECT_STATE_WAITING);
    assert_int_equal(seen.row.attempts, 2);
    assert_int_equal(seen.row.last_error, DET_ERR_IO);
    assert_int_equal(seen.row.next, lab_wall(lab) + 150 * DET_MILLISECOND);
    assert_int_equal(lab_get(lab, "a").effects_pending, 1);
    lab_advance(lab, DET_SECOND);
    seen = inspect(lab, "a");
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.row.state, DET_EFFECT_STATE_DEAD);
    assert_int_equal(seen.row.attempts, 3);
    assert_int_equal(seen.row.last_error, DET_ERR_IO);
    assert_int_equal(lab_get(lab, "a").effects_pending, 0);
    lab_reopen(lab);
    assert_int_equal(inspect(lab, "a").row.state, DET_EFFECT_STATE_DEAD);
    lab_advance(lab, DET_HOUR);
    assert_int_equal(lab->call_count, 3);
    lab_close(lab);
}

static int look_while_running(
    struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)call;
    (void)ret;
    lab_nap(lab, DET_SECOND);
    return DET_EFFECT_DONE;
}

static void a_running_effect_is_listed_as_running(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab->job = look_while_running;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, DET_SECOND / 2);
    assert_int_equal(inspect(lab, "a").row.state, DET_EFFECT_STATE_RUNNING);
    assert_int_equal(lab_get(lab, "a").effects_pending, 1);
    lab_advance(lab, DET_SECOND);
    assert_int_equal(inspect(lab, "a").count, 0);
    lab_close(lab);
}

static void the_next_runtime_continues_with_the_same_key(void **unused)
{
    struct lab *lab = open_without_jitter((struct det_effect_policy){ 0 });

    (void)unused;
    lab->job = fail_twice;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_settle(lab);
    assert_int_equal(lab->call_count, 1);
    lab_reopen(lab);
    assert_int_equal(lab_get(lab, "a").effects_pending, 1);
    lab_advance(lab, 10 * DET_SECOND);
    assert_int_equal(lab->call_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(lab->calls[i].key + 17, "probe/a/2/0");
        assert_int_equal(lab->calls[i].attempt, i + 1);
    }
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    assert_int_equal(lab_get(lab, "a").effects_pending, 0);
    lab_close(lab);
}

static void more_pending_effects_than_the_limit_are_refused(void **unused)
{
    struct lab *lab = open_without_jitter(
        (struct det_effect_policy){ .backoff_first = DET_HOUR, .backoff_max = DET_HOUR });

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    for (unsigned i = 0; i < DET_EFFECTS_PENDING - 1; i++)
        lab_send(lab, "a", lab_work(i));
    lab_settle(lab);
    assert_int_equal(probe_send(lab->runtime, "a", probe_pair(), NULL), DET_ERR_LIMIT);
    assert_int_equal(lab_get(lab, "a").sequence, DET_EFFECTS_PENDING);
    lab_send(lab, "a", lab_work(1));
    assert_int_equal(lab_get(lab, "a").effects_pending, DET_EFFECTS_PENDING);
    assert_int_equal(probe_send(lab->runtime, "a", lab_work(1), NULL), DET_ERR_LIMIT);
    assert_int_equal(lab_get(lab, "a").sequence, DET_EFFECTS_PENDING + 1);
    assert_int_equal(lab_get(lab, "a").effects_pending, DET_EFFECTS_PENDING);
    lab_close(lab);
}

static void at_most_dead_max_dead_effects_are_kept(void **unused)
{
    struct lab *lab = open_without_jitter((struct det_effect_policy){ .attempts_max = 1 });
    struct lab_picture *picture;

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    for (unsigned i = 0; i < DET_DEAD_MAX; i++) {
        lab_send(lab, "a", lab_work(i));
        lab_settle(lab);
    }
    assert_int_equal(inspect(lab, "a").count, DET_DEAD_MAX);
    lab_send(lab, "a", lab_work(1));
    lab_settle(lab);
    assert_int_equal(inspect(lab, "a").count, DET_DEAD_MAX);
    assert_int_equal(lab_counts(lab).effects_dead, DET_DEAD_MAX + 1);
    picture = lab_picture(lab, "a");
    assert_null(strstr(picture->text, "probe/a/2/0 "));
    assert_non_null(strstr(picture->text, "probe/a/66/0 "));
    free(picture);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_machine_instance_sequence_and_index),
        cmocka_unit_test(an_effect_sees_the_event_that_asked_for_it),
        cmocka_unit_test(backoff_begins_at_100_ms_and_doubles_for_eight_attempts),
        cmocka_unit_test(backoff_grows_to_its_maximum),
        cmocka_unit_test(attempt_can_set_the_delay_of_the_next),
        cmocka_unit_test(postponed_attempt_is_not_counted_and_repeats_each_second),
        cmocka_unit_test(an_effect_may_have_a_policy_of_its_own),
        cmocka_unit_test(the_default_maximum_of_backoff_is_30_seconds),
        cmocka_unit_test(jitter_is_added_on_top_of_backoff_up_to_its_percentage),
        cmocka_unit_test(jitter_is_added_to_a_requested_retry_delay),
        cmocka_unit_test(no_attempt_starts_past_the_effect_deadline),
        cmocka_unit_test(each_failed_attempt_is_reported_and_the_last_is_a_dead_letter),
        cmocka_unit_test(a_pending_effect_shows_its_state),
        cmocka_unit_test(a_running_effect_is_listed_as_running),
        cmocka_unit_test(the_next_runtime_continues_with_the_same_key),
        cmocka_unit_test(more_pending_effects_than_the_limit_are_refused),
        cmocka_unit_test(at_most_dead_max_dead_effects_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
