/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit_test.c - `detent submit`: its requests, its output and its exit codes. */
/* test: threads */
#include "commands/remote_test.h"

#define SUBMITTED "{\"kind\":\"submitted\",\"id\":7,\"started\":true,\"depth\":0}"

static void job_command_follows_the_dashes(void **state)
{
    struct fake *fake = *state;
    char wanted[1024];

    answer_to(
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
    assert_string_equal(det_buffer_text(&fake->received), wanted);
    assert_string_equal(fake->err, "j: started\n");
    assert_string_equal(fake->out, "");
}

static void optional_submit_arguments_may_be_omitted(void **state)
{
    struct fake *fake = *state;

    answer_to(
        fake, "POST /v1/submissions",
        "={\"kind\":\"submitted\",\"id\":8,\"started\":false,\"depth\":1}");
    answer_to(
        fake, "POST /v1/slots/b/submissions",
        "={\"kind\":\"submitted\",\"id\":9,\"started\":false,\"depth\":3}");
    answer_to(
        fake, "POST /v1/slots/b/submissions",
        "={\"kind\":\"submitted\",\"id\":9,\"name\":\"true-1\",\"started\":true,\"depth\":0}");
    assert_int_equal(run(fake, WORDS("submit", "--folder", "/", "--", "true")), CLI_OK);
    assert_string_equal(
        det_buffer_text(&fake->received),
        "POST /v1/submissions {\"run\":[\"true\"],\"admission\":\"queue\",\"folder\":\"/\","
        "\"wait\":false,\"retries\":0}\n");
    assert_string_equal(fake->err, "job 8: waits and runs next\n");
    assert_int_equal(run(fake, WORDS("submit", "b", "--replace", "--", "true")), CLI_OK);
    assert_non_null(strstr(det_buffer_text(&fake->received), "\"admission\":\"replace\""));
    assert_string_equal(fake->err, "job 9: waits in a queue of 3\n");
    assert_int_equal(run(fake, WORDS("submit", "b", "--drop", "--new-slot", "--", "true")), CLI_OK);
    assert_non_null(strstr(det_buffer_text(&fake->received), "\"admission\":\"drop\""));
    assert_non_null(strstr(det_buffer_text(&fake->received), "\"new_slot\":true"));
    assert_string_equal(fake->err, "true-1: started\n");
}

static void command_that_is_not_utf8_is_refused(void **state)
{
    struct fake *fake = *state;

    assert_int_equal(run(fake, WORDS("submit", "--", "rm", "a\xFF")), CLI_USAGE);
    assert_string_equal(
        fake->err,
        "detent submit: 'a\\xff' is not UTF-8; put the command into a script: -- sh FILE\n");
    assert_int_equal(run(fake, WORDS("submit", "--name", "\xC3", "--", "true")), CLI_USAGE);
    assert_string_equal(det_buffer_text(&fake->received), "");
}

/* Waits for a job that ends like this. */
static void expect_end(struct fake *fake, const char *end, int code, const char *reported)
{
    char lines[512], wanted[512];

    fake->saying_count = 0;
    snprintf(lines, sizeof lines, SUBMITTED "\n{\"kind\":\"end\",\"id\":7,%s}\n.", end);
    answer_to(fake, "POST /v1/submissions", lines);
    assert_int_equal(run(fake, WORDS("submit", "--wait", "--", "job")), code);
    snprintf(wanted, sizeof wanted, "job 7: started\njob 7: %s\n", reported);
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

static void json_output_is_passed_through(void **state)
{
    struct fake *fake = *state;

    answer_to(
        fake, "POST /v1/submissions",
        SUBMITTED "\n{\"kind\":\"end\",\"outcome\":\"failed\",\"exit_code\":2}\n.");
    assert_int_equal(run(fake, WORDS("submit", "-w", "--json", "--", "x")), 2);
    assert_string_equal(
        fake->out, "{\"kind\":\"submitted\",\"id\":7,\"started\":true,\"depth\":0}\n"
                   "{\"kind\":\"end\",\"outcome\":\"failed\",\"exit_code\":2}\n");
    assert_string_equal(fake->err, "");
}

static void failures_have_their_exit_codes(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "POST /v1/submissions", "!REFUSED the queue is full");
    answer_to(fake, "POST /v1/submissions", "!EXISTS there is a job 'x'");
    answer_to(fake, "POST /v1/submissions", SUBMITTED "\n.");
    answer_to(fake, "POST /v1/submissions", SUBMITTED "\nx");
    assert_int_equal(run(fake, WORDS("submit", "--", "x")), CLI_REFUSED);
    assert_string_equal(fake->err, "detent submit: the queue is full\n");
    assert_int_equal(run(fake, WORDS("submit", "--", "x")), CLI_CONFLICT);
    assert_int_equal(run(fake, WORDS("submit", "-w", "--", "x")), CLI_FAILURE);
    assert_string_equal(fake->err, "job 7: started\ndetent submit: the answer ends too early\n");
    assert_int_equal(run(fake, WORDS("submit", "-w", "--", "x")), CLI_FAILURE);
    assert_non_null(strstr(fake->err, "the running detent has exited"));
    assert_int_equal(run(fake, WORDS("submit", "--folder", "/nowhere", "--", "x")), CLI_NOT_FOUND);
    assert_string_equal(fake->err, "detent submit: there is no folder '/nowhere'\n");
}

static void invalid_arguments_are_reported(void **state)
{
    static const char dashes[] =
        "detent submit: the command must follow two dashes: detent submit SLOT -- COMMAND\n";
    struct fake *fake = *state;

    assert_int_equal(run(fake, WORDS("submit", "batch", "true")), CLI_USAGE);
    assert_string_equal(fake->err, dashes);
    assert_int_equal(run(fake, WORDS("submit", "batch", "--")), CLI_USAGE);
    assert_string_equal(fake->err, dashes);
    assert_int_equal(run(fake, WORDS("submit", "a", "b", "--", "c")), CLI_USAGE);
    assert_string_equal(
        fake->err,
        "detent submit: unexpected argument 'b': only a slot may precede the two dashes\n");
    assert_int_equal(run(fake, WORDS("submit", "b", "--drop", "--replace", "--", "c")), CLI_USAGE);
    assert_non_null(strstr(fake->err, "exclude each other"));
    assert_int_equal(run(fake, WORDS("submit", "--drop", "--", "c")), CLI_USAGE);
    assert_non_null(strstr(fake->err, "need a slot"));
    assert_int_equal(run(fake, WORDS("submit", "-t", "0s", "--", "c")), CLI_USAGE);
    assert_int_equal(run(fake, WORDS("submit", "-r", "many", "--", "c")), CLI_USAGE);
    assert_string_equal(det_buffer_text(&fake->received), "");
}

static int run_failing(struct det_test_memory *memory, void *argument)
{
    return run_with(argument, memory, WORDS("submit", "b", "-n", "x", "-w", "--", "a", "b"));
}

static void command_survives_every_failed_allocation(void **state)
{
    struct fake *fake = *state;

    answer_to(
        fake, "POST /v1/slots/b/submissions",
        SUBMITTED "\n{\"kind\":\"end\",\"outcome\":\"completed\",\"exit_code\":0}\n.");
    det_test_each_failure(run_failing, fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(job_command_follows_the_dashes),      TEST(optional_submit_arguments_may_be_omitted),
        TEST(command_that_is_not_utf8_is_refused), TEST(waiting_ends_as_the_job_does),
        TEST(json_output_is_passed_through),       TEST(failures_have_their_exit_codes),
        TEST(invalid_arguments_are_reported),      TEST(command_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
