/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_test.c - the list of scenarios and the runner itself. */
#include "kinds/scenario_test.h"

static int do_nothing(struct det_scenario_run *run, struct det_error *reterr)
{
    (void)reterr;
    assert_non_null(run->workers);
    assert_non_null(run->store);
    assert_non_null(run->loop);
    assert_non_null(run->options);
    det_scenario_print(run, "note", "tick=%d", (int)(run->options->tick / DET_MILLISECOND));
    return 0;
}

static int fail_at_once(struct det_scenario_run *run, struct det_error *reterr)
{
    (void)run;
    return det_error_set(reterr, DET_ERR_IO, "the relay is not there");
}

static void scenario_names_are_unique_and_complete(void **state)
{
    size_t count = 0;

    (void)state;
    for (const struct det_scenario *const *list = det_scenarios(); *list; list++, count++) {
        assert_ptr_equal(det_scenario_find((*list)->name), *list);
        assert_true(strlen((*list)->summary) > 0);
        assert_true((*list)->duration > 0);
        assert_true(!(*list)->config != !(*list)->run);
    }
    assert_true(count >= 13);
    assert_null(det_scenario_find("nothing"));
    assert_string_equal(det_scenario_nearest("simpel"), "simple");
    assert_null(det_scenario_nearest("xyzxyzxyz"));
}

static void a_scenario_is_a_config_or_a_function_but_not_both(void **state)
{
    const struct det_scenario both = {
        .name = "both", .config = "children: []", .run = do_nothing, .duration = DET_SECOND
    };
    const struct det_scenario neither = { .name = "neither", .duration = DET_SECOND };
    struct play play = { 0 };

    (void)state;
    play_scenario(&play, &both);
    assert_int_equal(play.result, DET_ERR_INVALID);
    assert_string_equal(
        play.error.text, "scenario both has a config and a function: give it one of the two");
    play_close(&play);
    play = (struct play){ 0 };
    play_scenario(&play, &neither);
    assert_int_equal(play.result, DET_ERR_INVALID);
    assert_string_equal(
        play.error.text,
        "scenario neither has neither a config nor a function: give it one of the two");
    play_close(&play);
}

static void scenario_function_gets_the_workers_and_the_options(void **state)
{
    const struct det_scenario own = { .name = "own", .run = do_nothing, .duration = DET_SECOND };
    struct play play = { 0 };

    (void)state;
    play_scenario(&play, &own);
    assert_int_equal(play.result, 0);
    assert_string_equal(play.notes, "note tick=0\n");
    play_close(&play);
}

static void scenario_result_is_the_error_of_its_function(void **state)
{
    const struct det_scenario own = { .name = "own", .run = fail_at_once, .duration = DET_SECOND };
    struct play play = { 0 };

    (void)state;
    play_scenario(&play, &own);
    assert_int_equal(play.result, DET_ERR_IO);
    assert_string_equal(play.error.text, "the relay is not there");
    play_close(&play);
}

static void times_that_are_negative_are_refused(void **state)
{
    struct det_scenario_options options = { .duration = -1 };
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(
        det_scenario_run(det_scenario_find("noop"), &options, &error), DET_ERR_INVALID);
    assert_string_equal(
        error.text, "scenario noop: a duration must not be negative; 0 means no limit");
    options = (struct det_scenario_options){ .tick = -1 };
    assert_int_equal(
        det_scenario_run(det_scenario_find("noop"), &options, &error), DET_ERR_INVALID);
}

static void a_config_that_cannot_be_read_is_an_error(void **state)
{
    const struct det_scenario bad = { .name = "bad", .config = "children: {", .duration = 1 };
    struct play play = { 0 };

    (void)state;
    play_scenario(&play, &bad);
    assert_true(play.result < 0);
    assert_true(strlen(play.error.text) > 0);
    play_close(&play);
}

static void stop(struct play *play)
{
    det_scenario_stop(play->run);
}

static void stop_request_ends_a_scenario_early(void **state)
{
    struct play play = { .at = 3 * DET_SECOND, .act = stop, .duration = DET_HOUR };

    (void)state;
    play_named(&play, "concurrent");
    assert_true(play.ended - play.began < 5 * DET_SECOND);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_REMOVED, NULL, NULL), 6);
    play_close(&play);
}

static void stop_twice(struct play *play)
{
    det_scenario_stop(play->run);
    det_scenario_stop(play->run);
}

static void second_stop_request_forces_the_end_of_a_scenario(void **state)
{
    struct play play = { .at = 8 * DET_SECOND, .act = stop_twice, .duration = DET_HOUR };

    (void)state;
    play_scenario(&play, det_scenario_find("simple"));
    assert_int_equal(play.result, DET_ERR_TIMEOUT);
    assert_true(strlen(play.error.text) > 0);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_STOP_FORCED, NULL, NULL), 1);
    play_close(&play);
}

static void the_same_seed_is_the_same_run(void **state)
{
    static const char *const names[] = { "simple", "failing", "cascade", "dynamic", "persistence" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct play first = { .seed = 7 }, second = { .seed = 7 };

        play_named(&first, names[i]);
        play_named(&second, names[i]);
        assert_int_equal(first.count, second.count);
        assert_memory_equal(first.reported, second.reported, first.count * sizeof *first.reported);
        assert_true(first.hash == second.hash);
        play_close(&first);
        play_close(&second);
    }
}

static void every_scenario_ends_cleanly_for_other_seeds(void **state)
{
    (void)state;
    for (const struct det_scenario *const *list = det_scenarios(); *list; list++) {
        struct play play = { .seed = 100 };

        if ((*list)->is_real_only)
            continue;
        play_named(&play, (*list)->name);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_names_are_unique_and_complete),
        cmocka_unit_test(a_scenario_is_a_config_or_a_function_but_not_both),
        cmocka_unit_test(scenario_function_gets_the_workers_and_the_options),
        cmocka_unit_test(scenario_result_is_the_error_of_its_function),
        cmocka_unit_test(times_that_are_negative_are_refused),
        cmocka_unit_test(a_config_that_cannot_be_read_is_an_error),
        cmocka_unit_test(stop_request_ends_a_scenario_early),
        cmocka_unit_test(second_stop_request_forces_the_end_of_a_scenario),
        cmocka_unit_test(the_same_seed_is_the_same_run),
        cmocka_unit_test(every_scenario_ends_cleanly_for_other_seeds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
