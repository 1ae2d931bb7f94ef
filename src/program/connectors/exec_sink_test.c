/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exec_sink_test.c - rows to real commands: exit codes, answers, restarts, and commands that hang.
 * */
/* test: threads */
#include <pthread.h>
#include <signal.h>

#include "connectors/sink_harness_test.h"

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    folder = det_test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

/* `script` runs in the folder of the test. */
static const char *settings_for(const char *script, const char *more)
{
    static char settings[1200];

    (void)snprintf(
        settings, sizeof settings, "{argv: [sh, -c, '%s'], folder: %s%s}", script, folder, more);
    return settings;
}

static void assert_file(const char *name, const char *expected)
{
    char path[400];
    size_t size;
    char *content;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    content = det_test_read_file(path, &size);
    assert_string_equal(content, expected);
    free(content);
}

static int deliver(struct sink_harness *sink, int id)
{
    struct parcel parcel = { .id = id };

    return sink_deliver(sink, (uint64_t)id, &parcel);
}

#define BODY ",\"place\":{\"city\":\"\",\"floor\":0},\"code\":\"\",\"data\":\"\",\"tags\":[]}\n"

static void a_command_gets_each_batch(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(
        &sink, &exec_sink, parcel_record,
        settings_for("cat >> out; echo done >> out; echo noise", ", batch: 2"));
    for (int id = 1; id <= 3; id++)
        assert_int_equal(deliver(&sink, id), 0);
    assert_int_equal(sink_flush(&sink), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_file("out", "{\"id\":1" BODY "{\"id\":2" BODY "done\n{\"id\":3" BODY "done\n");
}

static void a_failed_batch_is_sent_again(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(
        &sink, &exec_sink, parcel_record,
        settings_for("test -e seen && cat > out || { cat > seen; exit 3; }", ""));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_file("out", "{\"id\":1" BODY);
}

static void a_command_that_goes_on_failing_fails_the_stage(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(
        &sink, &exec_sink, parcel_record,
        settings_for("echo no disk >&2; exit 3", ", retry_for: 1ms"));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_IO);
    assert_non_null(strstr(sink.base.failure.text, "sh ended with exit code 3: no disk"));
    sink_close(&sink);
    sink_open(&sink, &exec_sink, parcel_record, "{argv: [/no/such/program]}");
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_INVALID);
    assert_non_null(strstr(sink.base.failure.text, "cannot start"));
    sink_close(&sink);
}

static void exit_code_65_rejects_the_batch(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &exec_sink, parcel_record, settings_for("echo bad id >&2; exit 65", ""));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(deliver(&sink, 2), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_int_equal(sink.base.error_count, 2);
    assert_int_equal(sink.rejected[1], 2);
    assert_string_equal(sink.base.errors[0], "ended with exit code 65: bad id");
}

static void each_row_is_answered(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(
        &sink, &exec_sink, parcel_record,
        settings_for(
            "while read -r l; do case $l in *:2,*) echo reject odd;; *) echo ok;; esac; done",
            ", acknowledge: echo"));
    for (int id = 1; id <= 3; id++)
        assert_int_equal(deliver(&sink, id), 0);
    assert_int_equal(sink_flush(&sink), 0);
    assert_int_equal(deliver(&sink, 4), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_int_equal(sink.base.error_count, 1);
    assert_int_equal(sink.rejected[0], 2);
    assert_string_equal(sink.base.errors[0], "odd");
}

static void rows_without_an_answer_are_sent_to_the_next_process(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(
        &sink, &exec_sink, parcel_record,
        settings_for(
            "read -r l; echo \"$l\" >> got; echo ok; test -e seen || { touch seen; exit 1; }; "
            "while read -r l; do echo \"$l\" >> got; echo ok; done",
            ", acknowledge: echo"));
    for (int id = 1; id <= 3; id++)
        assert_int_equal(deliver(&sink, id), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_file("got", "{\"id\":1" BODY "{\"id\":2" BODY "{\"id\":3" BODY);
}

static void answers_that_make_no_sense_fail_the_stage(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &exec_sink, parcel_record, settings_for("cat", ", acknowledge: echo"));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_INVALID);
    assert_non_null(strstr(sink.base.failure.text, "neither 'ok' nor 'reject REASON'"));
    sink_close(&sink);
}

