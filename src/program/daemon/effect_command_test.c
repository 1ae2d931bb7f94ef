/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_command_test.c - effects that are programs: their input, exit codes, output, and
 * deadlines. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"

#include "daemon/effect_test.h"

static void open_bench(struct bench *bench, const char *effect)
{
    assert_int_equal(bench_open(bench, NULL, effect), 0);
}

#define SHELL(script) "command: [sh, -c, '" script "']"

static void effect_command_gets_the_event_on_stdin(void **state)
{
    char path[512], *text;
    struct bench bench;
    size_t size;

    (void)state;
    open_bench(&bench, "{" SHELL("cat > input") ", exits: {0: nothing}}");
    assert_int_equal(bench_call(&bench), DET_EFFECT_DONE);
    snprintf(path, sizeof path, "%s/input", bench.folder);
    assert_int_equal(det_file_load(det_world_real(), NULL, path, 4096, &text, &size), 0);
    assert_string_equal(
        text, "{\"key\":\"order/o-1/3/0\",\"attempt\":2,\"machine\":\"order\",\"instance\":\"o-1\","
              "\"sequence\":3,\"effect\":\"charge\",\"data\":{\"total\":42},"
              "\"event\":{\"name\":\"pay\",\"payload\":{\"card\":\"4242\"}}}\n");
    det_free(NULL, text, size + 1);
    bench_close(&bench);
}

static void effect_command_environment_comes_from_the_file(void **state)
{
    struct bench bench;

    (void)state;
    open_bench(
        &bench,
        "{" SHELL(
            "test \"$SHY\" = \"\" && test $MODE = fast && test -n \"$PATH\"") ", "
                                                                              "environment: {MODE: "
                                                                              "fast}, exits: {0: "
                                                                              "nothing}}");
    assert_int_equal(bench_call(&bench), DET_EFFECT_DONE);
    bench_close(&bench);
    open_bench(&bench, "{" SHELL("test $SHY = secret") ", pass: [SHY], exits: {0: nothing}}");
    assert_int_equal(bench_call(&bench), DET_EFFECT_DONE);
    bench_close(&bench);
}

static void exit_codes_are_events(void **state)
{
    struct bench bench;

    (void)state;
    open_bench(&bench, "{" SHELL("exit 3") ", exits: {0: charged, 3: declined}}");
    assert_int_equal(bench_call(&bench), DET_EFFECT_PRODUCED);
    assert_string_equal(bench_event(&bench), "declined");
    bench_close(&bench);
    open_bench(&bench, "{" SHELL("exit 4") ", exits: {4: nothing}}");
    assert_int_equal(bench_call(&bench), DET_EFFECT_DONE);
    assert_int_equal(bench.reported, 0);
    bench_close(&bench);
}

static void effect_without_products_needs_no_event(void **state)
{
    const struct det_effect_def *rows;
    struct det_effect_def silent;
    struct bench bench;

    (void)state;
    open_bench(&bench, "{command: ['true']}");
    rows = bench.machine->effects;
    silent = rows[0];
    silent.produces_count = 0;
    bench.machine->effects = &silent;
    assert_int_equal(bench_call(&bench), DET_EFFECT_DONE);
    bench.machine->effects = rows;
    bench_close(&bench);
}

static void effect_command_output_is_an_event_with_payload(void **state)
{
    struct bench bench;

    (void)state;
    open_bench(
        &bench,
        "{command: [echo, '{\"event\": \"charged\", \"payload\": {\"receipt\": \"r-7\"}}'], "
        "exits: {0: declined}}");
    assert_int_equal(bench_call(&bench), DET_EFFECT_PRODUCED);
    assert_string_equal(bench_event(&bench), "charged");
    assert_non_null(strstr(bench_payload(&bench), "r-7"));
    bench_close(&bench);
    open_bench(
        &bench,
        "{" SHELL(
            "echo {\\\"data\\\":{\\\"receipt\\\":\\\"r-8\\\"}}; exit 5") ", "
                                                                         "exits: {5: charged}}");
    assert_int_equal(bench_call(&bench), DET_EFFECT_PRODUCED);
    assert_non_null(strstr(bench_payload(&bench), "r-8"));
    bench_close(&bench);
}

/* It fails with this reason, which is reported. */
static void expect_failure(const char *effect, int code, const char *why)
{
    struct bench bench;

    open_bench(&bench, effect);
    assert_int_equal(bench_call(&bench), code);
    assert_int_equal(bench.reported, 1);
    if (!strstr(bench.why, why))
        fail_msg("no '%s' in: %s", why, bench.why);
    assert_null(strstr(bench.why, "4242"));
    bench_close(&bench);
}

