/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_communicator_test.c - the scenario of the communicator: virtual time, real HTTP. */
#include "kinds/scenario_test.h"

#define ID "scenario-communicator/communicator"

static void messages_pass_both_ways_and_survive_an_outage(void **state)
{
    struct play play = { 0 };

    (void)state;
    play_named(&play, "communicator");
    play_went(&play, ID, "authenticating", "syncing", "stopped");
    assert_non_null(strstr(play.notes, "content=one"));
    assert_non_null(strstr(play.notes, "content=two"));
    assert_non_null(strstr(play.notes, "content=three"));
    assert_non_null(strstr(play.notes, "relay_killed"));
    assert_non_null(strstr(play.notes, "auth_calls=1 pushed=3 received=3"));
    /* A failure of the relay is not a failure of an action. */
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_ACTION_FAILED, NULL, NULL), 0);
    /* Neither of the two tokens is recorded. */
    assert_non_null(strstr(play.documents, "has_token"));
    assert_null(strstr(play.documents, "scenario-token"));
    assert_null(strstr(play.documents, "mock.1"));
    play_close(&play);
}

static void the_same_seed_is_the_same_run(void **state)
{
    struct play first = { .seed = 11 }, second = { .seed = 11 };

    (void)state;
    play_named(&first, "communicator");
    play_named(&second, "communicator");
    assert_int_equal(first.count, second.count);
    assert_memory_equal(first.reported, second.reported, first.count * sizeof *first.reported);
    assert_string_equal(first.notes, second.notes);
    play_close(&first);
    play_close(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_pass_both_ways_and_survive_an_outage),
        cmocka_unit_test(the_same_seed_is_the_same_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