/* Cancels the stage as soon as the command has started. */
static void *cancel_when_started(void *argument)
{
    struct sink_harness *sink = argument;
    char path[400];
    struct pollfd none = { .fd = -1 };

    (void)snprintf(path, sizeof path, "%s/started", folder);
    while (access(path, F_OK) < 0)
        (void)poll(&none, 1, 1);
    atomic_store(&sink->base.is_cancelled, true);
    return NULL;
}

static void a_command_that_hangs_does_not_block_a_cancel(void **state)
{
    static const char *const modes[] = { "", ", acknowledge: echo" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct sink_harness sink;
        pthread_t thread;
        char path[400];

        (void)snprintf(path, sizeof path, "%s/started", folder);
        (void)unlink(path);
        sink_open(
            &sink, &exec_sink, parcel_record,
            settings_for(
                "touch started; exec >&- 2>&-; while :; do read -r l; done < /dev/zero", modes[i]));
        assert_int_equal(deliver(&sink, 1), 0);
        assert_int_equal(pthread_create(&thread, NULL, cancel_when_started, &sink), 0);
        if (i == 0)
            assert_int_equal(sink_flush(&sink), DET_ERR_CANCELLED);
        else
            assert_true(sink_flush(&sink) < 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        sink_close(&sink);
    }
}

static void a_command_that_does_not_go_on_times_out(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(
        &sink, &exec_sink, parcel_record,
        settings_for("read -r l < /dev/zero", ", timeout: 1ms, retry_for: 1ms"));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_IO);
    assert_non_null(strstr(sink.base.failure.text, "its timeout is over"));
    sink_close(&sink);
}

static void a_large_batch_and_a_large_output_do_not_lock_up(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &exec_sink, parcel_record, settings_for("tee out", ", batch: 20000"));
    for (int id = 1; id <= 20000; id++)
        assert_int_equal(deliver(&sink, id), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
}

static void settings_are_checked(void **state)
{
    (void)state;
    sink_refuses(&exec_sink, parcel_record, "{}", "argv");
    sink_refuses(&exec_sink, parcel_record, "{argv: [a], acknowledge: x}", "acknowledge");
    sink_refuses(&exec_sink, parcel_record, "{argv: [a], batch: 1000000}", "at most 100000");
}

static int run_commands(struct det_test_memory *memory, void *argument)
{
    struct sink_harness sink;
    int r;

    (void)argument;
    sink_init(
        &sink, &exec_sink, parcel_record,
        "{argv: [cat], batch: 10, retry_for: 1ms, key_field: key}");
    sink.base.call.allocator = &memory->allocator;
    r = sink_start(&sink);
    for (int id = 1; id < 5 && r == 0; id++)
        r = deliver(&sink, id);
    if (r == 0)
        r = sink_flush(&sink);
    /* A lack of memory during an attempt is a failed attempt. */
    if (r == DET_ERR_IO && memory->failed)
        r = DET_ERR_NO_MEMORY;
    sink_close(&sink);
    return r;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(run_commands, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(a_command_gets_each_batch),
        TEST(a_failed_batch_is_sent_again),
        TEST(a_command_that_goes_on_failing_fails_the_stage),
        TEST(exit_code_65_rejects_the_batch),
        TEST(each_row_is_answered),
        TEST(rows_without_an_answer_are_sent_to_the_next_process),
        TEST(answers_that_make_no_sense_fail_the_stage),
        TEST(a_command_that_hangs_does_not_block_a_cancel),
        TEST(a_command_that_does_not_go_on_times_out),
        TEST(a_large_batch_and_a_large_output_do_not_lock_up),
        TEST(settings_are_checked),
        TEST(a_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
