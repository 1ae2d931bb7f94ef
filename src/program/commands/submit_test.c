/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit_test.c - `detent submit`: what is asked for, what is told, and with which code it ends. */
/* test: threads */
#include "commands/remote_test.h"

#define SUBMITTED "{\"kind\":\"submitted\",\"id\":7,\"started\":true,\"depth\":0}"

static void a_job_is_what_stands_behind_the_dashes(void **state)
{
    struct fake *fake = *state;
    char wanted[1024];

    say_to(
        fake, "POST /v1/slots/batch/submissions",
        "={\"kind\":\"submitted\",\"id\":7,\"name\":\"j\",\"started\":true,\"depth\":0}");
    assert_int_equal(
        run(fake, WORDS(
                      "submit", "batch", "--name", "j", "-t", "2s", "-r", "3", "--folder", "/",
                      "--replace-all", "--", "sh", "-c", "a b")),
        CLI_OK);
    snprintf(
        wanted, sizeof wanted,
        "POST /v1/slots/batch/submissions {\"run\":[\"sh\",\"-c\",\"a b\"],"
        "\"admission\":\"replace-all\",\"folder\":\"/"
        "\",\"wait\":false,\"retries\":3,\"name\":\"j\","
        "\"timeout_ns\":2000000000}\n");
    assert_string_equal(det_buffer_text(&fake->heard), wanted);
    assert_string_equal(fake->err, "j: started\n");
    assert_string_equal(fake->out, "");
}

static void most_of_it_can_be_left_out(void **state)
{
    struct fake *fake = *state;

    say_to(
        fake, "POST /v1/submissions",
        "={\"kind\":\"submitted\",\"id\":8,\"started\":false,\"depth\":1}");
    say_to(
        fake, "POST /v1/slots/b/submissions",
        "={\"kind\":\"submitted\",\"id\":9,\"started\":false,\"depth\":3}");
    say_to(
        fake, "POST /v1/slots/b/submissions",
        "={\"kind\":\"submitted\",\"id\":9,\"name\":\"true-1\",\"started\":true,\"depth\":0}");
    assert_int_equal(run(fake, WORDS("submit", "--folder", "/", "--", "true")), CLI_OK);
    assert_string_equal(
        det_buffer_text(&fake->heard),
        "POST /v1/submissions {\"run\":[\"true\"],\"admission\":\"queue\",\"folder\":\"/\","
        "\"wait\":false,\"retries\":0}\n");
    assert_string_equal(fake->err, "job 8: waits, and is the next\n");
    assert_int_equal(run(fake, WORDS("submit", "b", "--replace", "--", "true")), CLI_OK);
    assert_non_null(strstr(det_buffer_text(&fake->heard), "\"admission\":\"replace\""));
    assert_string_equal(fake->err, "job 9: waits in a queue of 3\n");
    assert_int_equal(run(fake, WORDS("submit", "b", "--drop", "--new-slot", "--", "true")), CLI_OK);
    assert_non_null(strstr(det_buffer_text(&fake->heard), "\"admission\":\"drop\""));
    assert_non_null(strstr(det_buffer_text(&fake->heard), "\"new_slot\":true"));
    assert_string_equal(fake->err, "true-1: started\n");
}

static void what_cannot_be_sent_as_it_is_is_not_run(void **state)
{
    struct fake *fake = *state;

    assert_int_equal(run(fake, WORDS("submit", "--", "rm", "a\xFF")), CLI_USAGE);
    assert_string_equal(
        fake->err, "detent submit: 'a\\xff' is not UTF-8; let a script say it: -- sh FILE\n");
    assert_int_equal(run(fake, WORDS("submit", "--name", "\xC3", "--", "true")), CLI_USAGE);
    assert_string_equal(det_buffer_text(&fake->heard), "");
}

/* Waits for a job that ends like this. */
static void expect_end(struct fake *fake, const char *end, int code, const char *told)
{
    char lines[512], wanted[512];

    fake->saying_count = 0;
    snprintf(lines, sizeof lines, SUBMITTED "\n{\"kind\":\"end\",\"id\":7,%s}\n.", end);
    say_to(fake, "POST /v1/submissions", lines);
    assert_int_equal(run(fake, WORDS("submit", "--wait", "--", "job")), code);
    snprintf(wanted, sizeof wanted, "job 7: started\njob 7: %s\n", told);
    assert_string_equal(fake->err, wanted);
}

