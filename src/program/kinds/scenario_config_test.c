/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_config_test.c - the scenarios of configs and variables, and those of many, of moods, of
 * what is kept, of what comes and goes. */
#include <detent/driver/loop.h>
#include <detent/tool/workers.h>

#include "base/memory.h"
#include "kinds/scenario_test.h"

static struct det_worker_status seen[4];
static const char *const bad_ids[] = { "scenario-configerror/valid",
                                       "scenario-configerror/bad-count",
                                       "scenario-configerror/empty",
                                       "scenario-configerror/bad-failures" };

static void inspect_configs(struct play *play)
{
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            det_workers_get(play->run->workers, bad_ids[i], NULL, &seen[i], NULL, NULL), 0);
}

static void bad_config_affects_only_its_own_worker(void **state)
{
    struct play play = { .at_end = inspect_configs, .duration = 12 * DET_SECOND };

    (void)state;
    play_named(&play, "configerror");
    assert_string_equal(seen[0].state, "running");
    assert_int_equal(seen[0].child_count, 2);
    assert_string_equal(seen[0].degraded_by, "");
    assert_int_equal(seen[1].child_count, 0);
    assert_non_null(strstr(seen[1].degraded_by, "children_count"));
    assert_string_equal(seen[2].state, "running");
    assert_int_equal(seen[2].child_count, 0);
    assert_non_null(strstr(seen[3].degraded_by, "max_failures"));
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_DERIVE_FAILED, bad_ids[1], NULL), 1);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_DERIVE_FAILED, bad_ids[3], NULL), 1);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_DERIVE_FAILED, NULL, NULL), 2);
    play_close(&play);
}

static void correct_the_count(struct play *play)
{
    assert_int_equal(
        det_workers_apply(
            play->run->workers,
            "variables: { IP: 1.2.3.4, PORT: 5 }\n"
            "children:\n"
            "  - { name: bad-count, kind: exampleparent, config: { children_count: 1 } }\n",
            NULL),
        0);
}

static void corrected_config_takes_effect(void **state)
{
    struct play play = { .at = 5 * DET_SECOND, .act = correct_the_count };

    (void)state;
    play_named(&play, "configerror");
    play_went(&play, "scenario-configerror/bad-count/child-0", "connected");
    play_close(&play);
}

static char shown[4096];

static void show_child(struct play *play)
{
    char *text;
    size_t size;

    assert_int_equal(
        det_workers_show(play->run->workers, "scenario-inheritance/parent-1/child-1", &text, &size),
        0);
    play_copy(shown, sizeof shown, text);
    det_free(det_allocator_default(), text, size + 1);
}

static void variables_and_location_go_down_the_tree(void **state)
{
    struct play play = { .at_end = show_child };

    (void)state;
    play_named(&play, "inheritance");
    assert_non_null(strstr(shown, "10.0.0.1:4841"));
    assert_non_null(strstr(shown, "acme.north.press/press-line/device-1"));
    play_went(&play, "scenario-inheritance/parent-1/child-0", "connected");
    play_close(&play);
}

static void five_workers_run_concurrently(void **state)
{
    struct play play = { 0 };

    (void)state;
    play_named(&play, "concurrent");
    for (int i = 1; i <= 5; i++) {
        char id[64];

        (void)snprintf(id, sizeof id, "scenario-concurrent/hello-%d", i);
        play_went(&play, id, "trying_to_start", "running", "stopped");
    }
    for (size_t i = 0; i < play.count; i++)
        assert_int_not_equal(det_scenario_level_of(play.reported[i].kind), DET_SCENARIO_ERROR);
    play_close(&play);
}

static void write_mood(struct play *play, const char *text)
{
    struct det_world *world = play->run->world;
    struct det_file *file;

    assert_int_equal(det_file_open(world, "mood", DET_FILE_WRITE | DET_FILE_CREATE, &file), 0);
    assert_int_equal(det_file_truncate(world, file, 0), 0);
    assert_int_equal(det_file_write(world, file, 0, text, strlen(text)), 0);
    det_file_close(world, file);
}

static void be_happy(void *argument)
{
    write_mood(argument, "happy\n");
}

static struct det_timer happy_timer;

static void be_sad(struct play *play)
{
    write_mood(play, "sad\n");
    happy_timer = (struct det_timer){ .run = be_happy, .argument = play };
    assert_int_equal(
        det_loop_timer_set(play->run->loop, &happy_timer, play->began + 10 * DET_SECOND), 0);
}

static void sad_mood_degrades_until_it_changes(void **state)
{
    struct play play = { .at = 5 * DET_SECOND, .act = be_sad };

    (void)state;
    play_named(&play, "helloworld");
    play_went(&play, "scenario-helloworld/hello", "running", "degraded", "running", "stopped");
    assert_int_equal(
        play_count(
            &play, DET_WORKER_EVENT_ACTION_COMPLETED, "scenario-helloworld/hello", "say_hello"),
        1);
    play_close(&play);
}

static struct det_document_position kept;

static void inspect_position(struct play *play)
{
    assert_int_equal(det_store_documents_position(play->run->store, &kept), 0);
}

static void document_history_is_compacted(void **state)
{
    struct play play = { .at_end = inspect_position };

    (void)state;
    play_named(&play, "persistence");
    assert_true(
        play_count(
            &play, DET_WORKER_EVENT_ACTION_COMPLETED, "scenario-persistence/keeper", "compact") >=
        10);
    assert_true(kept.latest > 60);
    /* Output after the last expectation is recorded, too. */
    assert_true(kept.latest + 1 - kept.oldest < 60);
    play_went(
        &play, "scenario-persistence/keeper", "trying_to_start", "running", "stopping", "stopped");
    play_close(&play);
}

static void child_is_added_changed_and_removed(void **state)
{
    struct play play = { 0 };
    const char *text;

    (void)state;
    play_named(&play, "dynamic");
    text = strstr(
        play.notes, "child_put id=scenario-dynamic/guest config=\"value: first\"\n"
                    "child_observed id=scenario-dynamic/guest value=first state=running\n"
                    "child_put id=scenario-dynamic/guest config=\"value: second\"\n"
                    "child_observed id=scenario-dynamic/guest value=second "
                    "state=running\n"
                    "child_gone id=scenario-dynamic/guest\n");
    assert_ptr_equal(text, play.notes);
    /* More than once. */
    assert_non_null(strstr(text + 1, "child_gone"));
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_config_affects_only_its_own_worker),
        cmocka_unit_test(corrected_config_takes_effect),
        cmocka_unit_test(variables_and_location_go_down_the_tree),
        cmocka_unit_test(five_workers_run_concurrently),
        cmocka_unit_test(sad_mood_degrades_until_it_changes),
        cmocka_unit_test(document_history_is_compacted),
        cmocka_unit_test(child_is_added_changed_and_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
