/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_order_test.c - `detent restart`, `stop` and `drain`: what is asked, and what is told of it.
 */
/* test: threads */
#include "commands/remote_test.h"

#define DONE(count) "={\"kind\":\"done\",\"count\":" #count "}"

static void each_name_is_one_order(void **state)
{
    struct fake *fake = *state;

    say_to(fake, "POST /v1/tasks/web/restart", DONE(1));
    say_to(fake, "POST /v1/tasks/back/restart", DONE(3));
    say_to(fake, "POST /v1/tasks/late/restart", DONE(0));
    assert_int_equal(run(fake, WORDS("restart", "web", "back", "late")), CLI_OK);
    assert_string_equal(
        det_buffer_text(&fake->heard), "POST /v1/tasks/web/restart {\"wait\":false}\n"
                                       "POST /v1/tasks/back/restart {\"wait\":false}\n"
                                       "POST /v1/tasks/late/restart {\"wait\":false}\n");
    assert_string_equal(
        fake->err, "web: restarting\nback: 3 tasks restarting\nlate: nothing to do\n");
    assert_string_equal(fake->out, "");
}

static void waiting_tells_what_has_happened(void **state)
{
    struct fake *fake = *state;

    say_to(fake, "POST /v1/tasks/batch/stop", DONE(1));
    say_to(fake, "POST /v1/tasks/web/drain", DONE(0));
    say_to(fake, "POST /v1/tasks/back/restart", DONE(2));
    assert_int_equal(run(fake, WORDS("stop", "batch", "--purge", "--wait")), CLI_OK);
    assert_string_equal(
        det_buffer_text(&fake->heard),
        "POST /v1/tasks/batch/stop {\"wait\":true,\"purge\":true}\n");
    assert_string_equal(fake->err, "batch: stopped\n");
    assert_int_equal(run(fake, WORDS("drain", "web", "-w")), CLI_OK);
    assert_string_equal(fake->err, "web: drained\n");
    assert_int_equal(run(fake, WORDS("restart", "back", "-w", "-t", "20s")), CLI_OK);
    assert_string_equal(fake->err, "back: 2 tasks restarted\n");
}

static void without_a_name_it_is_about_everything(void **state)
{
    struct fake *fake = *state;

    say_to(fake, "POST /v1/stop", DONE(5));
    say_to(fake, "POST /v1/drain", DONE(1));
    assert_int_equal(run(fake, WORDS("stop")), CLI_OK);
    assert_string_equal(det_buffer_text(&fake->heard), "POST /v1/stop {\"wait\":false}\n");
    assert_string_equal(fake->err, "Everything is stopping, and then detent up ends (5 tasks)\n");
    assert_int_equal(run(fake, WORDS("drain")), CLI_OK);
    assert_string_equal(
        fake->err,
        "Nothing more is admitted; detent up ends when all have come to their end (1 task)\n");
}

static void the_end_of_everything_is_waited_for(void **state)
{
    struct fake *fake = *state;

    say_to(fake, "POST /v1/stop", DONE(5) "x");
    say_to(fake, "POST /v1/drain", "x");
    assert_int_equal(run(fake, WORDS("stop", "--wait")), CLI_OK);
    assert_string_equal(fake->err, "Everything has stopped; detent has ended.\n");
    assert_int_equal(run(fake, WORDS("drain", "--wait")), CLI_OK);
    assert_string_equal(fake->err, "All have come to their end; detent has ended.\n");
    assert_int_equal(run(fake, WORDS("stop", "--wait", "--json")), CLI_OK);
    assert_string_equal(fake->out, "{\"kind\": \"done\", \"count\": 5}\n");
    assert_int_equal(run(fake, WORDS("drain", "--wait", "--json")), CLI_OK);
    assert_string_equal(fake->out, "{\"kind\": \"done\"}\n");
    assert_string_equal(fake->err, "");
}