static void waiting_ends_as_the_job_does(void **state)
{
    struct fake *fake = *state;

    expect_end(
        fake, "\"outcome\":\"completed\",\"exit_code\":0,\"reason\":\"\",\"attempts\":1", 0,
        "completed");
    expect_end(
        fake, "\"outcome\":\"completed\",\"exit_code\":9,\"reason\":\"\",\"attempts\":2", 9,
        "completed after 2 attempts");
    expect_end(
        fake, "\"outcome\":\"failed\",\"exit_code\":3,\"reason\":\"exit code 3\",\"attempts\":4", 3,
        "failed after 4 attempts: exit code 3");
    expect_end(
        fake,
        "\"outcome\":\"failed\",\"exit_code\":null,\"signal\":15,\"reason\":\"signal 15\","
        "\"attempts\":1",
        1, "failed: signal 15");
    expect_end(
        fake, "\"outcome\":\"failed\",\"exit_code\":0,\"reason\":\"it took too long\"", 1,
        "failed: it took too long");
    expect_end(fake, "\"outcome\":\"completed\"", 0, "completed");
    expect_end(fake, "\"outcome\":\"force_aborted\",\"signal\":9", 1, "forced to end");
    expect_end(fake, "\"outcome\":\"cancelled\"", 1, "cancelled");
    expect_end(
        fake, "\"outcome\":\"rejected\",\"rejection\":\"purged\",\"reason\":\"purged\"",
        CLI_REFUSED, "rejected: purged");
}

static void json_is_what_the_other_side_said(void **state)
{
    struct fake *fake = *state;

    say_to(
        fake, "POST /v1/submissions",
        SUBMITTED "\n{\"kind\":\"end\",\"outcome\":\"failed\",\"exit_code\":2}\n.");
    assert_int_equal(run(fake, WORDS("submit", "-w", "--json", "--", "x")), 2);
    assert_string_equal(
        fake->out, "{\"kind\": \"submitted\", \"id\": 7, \"started\": true, \"depth\": 0}\n"
                   "{\"kind\": \"end\", \"outcome\": \"failed\", \"exit_code\": 2}\n");
    assert_string_equal(fake->err, "");
}

static void what_goes_wrong_has_its_code(void **state)
{
    struct fake *fake = *state;

    say_to(fake, "POST /v1/submissions", "!REFUSED the queue is full");
    say_to(fake, "POST /v1/submissions", "!EXISTS there is a job 'x'");
    say_to(fake, "POST /v1/submissions", SUBMITTED "\n.");
    say_to(fake, "POST /v1/submissions", SUBMITTED "\nx");
    assert_int_equal(run(fake, WORDS("submit", "--", "x")), CLI_REFUSED);
    assert_string_equal(fake->err, "detent submit: the queue is full\n");
    assert_int_equal(run(fake, WORDS("submit", "--", "x")), CLI_CONFLICT);
    assert_int_equal(run(fake, WORDS("submit", "-w", "--", "x")), CLI_FAILURE);
    assert_string_equal(fake->err, "job 7: started\ndetent submit: the answer ends too early\n");
    assert_int_equal(run(fake, WORDS("submit", "-w", "--", "x")), CLI_FAILURE);
    assert_non_null(strstr(fake->err, "the detent that ran here has gone"));
    assert_int_equal(run(fake, WORDS("submit", "--folder", "/nowhere", "--", "x")), CLI_NOT_FOUND);
    assert_string_equal(fake->err, "detent submit: there is no folder '/nowhere'\n");
}

static void wrong_words_are_told(void **state)
{
    static const char dashes[] =
        "detent submit: what to run stands behind two dashes: detent submit SLOT -- COMMAND\n";
    struct fake *fake = *state;

    assert_int_equal(run(fake, WORDS("submit", "batch", "true")), CLI_USAGE);
    assert_string_equal(fake->err, dashes);
    assert_int_equal(run(fake, WORDS("submit", "batch", "--")), CLI_USAGE);
    assert_string_equal(fake->err, dashes);
    assert_int_equal(run(fake, WORDS("submit", "a", "b", "--", "c")), CLI_USAGE);
    assert_string_equal(
        fake->err, "detent submit: 'b' is too much: only a slot stands before the two dashes\n");
    assert_int_equal(run(fake, WORDS("submit", "b", "--drop", "--replace", "--", "c")), CLI_USAGE);
    assert_non_null(strstr(fake->err, "exclude each other"));
    assert_int_equal(run(fake, WORDS("submit", "--drop", "--", "c")), CLI_USAGE);
    assert_non_null(strstr(fake->err, "need a slot"));
    assert_int_equal(run(fake, WORDS("submit", "-t", "0s", "--", "c")), CLI_USAGE);
    assert_int_equal(run(fake, WORDS("submit", "-r", "many", "--", "c")), CLI_USAGE);
    assert_string_equal(det_buffer_text(&fake->heard), "");
}

static int run_failing(struct det_test_memory *memory, void *argument)
{
    return run_with(argument, memory, WORDS("submit", "b", "-n", "x", "-w", "--", "a", "b"));
}

static void a_lack_of_memory_is_told(void **state)
{
    struct fake *fake = *state;

    say_to(
        fake, "POST /v1/slots/b/submissions",
        SUBMITTED "\n{\"kind\":\"end\",\"outcome\":\"completed\",\"exit_code\":0}\n.");
    det_test_each_failure(run_failing, fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_is_what_stands_behind_the_dashes),
        TEST(most_of_it_can_be_left_out),
        TEST(what_cannot_be_sent_as_it_is_is_not_run),
        TEST(waiting_ends_as_the_job_does),
        TEST(json_is_what_the_other_side_said),
        TEST(what_goes_wrong_has_its_code),
        TEST(wrong_words_are_told),
        TEST(a_lack_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
