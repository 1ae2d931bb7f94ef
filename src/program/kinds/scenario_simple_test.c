/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_simple_test.c - the scenario `simple`: children follow their parent, round by round. */
#include "kinds/scenario_test.h"

#define PARENT "scenario-simple/parent-1"
#define CHILD0 PARENT "/child-0"
#define CHILD1 PARENT "/child-1"

static struct play play;

static int open_suite(void **state)
{
    (void)state;
    play_named(&play, "simple");
    return 0;
}

static int close_suite(void **state)
{
    (void)state;
    play_close(&play);
    return 0;
}

static void both_children_are_added_and_connect(void **state)
{
    (void)state;
    assert_true(play_count(&play, DET_WORKER_EVENT_CHILD_ADDING, NULL, NULL) >= 2);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_CHILD_ADDING, CHILD0, NULL), 1);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_CHILD_ADDING, CHILD1, NULL), 1);
    play_went(&play, CHILD0, "trying_to_connect", "connected");
    play_went(&play, CHILD1, "trying_to_connect", "connected");
}

static void no_child_moves_before_its_parent_starts(void **state)
{
    size_t parent = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, PARENT, "trying_to_start");
    size_t first = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, CHILD0, NULL);
    size_t second = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, CHILD1, NULL);

    (void)state;
    assert_true(parent < first && first < play.count);
    assert_true(parent < second && second < play.count);
    /* It has rested for 5 s. */
    assert_true(play.reported[parent].at >= 5 * DET_SECOND);
    assert_true(play.reported[parent].at < 6 * DET_SECOND);
}

static void children_stop_when_their_parent_does(void **state)
{
    size_t parent = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, PARENT, "trying_to_stop");
    size_t stopped = play_find(&play, parent, DET_WORKER_EVENT_TRANSITION, PARENT, "stopped");
    size_t first = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, CHILD0, "trying_to_stop");
    size_t second = play_find(&play, first, DET_WORKER_EVENT_TRANSITION, CHILD0, "stopped");

    (void)state;
    assert_true(parent < first && first < second && second < stopped && stopped < play.count);
    second = play_find(&play, parent, DET_WORKER_EVENT_TRANSITION, CHILD1, "stopped");
    assert_true(parent < second && second < stopped);
}

static void parent_repeats_its_cycle(void **state)
{
    size_t running = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, PARENT, "running");
    size_t stopping = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, PARENT, "trying_to_stop");

    (void)state;
    play_went(
        &play, PARENT, "trying_to_start", "running", "trying_to_stop", "stopped", "trying_to_start",
        "running", "trying_to_stop", "stopped");
    assert_true(play.reported[stopping].at - play.reported[running].at >= 10 * DET_SECOND);
    assert_true(play.reported[stopping].at - play.reported[running].at < 11 * DET_SECOND);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_TRANSITION, PARENT, "degraded"), 0);
}

static void every_line_has_the_path_of_a_worker(void **state)
{
    (void)state;
    for (size_t i = 0; i < play.count; i++) {
        const struct reported *reported = &play.reported[i];

        assert_int_equal(strncmp(reported->path, "scenario-simple(application)", 28), 0);
        assert_int_equal(strncmp(reported->id, "scenario-simple", 15), 0);
    }
    play_find(&play, 0, DET_WORKER_EVENT_ADDED, CHILD0, NULL);
    assert_string_equal(
        play.reported[play_find(&play, 0, DET_WORKER_EVENT_ADDED, CHILD0, NULL)].path,
        "scenario-simple(application)/parent-1(exampleparent)/child-0(examplechild)");
}

static void nothing_fails_and_all_stop_cleanly(void **state)
{
    (void)state;
    for (size_t i = 0; i < play.count; i++)
        assert_int_not_equal(det_scenario_level_of(play.reported[i].kind), DET_SCENARIO_ERROR);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_STOP_TIMEOUT, NULL, NULL), 0);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_REMOVED, NULL, NULL), 4);
    assert_true(play.ended - play.began < 50 * DET_SECOND);
}

static void times_and_stored_ids_are_right(void **state)
{
    det_time last = 0;
    unsigned documents = 0;

    (void)state;
    for (size_t i = 0; i < play.count; i++) {
        assert_true(play.reported[i].at >= last);
        last = play.reported[i].at;
    }
    for (const char *line = play.documents; *line; line = strchr(line, '\n') + 1) {
        char kind[65], id[513], role[16];

        assert_int_equal(sscanf(line, "%64s %512s %15s", kind, id, role), 3);
        assert_int_equal(strncmp(id, "scenario-simple", 15), 0);
        if (strcmp(role, "observed") == 0) {
            const char *text = strstr(line, "\"state\":");
            const char *since = strstr(line, "\"since\":");

            assert_true(text && text < strchr(line, '\n') && text[8] == '"' && text[9] != '"');
            assert_true(since && strncmp(since + 8, "\"2026-01-01T00:00:", 17) == 0);
        }
        documents++;
    }
    assert_true(documents >= 4 * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_children_are_added_and_connect),
        cmocka_unit_test(no_child_moves_before_its_parent_starts),
        cmocka_unit_test(children_stop_when_their_parent_does),
        cmocka_unit_test(parent_repeats_its_cycle),
        cmocka_unit_test(every_line_has_the_path_of_a_worker),
        cmocka_unit_test(nothing_fails_and_all_stop_cleanly),
        cmocka_unit_test(times_and_stored_ids_are_right),
    };

    return cmocka_run_group_tests(tests, open_suite, close_suite);
}
