/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_retry_test.c - actions that fail are tried again, each after a growing, jittered delay
 * of its own. */
#include "worker/behaviour_test.h"

static struct det_next do_it(int action)
{
    return (struct det_next){ DET_NEXT_DO, (uint16_t)action, "is wanted" };
}

/* While it works it always wants `one`; what it decides by is newer than what it did. */
static struct det_next want_one(const struct det_worker_view *view)
{
    if (view->last_action->action)
        assert_true(view->stop_wanted || view->observed_at >= view->last_action->at);
    return view->state == PUPPET_WORKING ? do_it(PUPPET_ONE) : puppet_walk(view);
}

static void begin_with(
    struct lab *lab, uint64_t seed, struct det_next (*next)(const struct det_worker_view *view))
{
    lab_open(lab, behaviour_options(seed));
    puppet.next = next;
    lab_apply(lab, LAB_PUPPET);
}

/* The delays between the starts of an action that fails at once, in milliseconds. */
static void retry_delays(uint64_t seed, det_time *delays, unsigned count)
{
    struct lab lab;

    begin_with(&lab, seed, want_one);
    puppet.code = DET_ERR_IO;
    lab_run(&lab, 400 * DET_SECOND);
    for (unsigned i = 0; i < count; i++)
        delays[i] = reported_nth(&lab, DET_WORKER_EVENT_ACTION_ENQUEUED, "lab/p", i + 2)->at -
                    reported_nth(&lab, DET_WORKER_EVENT_ACTION_FAILED, "lab/p", i + 1)->at;
    assert_int_equal(reported_nth(&lab, DET_WORKER_EVENT_ACTION_FAILED, "lab/p", 3)->number, 3);
    lab_close(&lab);
}

static void an_action_that_fails_is_tried_again_after_growing_jittered_delays(void **state)
{
    det_time first[9], delays[9];
    unsigned different = 0;

    (void)state;
    retry_delays(1, first, 9);
    for (uint64_t seed = 2; seed <= 6; seed++) {
        retry_delays(seed, delays, 9);
        for (unsigned i = 0; i < 9; i++) {
            det_time base = i < 6 ? DET_SECOND << i : 60 * DET_SECOND;

            /* Up to a tick and the wait for an observation on top. */
            assert_in_range(
                delays[i] / DET_MILLISECOND, base / 2 / DET_MILLISECOND,
                base / DET_MILLISECOND + 200);
            different += delays[i] != first[i];
        }
    }
    assert_true(different > 20);
}

SENTENCE(next_is_still_called_during_the_backoff_of_an_action)
{
    struct lab lab;
    uint32_t nexts, acts;

    begin_with(&lab, seed, want_one);
    puppet.code = DET_ERR_IO;
    lab_run(&lab, 200 * DET_SECOND);
    while (lab_status(&lab, "lab/p").is_action_pending)
        lab_run(&lab, 100 * DET_MILLISECOND);
    lab_run(&lab, DET_SECOND);
    nexts = puppet.nexts;
    acts = puppet.acts[PUPPET_ONE];
    lab_run(&lab, 10 * DET_SECOND);
    if (puppet.acts[PUPPET_ONE] == acts)
        assert_int_equal(puppet.nexts, nexts + 100);
    else
        assert_true(puppet.nexts > nexts + 90);
    lab_close(&lab);
}

static int only_one_fails(struct det_worker_context *context, int action)
{
    return action == PUPPET_ONE ? det_worker_fail(context, DET_ERR_IO, "no route") : 0;
}

static struct det_next first_one_then_two(const struct det_worker_view *view)
{
    if (view->state != PUPPET_WORKING)
        return puppet_walk(view);
    if (view->last_action->action && !strcmp(view->last_action->action, "one")) {
        assert_int_equal(view->last_action->code, DET_ERR_IO);
        assert_string_equal(view->last_action->text, "no route");
        return do_it(PUPPET_TWO);
    }
    return do_it(PUPPET_ONE);
}

SENTENCE(each_action_has_its_own_backoff)
{
    struct lab lab;

    begin_with(&lab, seed, first_one_then_two);
    puppet.act = only_one_fails;
    lab_run(&lab, 30 * DET_SECOND);
    assert_in_range(puppet.acts[PUPPET_ONE], 4, 8);
    assert_in_range(puppet.acts[PUPPET_TWO], puppet.acts[PUPPET_ONE] - 1, puppet.acts[PUPPET_ONE]);
    /* `two` follows at once, whatever the delay of `one`. */
    for (uint32_t i = 1; i < puppet.acts[PUPPET_TWO]; i++) {
        const struct reported *failed =
            reported_nth(&lab, DET_WORKER_EVENT_ACTION_FAILED, "lab/p", i);
        const struct reported *done =
            reported_nth(&lab, DET_WORKER_EVENT_ACTION_COMPLETED, "lab/p", i);

        assert_true(done->at - failed->at <= 1100 * DET_MILLISECOND);
    }
    lab_close(&lab);
}

SENTENCE(success_resets_the_action_backoff)
{
    struct lab lab;
    uint32_t failed;
    det_time at;

    begin_with(&lab, seed, want_one);
    puppet.code = DET_ERR_IO;
    lab_run(&lab, 100 * DET_SECOND);
    puppet.code = 0;
    lab_run(&lab, 70 * DET_SECOND);
    assert_true(lab_status(&lab, "lab/p").counts.actions_done > 5);
    assert_int_equal(lab_status(&lab, "lab/p").counts.failures, 0);
    failed = reported_times(DET_WORKER_EVENT_ACTION_FAILED, "lab/p");
    puppet.code = DET_ERR_IO;
    lab_run(&lab, 10 * DET_SECOND);
    at = reported_nth(&lab, DET_WORKER_EVENT_ACTION_FAILED, "lab/p", failed + 1)->at;
    assert_int_equal(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_FAILED, "lab/p", failed + 1)->number, 1);
    assert_in_range(
        (reported_nth(&lab, DET_WORKER_EVENT_ACTION_FAILED, "lab/p", failed + 2)->at - at) /
            DET_MILLISECOND,
        500, 1200);
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_action_that_fails_is_tried_again_after_growing_jittered_delays),
        cmocka_unit_test(next_is_still_called_during_the_backoff_of_an_action),
        cmocka_unit_test(each_action_has_its_own_backoff),
        cmocka_unit_test(success_resets_the_action_backoff),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