static void waiting_has_a_limit(void **state)
{
    struct fake *fake = *state;

    say_to(fake, "POST /v1/tasks/web/stop", "~");
    say_to(fake, "POST /v1/stop", "~");
    assert_int_equal(run(fake, WORDS("stop", "web", "api", "-w", "-t", "10ms")), CLI_TIMEOUT);
    assert_string_equal(fake->err, "detent stop: web: not stopped after 10ms; it goes on\n");
    assert_int_equal(run(fake, WORDS("stop", "-w", "-t", "0s")), CLI_TIMEOUT);
    assert_string_equal(fake->err, "detent stop: not stopped after 0s; it goes on\n");
}

static void a_name_that_is_not_there_gets_the_nearest(void **state)
{
    struct fake *fake = *state;

    say_to(fake, "POST /v1/tasks/wbe/stop", "!NOT_FOUND there is no task 'wbe'");
    say_to(fake, "POST /v1/tasks/apu/stop", "!NOT_FOUND there is no 'apu'; did you mean 'api'?");
    say_to(fake, "POST /v1/tasks/web/stop", DONE(1));
    say_to(
        fake, "GET /v1/tree",
        "{\"kind\":\"group\",\"name\":\"back\"}\n"
        "{\"kind\":\"task\",\"name\":\"web\"}\n.");
    assert_int_equal(run(fake, WORDS("stop", "wbe", "apu", "web")), CLI_NOT_FOUND);
    assert_string_equal(
        fake->err, "detent stop: there is no task 'wbe'; did you mean 'web'?\n"
                   "detent stop: there is no 'apu'; did you mean 'api'?\n"
                   "web: stopping\n");
    /* What is not there may be something else. */
    say_to(fake, "POST /v1/tasks/web/restart", "!NOT_FOUND what web depends on is not there");
    assert_int_equal(run(fake, WORDS("restart", "web")), CLI_NOT_FOUND);
    assert_string_equal(fake->err, "detent restart: what web depends on is not there\n");
}

static void what_is_refused_has_its_code(void **state)
{
    struct fake *fake = *state;

    say_to(fake, "POST /v1/tasks/a/restart", "!REFUSED not now");
    say_to(fake, "POST /v1/tasks/b/restart", "!IO the pipe broke");
    assert_int_equal(run(fake, WORDS("restart", "a", "b", "c")), CLI_REFUSED);
    assert_string_equal(fake->err, "detent restart: not now\ndetent restart: the pipe broke\n");
}

static void wrong_words_are_told(void **state)
{
    struct fake *fake = *state;

    assert_int_equal(run(fake, WORDS("stop", "--purge")), CLI_USAGE);
    assert_string_equal(
        fake->err, "detent stop: --purge is about a slot: detent stop SLOT --purge\n");
    assert_int_equal(run(fake, WORDS("stop", "web", "--timeout", "5s")), CLI_USAGE);
    assert_string_equal(fake->err, "detent stop: --timeout is for --wait\n");
    assert_int_equal(run(fake, WORDS("stop", "web", "-w", "-t", "5")), CLI_USAGE);
    assert_non_null(strstr(fake->err, "--timeout is a time such as 250ms"));
    assert_string_equal(det_buffer_text(&fake->heard), "");
}

static int run_failing(struct det_test_memory *memory, void *argument)
{
    return run_with(argument, memory, WORDS("stop", "wbe", "web"));
}

static void a_lack_of_memory_is_told(void **state)
{
    struct fake *fake = *state;

    say_to(fake, "POST /v1/tasks/wbe/stop", "!NOT_FOUND there is no task 'wbe'");
    say_to(fake, "GET /v1/tree", "{\"kind\":\"task\",\"name\":\"web\"}\n.");
    det_test_each_failure(run_failing, fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_name_is_one_order),
        TEST(waiting_tells_what_has_happened),
        TEST(without_a_name_it_is_about_everything),
        TEST(the_end_of_everything_is_waited_for),
        TEST(waiting_has_a_limit),
        TEST(a_name_that_is_not_there_gets_the_nearest),
        TEST(what_is_refused_has_its_code),
        TEST(wrong_words_are_told),
        TEST(a_lack_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