static void invalid_command_result_is_a_failed_attempt(void **state)
{
    (void)state;
    expect_failure(
        "{" SHELL("echo a; echo out of money >&2; exit 1") "}", DET_ERR_ACTION_FAILED,
        "exit code 1: out of money");
    expect_failure("{" SHELL("kill -9 $$") "}", DET_ERR_ACTION_FAILED, "ended by signal 9");
    expect_failure("{command: [./nothing-here]}", DET_ERR_NOT_FOUND, "nothing-here");
    expect_failure(
        "{command: [echo, hello]}", DET_ERR_MALFORMED, "its output is not a JSON object");
    expect_failure(
        "{command: [echo, '[1]']}", DET_ERR_MALFORMED, "its output is not a JSON object");
    expect_failure(
        "{command: [echo, '{\"evnt\": 1}']}", DET_ERR_MALFORMED, "unknown member 'evnt'");
    expect_failure("{command: [echo, '{\"event\": 1}']}", DET_ERR_MALFORMED, "is not a string");
    expect_failure(
        "{command: [echo, '{\"event\": \"charged\", \"data\": 1}']}", DET_ERR_MALFORMED,
        "is not an object");
    expect_failure(
        "{command: [echo, '{\"event\": \"charged\", \"data\": {}, \"payload\": {}}']}",
        DET_ERR_MALFORMED, "use 'payload' alone");
    expect_failure(
        "{command: ['true']}", DET_ERR_MALFORMED,
        "exit code 0, and its answer names no event that EFFECT(charge) lists");
    expect_failure("{command: [echo, '{}']}", DET_ERR_MALFORMED, "exits: {0: nothing}");
    expect_failure(
        "{command: [echo, '{\"event\": \"pay\"}']}", DET_ERR_INVALID,
        "is not an event of EFFECT(charge)");
    expect_failure(
        "{command: [echo, '{\"event\": \"charged\"}']}", DET_ERR_MISSING_FIELD,
        "does not fit charged");
    expect_failure(
        "{" SHELL("echo {\\\"event\\\":\\\"declined\\\"}; exit 5") ", exits: {5: charged}}",
        DET_ERR_MALFORMED, "names 'declined', and exit code 5 is charged");
}

static void effect_timeout_kills_the_process_and_its_children(void **state)
{
    (void)state;
    expect_failure(
        "{" SHELL("sleep 60 & echo $! > child; wait") ", timeout: 300ms}", DET_ERR_TIMEOUT,
        "timed out after 300ms");
}

static void output_over_the_limit_is_a_failure(void **state)
{
    (void)state;
    expect_failure("{command: [cat, /dev/zero]}", DET_ERR_LIMIT, "more than 1 MiB");
}

static det_time monotonic_now(void)
{
    return det_world_now(det_world_real(), DET_CLOCK_MONOTONIC);
}

static bool has_file(const struct bench *bench, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", bench->folder, name);
    return access(path, F_OK) == 0;
}

/* Stops once the command runs. */
struct stopper {
    struct bench *bench;
    _Atomic det_time *at;
    pthread_t thread;
};

static void *stop_what_runs(void *argument)
{
    struct stopper *stopper = argument;

    while (!has_file(stopper->bench, "ran"))
        (void)poll(NULL, 0, 1);
    atomic_store(stopper->at, monotonic_now());
    return NULL;
}

static int call_and_stop(struct bench *bench, _Atomic det_time *at)
{
    struct stopper stopper = { .bench = bench, .at = at };
    int r;

    assert_int_equal(pthread_create(&stopper.thread, NULL, stop_what_runs, &stopper), 0);
    r = bench_call(bench);
    assert_int_equal(pthread_join(stopper.thread, NULL), 0);
    return r;
}

static void shutdown_interrupts_and_postpones_the_effect(void **state)
{
    struct bench bench;

    (void)state;
    open_bench(&bench, "{" SHELL("echo > ran; sleep 600") ", timeout: 1h}");
    assert_int_equal(call_and_stop(&bench, &bench.effects.stop_at), DET_EFFECT_POSTPONED);
    assert_true(has_file(&bench, "ran"));
    assert_string_equal(bench.why, "interrupted, since detent is stopping");
    assert_int_equal(bench.reported, 1);
    assert_int_equal(bench.retry_after, DET_HOUR);
    bench_close(&bench);
}

static void second_signal_interrupts_the_effect(void **state)
{
    _Atomic det_time forced_at = DET_NEVER;
    struct bench bench;

    (void)state;
    open_bench(&bench, "{" SHELL("echo > ran; sleep 600") ", timeout: 1h}");
    bench.effects.forced_at = &forced_at;
    effects_stop(&bench.effects, monotonic_now() + DET_HOUR);
    assert_int_equal(call_and_stop(&bench, &forced_at), DET_EFFECT_POSTPONED);
    assert_string_equal(bench.why, "interrupted, since detent is stopping");
    bench_close(&bench);
}

