/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_order_test.c - `detent restart`, `stop` and `drain`: requests and messages. */
/* test: threads */
#include "commands/remote_test.h"

#define DONE(count) "={\"kind\":\"done\",\"count\":" #count "}"

static void each_named_task_gets_one_request(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "POST /v1/tasks/web/restart", DONE(1));
    answer_to(fake, "POST /v1/tasks/back/restart", DONE(3));
    answer_to(fake, "POST /v1/tasks/late/restart", DONE(0));
    assert_int_equal(run(fake, WORDS("restart", "web", "back", "late")), CLI_OK);
    assert_string_equal(
        det_buffer_text(&fake->received), "POST /v1/tasks/web/restart {\"wait\":false}\n"
                                          "POST /v1/tasks/back/restart {\"wait\":false}\n"
                                          "POST /v1/tasks/late/restart {\"wait\":false}\n");
    assert_string_equal(
        fake->err, "web: restarting\nback: 3 tasks restarting\nlate: nothing to do\n");
    assert_string_equal(fake->out, "");
}

static void wait_reports_the_result(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "POST /v1/tasks/batch/stop", DONE(1));
    answer_to(fake, "POST /v1/tasks/web/drain", DONE(0));
    answer_to(fake, "POST /v1/tasks/back/restart", DONE(2));
    assert_int_equal(run(fake, WORDS("stop", "batch", "--purge", "--wait")), CLI_OK);
    assert_string_equal(
        det_buffer_text(&fake->received),
        "POST /v1/tasks/batch/stop {\"wait\":true,\"purge\":true}\n");
    assert_string_equal(fake->err, "batch: stopped\n");
    assert_int_equal(run(fake, WORDS("drain", "web", "-w")), CLI_OK);
    assert_string_equal(fake->err, "web: drained\n");
    assert_int_equal(run(fake, WORDS("restart", "back", "-w", "-t", "20s")), CLI_OK);
    assert_string_equal(fake->err, "back: 2 tasks restarted\n");
}

static void no_name_means_everything(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "POST /v1/stop", DONE(5));
    answer_to(fake, "POST /v1/drain", DONE(1));
    assert_int_equal(run(fake, WORDS("stop")), CLI_OK);
    assert_string_equal(det_buffer_text(&fake->received), "POST /v1/stop {\"wait\":false}\n");
    assert_string_equal(fake->err, "Stopping everything, then detent up exits (5 tasks)\n");
    assert_int_equal(run(fake, WORDS("drain")), CLI_OK);
    assert_string_equal(
        fake->err, "Draining; detent up exits when all attempts have finished (1 task)\n");
}

static void wait_lasts_until_everything_has_stopped(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "POST /v1/stop", DONE(5) "x");
    answer_to(fake, "POST /v1/drain", "x");
    assert_int_equal(run(fake, WORDS("stop", "--wait")), CLI_OK);
    assert_string_equal(fake->err, "Everything has stopped; detent up has exited.\n");
    assert_int_equal(run(fake, WORDS("drain", "--wait")), CLI_OK);
    assert_string_equal(fake->err, "All attempts have finished; detent up has exited.\n");
    assert_int_equal(run(fake, WORDS("stop", "--wait", "--json")), CLI_OK);
    assert_string_equal(fake->out, "{\"kind\":\"done\",\"count\":5}\n");
    assert_int_equal(run(fake, WORDS("drain", "--wait", "--json")), CLI_OK);
    assert_string_equal(fake->out, "{\"kind\":\"done\"}\n");
    assert_string_equal(fake->err, "");
}

static void waiting_has_a_limit(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "POST /v1/tasks/web/stop", "~");
    answer_to(fake, "POST /v1/stop", "~");
    assert_int_equal(run(fake, WORDS("stop", "web", "api", "-w", "-t", "10ms")), CLI_TIMEOUT);
    assert_string_equal(fake->err, "detent stop: web: not stopped after 10ms; still in progress\n");
    assert_int_equal(run(fake, WORDS("stop", "-w", "-t", "0s")), CLI_TIMEOUT);
    assert_string_equal(fake->err, "detent stop: not stopped after 0s; still in progress\n");
}

static void an_unknown_name_does_not_end_the_others(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "POST /v1/tasks/xyz/stop", "!NOT_FOUND there is no task 'xyz'");
    answer_to(fake, "POST /v1/tasks/apu/stop", "!NOT_FOUND there is no 'apu'; did you mean 'api'?");
    answer_to(fake, "POST /v1/tasks/web/stop", DONE(1));
    assert_int_equal(run(fake, WORDS("stop", "xyz", "apu", "web")), CLI_NOT_FOUND);
    assert_string_equal(
        fake->err, "detent stop: there is no task 'xyz'\n"
                   "detent stop: there is no 'apu'; did you mean 'api'?\n"
                   "web: stopping\n");
    /* The missing object may be another one. */
    answer_to(fake, "POST /v1/tasks/web/restart", "!NOT_FOUND what web depends on is not there");
    assert_int_equal(run(fake, WORDS("restart", "web")), CLI_NOT_FOUND);
    assert_string_equal(fake->err, "detent restart: what web depends on is not there\n");
}

static void refusals_have_their_exit_code(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "POST /v1/tasks/a/restart", "!REFUSED not now");
    answer_to(fake, "POST /v1/tasks/b/restart", "!IO the pipe broke");
    assert_int_equal(run(fake, WORDS("restart", "a", "b", "c")), CLI_REFUSED);
    assert_string_equal(fake->err, "detent restart: not now\ndetent restart: the pipe broke\n");
}

static void invalid_arguments_are_reported(void **state)
{
    struct fake *fake = *state;

    assert_int_equal(run(fake, WORDS("stop", "--purge")), CLI_USAGE);
    assert_string_equal(fake->err, "detent stop: --purge needs a slot: detent stop SLOT --purge\n");
    assert_int_equal(run(fake, WORDS("stop", "web", "--timeout", "5s")), CLI_USAGE);
    assert_string_equal(fake->err, "detent stop: --timeout needs --wait\n");
    assert_int_equal(run(fake, WORDS("stop", "web", "-w", "-t", "5")), CLI_USAGE);
    assert_non_null(strstr(fake->err, "--timeout must be a duration (250ms"));
    assert_string_equal(det_buffer_text(&fake->received), "");
}

static int run_failing(struct det_test_memory *memory, void *argument)
{
    return run_with(argument, memory, WORDS("stop", "wbe", "web"));
}

static void command_survives_every_failed_allocation(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "POST /v1/tasks/wbe/stop", "!NOT_FOUND there is no task 'wbe'");
    answer_to(fake, "GET /v1/tree", "{\"kind\":\"task\",\"name\":\"web\"}\n.");
    det_test_each_failure(run_failing, fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_named_task_gets_one_request),
        TEST(wait_reports_the_result),
        TEST(no_name_means_everything),
        TEST(wait_lasts_until_everything_has_stopped),
        TEST(waiting_has_a_limit),
        TEST(an_unknown_name_does_not_end_the_others),
        TEST(refusals_have_their_exit_code),
        TEST(invalid_arguments_are_reported),
        TEST(command_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
