/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_log_test.c - lines of a scenario: their form, their levels, what they quote. */
#include "testing/scenario_log.h"

#include "terminal/output_test.h"

static const struct det_worker_identity identity = { "plant/a", "a", "link",
                                                     "plant(application)/a(link)" };

static struct det_worker_event transition(void)
{
    return (struct det_worker_event){ .kind = DET_WORKER_EVENT_TRANSITION,
                                      .at = DET_SECOND,
                                      .wall = 3661 * DET_SECOND + 250 * DET_MILLISECOND,
                                      .identity = &identity,
                                      .from = "stopped",
                                      .to = "up",
                                      .reason = "it is \"wanted\"",
                                      .number = 1500 };
}

static void a_line_has_time_level_event_and_pairs(void **state)
{
    struct det_worker_event event = transition();
    struct scenario_log log;
    struct caught caught;

    (void)state;
    catch_output(&caught);
    scenario_log_init(&log, &caught.cli, DET_SCENARIO_INFO, true);
    scenario_log_event(&log, &event);
    event = (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_FAILED,
                                       .wall = DET_MILLISECOND,
                                       .identity = &identity,
                                       .action = "connect",
                                       .reason = "no\nroute",
                                       .code = DET_ERR_IO,
                                       .took = 1500 * DET_MICROSECOND };
    scenario_log_event(&log, &event);
    assert_int_equal(log.events, 2);
    assert_int_equal(log.failures, 1);
    expect_output(
        &caught,
        "01:01:01.250 INFO  state_transition worker=plant(application)/a(link) from=stopped to=up "
        "reason=\"it is \\\"wanted\\\"\" number=1500\n"
        "00:00:00.001 ERROR action_failed worker=plant(application)/a(link) action=connect "
        "reason=\"no\\nroute\" error=IO took=1ms\n");
}

static void events_below_the_level_are_not_shown(void **state)
{
    struct det_worker_event event = transition();
    struct scenario_log log;
    struct caught caught;

    (void)state;
    catch_output(&caught);
    scenario_log_init(&log, &caught.cli, DET_SCENARIO_WARN, false);
    scenario_log_event(&log, &event);
    event.kind = DET_WORKER_EVENT_GATE_PENDING;
    scenario_log_event(&log, &event);
    assert_int_equal(log.events, 2);
    expect_output(&caught, "");
}

static void json_object_has_the_same_fields(void **state)
{
    struct det_worker_event event = transition();
    struct scenario_log log;
    struct caught caught;

    (void)state;
    catch_output(&caught);
    caught.cli.is_json = true;
    scenario_log_init(&log, &caught.cli, DET_SCENARIO_TRACE, false);
    scenario_log_event(&log, &event);
    scenario_log_note(
        &log, &(struct det_scenario_note){ .wall = 0, .name = "counts", .text = "pushed=2" });
    expect_output(
        &caught,
        "{\"type\":\"event\",\"at\":\"1970-01-01T01:01:01.25Z\",\"level\":\"info\","
        "\"event\":\"state_transition\",\"worker\":\"plant(application)/a(link)\",\"id\":"
        "\"plant/a\",\"from\":\"stopped\",\"to\":\"up\",\"reason\":\"it is \\\"wanted\\\"\","
        "\"number\":1500}\n"
        "{\"type\":\"note\",\"at\":\"1970-01-01T00:00:00Z\",\"event\":\"counts\",\"text\":"
        "\"pushed=2\"}\n");
}

static void scenario_notes_are_output_and_signals_are_messages(void **state)
{
    struct scenario_log log;
    struct caught caught;

    (void)state;
    catch_output(&caught);
    scenario_log_init(&log, &caught.cli, DET_SCENARIO_INFO, false);
    scenario_log_note(
        &log, &(struct det_scenario_note){ .wall = 0, .name = "counts", .text = "pushed=2" });
    scenario_log_signal(&log, false);
    scenario_log_signal(&log, true);
    expect_output(
        &caught, "00:00:00.000 INFO  counts pushed=2\n"
                 "Stopping; press Ctrl-C again to stop at once.\n"
                 "Taking down what is left.\n");
}

static void levels_are_colored(void **state)
{
    struct det_worker_event event = transition();
    struct scenario_log log;
    struct caught caught;

    (void)state;
    event.from = event.to = event.reason = NULL;
    event.number = 0;
    catch_output(&caught);
    caught.cli.out_has_color = true;
    scenario_log_init(&log, &caught.cli, DET_SCENARIO_INFO, false);
    scenario_log_event(&log, &event);
    expect_output(
        &caught, "\033[2m01:01:01.250 \033[0m\033[32mINFO  \033[0m\033[1mstate_transition\033[0m "
                 "worker=plant(application)/a(link)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_time_level_event_and_pairs),
        cmocka_unit_test(events_below_the_level_are_not_shown),
        cmocka_unit_test(json_object_has_the_same_fields),
        cmocka_unit_test(scenario_notes_are_output_and_signals_are_messages),
        cmocka_unit_test(levels_are_colored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