static void no_effect_starts_after_the_stop(void **state)
{
    struct bench bench;

    (void)state;
    open_bench(&bench, "{" SHELL("echo > ran") "}");
    effects_stop(&bench.effects, 0);
    assert_int_equal(bench_call(&bench), DET_EFFECT_POSTPONED);
    assert_false(has_file(&bench, "ran"));
    assert_int_equal(bench.reported, 0);
    bench_close(&bench);
}

/* Both have passed when they are checked. */
static void earlier_of_timeout_and_stop_decides(void **state)
{
    struct effect_outcome outcome = { 0 };
    det_time now = monotonic_now();
    struct bench bench;

    (void)state;
    open_bench(&bench, "{command: [\"true\"], timeout: 100ms}");
    effects_stop(&bench.effects, now - 10);
    effect_time_out(&bench.effects, &bench.effects.bindings[0], now - 20, &outcome);
    assert_string_equal(outcome.why, "timed out after 100ms");
    assert_false(outcome.is_cut_off);
    effect_time_out(&bench.effects, &bench.effects.bindings[0], now - 5, &outcome);
    assert_string_equal(outcome.why, "interrupted, since detent is stopping");
    assert_true(outcome.is_cut_off);
    bench_close(&bench);
}

static void each_effect_has_its_policy(void **state)
{
    const struct det_effect_policy *policy;
    struct det_effect_def effect = { .name = "other" };
    struct det_machine machine = { .name = "order", .effects = &effect };
    struct bench bench;

    (void)state;
    open_bench(&bench, "{command: [true], attempts: 3}");
    policy = effects_policy(&bench.effects, bench.machine, 0);
    assert_int_equal(policy->attempts_max, 3);
    assert_null(effects_policy(&bench.effects, &machine, 0));
    assert_int_equal(
        effects_bind(&bench.effects, &bench.project.config.machines[0], &machine),
        DET_ERR_NOT_FOUND);
    bench_close(&bench);
}

/* It is postponed only if it has not run: otherwise it would run without limit. */
static int call_all(struct det_test_memory *memory, void *argument)
{
    unsigned *failed_after = argument;
    struct bench bench;
    char path[512];
    bool has_run;
    int r;

    r = bench_open(
        &bench, &memory->allocator,
        "{" SHELL("echo > ran; echo {\\\"event\\\":\\\"declined\\\"}") ", environment: {A: b}}");
    if (r == 0) {
        r = bench_call(&bench);
        snprintf(path, sizeof path, "%s/ran", bench.folder);
        has_run = access(path, F_OK) == 0;
        assert_int_equal(r == DET_EFFECT_POSTPONED, !has_run);
        *failed_after += has_run && r < 0;
    }
    bench_close(&bench);
    return r == DET_EFFECT_PRODUCED ? 0 : r == DET_EFFECT_POSTPONED ? DET_ERR_NO_MEMORY : r;
}

static void allocation_failure_postpones_only_before_the_effect_runs(void **state)
{
    unsigned failed_after = 0;

    (void)state;
    det_test_each_failure(call_all, &failed_after);
    assert_true(failed_after > 0);
}

/* Without descriptors, and with too few for its streams. */
static void out_of_descriptors_postpones_and_is_reported_once(void **state)
{
    struct rlimit before, limit;
    struct bench bench;
    int first;

    (void)state;
    open_bench(&bench, "{command: [echo, '{\"event\": \"declined\"}']}");
    first = dup(STDIN_FILENO);
    assert_true(first >= 0);
    close(first);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int left = 0; left < 4; left++) {
        limit = (struct rlimit){ (rlim_t)(first + left), before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(bench_call(&bench), DET_EFFECT_POSTPONED);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(bench.reported, 1);
    }
    assert_int_equal(bench_call(&bench), DET_EFFECT_PRODUCED);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effect_command_gets_the_event_on_stdin),
        cmocka_unit_test(effect_command_environment_comes_from_the_file),
        cmocka_unit_test(exit_codes_are_events),
        cmocka_unit_test(effect_without_products_needs_no_event),
        cmocka_unit_test(effect_command_output_is_an_event_with_payload),
        cmocka_unit_test(invalid_command_result_is_a_failed_attempt),
        cmocka_unit_test(effect_timeout_kills_the_process_and_its_children),
        cmocka_unit_test(output_over_the_limit_is_a_failure),
        cmocka_unit_test(shutdown_interrupts_and_postpones_the_effect),
        cmocka_unit_test(second_signal_interrupts_the_effect),
        cmocka_unit_test(no_effect_starts_after_the_stop),
        cmocka_unit_test(earlier_of_timeout_and_stop_decides),
        cmocka_unit_test(each_effect_has_its_policy),
        cmocka_unit_test(allocation_failure_postpones_only_before_the_effect_runs),
        cmocka_unit_test(out_of_descriptors_postpones_and_is_reported_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
