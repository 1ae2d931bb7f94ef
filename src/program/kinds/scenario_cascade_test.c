/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_cascade_test.c - a parent and its children: degraded with them, well with them, and what
 * becomes of children that are not wanted, or not now. */
#include "kinds/scenario_test.h"

#define PARENT "scenario-cascade/parent-1"

static char parent_reason[DET_WORKER_REASON_MAX + 1];

static void inspect_parent(struct play *play)
{
    struct det_worker_status status;

    if (det_workers_get(play->run->workers, PARENT, NULL, &status, NULL, NULL) == 0 &&
        strcmp(status.state, "degraded") == 0)
        play_copy(parent_reason, sizeof parent_reason, status.reason);
}

static void parent_degrades_and_recovers_with_its_children(void **state)
{
    struct play play = { 0 };

    (void)state;
    play_named(&play, "cascade");
    play_went(&play, PARENT, "trying_to_start", "running", "degraded", "running");
    for (int i = 0; i < 2; i++) {
        char id[64];

        (void)snprintf(id, sizeof id, "%s/child-%d", PARENT, i);
        assert_true(play_count(&play, DET_WORKER_EVENT_ACTION_FAILED, id, "connect") >= 6);
        play_went(&play, id, "connected", "disconnected", "trying_to_connect", "connected");
    }
    play_close(&play);
}

static void children_fail_and_recover_independently(void **state)
{
    struct play play = { 0 };
    size_t first, second;

    (void)state;
    play_named(&play, "cascade");
    first = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, PARENT "/child-0", "connected");
    second = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, PARENT "/child-1", "connected");
    assert_true(first < play.count && second < play.count);
    /* By chance, as each has its own delays. */
    assert_true(play.reported[first].at != play.reported[second].at);
    play_close(&play);
}

static void parent_reason_is_current(void **state)
{
    struct play whole = { 0 }, part = { 0 };
    det_time degraded;

    (void)state;
    play_named(&whole, "cascade");
    degraded =
        whole.reported[play_find(&whole, 0, DET_WORKER_EVENT_TRANSITION, PARENT, "degraded")].at;
    part.at = degraded + DET_SECOND;
    part.act = inspect_parent;
    parent_reason[0] = '\0';
    play_named(&part, "cascade");
    assert_non_null(strstr(parent_reason, " of 2 children are not healthy"));
    play_close(&whole);
    play_close(&part);
}

static void take_children_away(struct play *play)
{
    assert_int_equal(
        det_workers_apply(
            play->run->workers,
            "variables: { IP: 1.2.3.4, PORT: 5 }\n"
            "children:\n"
            "  - { name: parent-1, kind: exampleparent, config: { children_count: 0 } }\n",
            NULL),
        0);
}

static void children_removed_from_the_set_are_deleted(void **state)
{
    struct play play = { .at = 10 * DET_SECOND, .act = take_children_away };
    size_t gone;

    (void)state;
    play_named(&play, "simple");
    gone = play_find(&play, 0, DET_WORKER_EVENT_REMOVED, "scenario-simple/parent-1/child-0", NULL);
    assert_true(gone < play.count);
    assert_true(play.reported[gone].at < 14 * DET_SECOND);
    play_went(&play, "scenario-simple/parent-1/child-0", "connected", "trying_to_stop", "stopped");
    gone = play_find(&play, 0, DET_WORKER_EVENT_REMOVED, "scenario-simple/parent-1", NULL);
    assert_true(play.reported[gone].at > 44 * DET_SECOND);
    play_close(&play);
}

static struct det_worker_status disabled, running;

static void inspect_noops(struct play *play)
{
    struct det_workers *workers = play->run->workers;

    assert_int_equal(
        det_workers_get(workers, "scenario-noop/noop-1", NULL, &running, NULL, NULL), 0);
    assert_int_equal(
        det_workers_get(workers, "scenario-noop/noop-2", NULL, &disabled, NULL, NULL), 0);
}

static void disabled_child_exists_and_stays_stopped(void **state)
{
    struct play play = { .at_end = inspect_noops };

    (void)state;
    play_named(&play, "noop");
    assert_string_equal(running.state, "running");
    assert_string_equal(disabled.state, "stopped");
    assert_true(disabled.is_disabled);
    assert_int_equal(
        play_count(&play, DET_WORKER_EVENT_TRANSITION, "scenario-noop/noop-2", NULL), 0);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_ADDED, "scenario-noop/noop-2", NULL), 1);
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parent_degrades_and_recovers_with_its_children),
        cmocka_unit_test(children_fail_and_recover_independently),
        cmocka_unit_test(parent_reason_is_current),
        cmocka_unit_test(children_removed_from_the_set_are_deleted),
        cmocka_unit_test(disabled_child_exists_and_stays_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
